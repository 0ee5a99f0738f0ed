"""The lab from end to end: real kernels that unpack what real generators made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from initadvisor.core.codecs import Codec
from initadvisor.host import Host
from initadvisor.host.run import SystemRunner
from initadvisor.records.lab import Engine
from initadvisor.store.store import open_store
from initadvisor.vm import engines
from initadvisor.vm.engines import FOR_VERIFYING, Wanted, machine_for
from tests.fakes.scripts import programs_in
from tests.fixtures.debian import Suite, debian
from tests.fixtures.generated import dracut_image, initramfs_tools_image
from tests.fixtures.waiting import HANGS_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from initadvisor.host.process import Ending
    from tests.fixtures.namespace import Tree

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("lab")]

WITHOUT_KVM = ("--engine", "tcg")


@pytest.fixture(scope="module")
def tree() -> Tree:
    """Return a Debian with a kernel."""
    return debian(Suite.BOOKWORM)


@pytest.fixture(scope="module")
def kernel(tree: Tree) -> Path:
    """Return the kernel's file."""
    return tree.root / "boot" / f"vmlinuz-{tree.release}"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return where the commands keep everything."""
    for name in ("cache", "state", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    """Return the environment of the commands."""
    return {
        **os.environ,
        "CACHE_DIRECTORY": str(place / "cache"),
        "STATE_DIRECTORY": str(place / "state"),
        "TMPDIR": str(place / "tmp"),
        "HOME": str(place),
    }


def initadvisor(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-c", "from initadvisor.cli import main; main()", *arguments],
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def answered(place: Path, *arguments: str) -> dict[str, Any]:
    """Return what a command prints as JSON."""
    done = initadvisor(place, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def machines_of(place: Path) -> list[psutil.Process]:
    """Return the virtual machines that were started with our scratch directory or images."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(str(place) in word for word in words) and "initadvisor" not in " ".join(words):
            found.append(process)
    return found


@pytest.mark.parametrize("generator", ["dracut", "initramfs-tools"])
def test_debians_own_kernel_verifies_what_a_generator_made(
    tree: Tree, kernel: Path, place: Path, generator: str
) -> None:
    image = (
        dracut_image(tree, "zstd")
        if generator == "dracut"
        else initramfs_tools_image(tree, Codec.XZ)
    )
    answer = answered(place, "lab", "--verify", str(image), "--kernel", str(kernel), *WITHOUT_KVM)
    assert answer["verified"] is True
    assert answer["engine"] == "tcg"
    assert answer["kernel"]["release"] == tree.release
    listed = answered(place, "history")["verifications"]
    assert [row["image_sha256"] for row in listed] == [answer["image_sha256"]]
    assert list((place / "tmp").iterdir()) == []


def test_a_damaged_image_is_refused_in_the_kernels_words(
    tree: Tree, kernel: Path, place: Path
) -> None:
    data = dracut_image(tree, "zstd").read_bytes()
    (place / "cut").write_bytes(data[: len(data) // 2])
    done = initadvisor(
        place, "lab", "--verify", str(place / "cut"), "--kernel", str(kernel), *WITHOUT_KVM
    )
    assert done.returncode == 3
    assert "does not unpack it: ZSTD-compressed data is truncated" in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_user_mode_linux_times_candidates_and_leaves_nothing_behind(
    tree: Tree, place: Path
) -> None:
    image = dracut_image(tree, "gzip")
    answer = answered(
        place,
        *("lab", "--image", str(image), "--engine", "uml", "--rounds", "2"),
        *("--only", "lz4", "--only", "xz"),
    )
    assert answer["engine"] == "uml"
    assert answer["end"] == "rounds"
    rows = {row["setting"]: row for row in answer["settings"]}
    assert set(rows) == {"gzip", "lz4", "xz"}
    assert rows["gzip"]["today"] is True
    assert [row["lost"] for row in answer["settings"]] == [[], [], []]
    assert all(row["unpack_ms"]["count"] == 2 for row in rows.values())
    assert rows["xz"]["unpack_ms"]["median"] > rows["lz4"]["unpack_ms"]["median"]
    assert answered(place, "history")["lab_runs"] == [
        {key: value for key, value in answer.items() if key not in {"schema", "skipped"}}
    ]
    assert machines_of(place) == []
    assert list((place / "tmp").iterdir()) == []
    assert sorted(path.name for path in place.iterdir()) == ["cache", "state", "tmp"]


def test_an_interrupted_run_keeps_what_was_measured_and_ends_its_machines(
    tree: Tree, place: Path
) -> None:
    command = [sys.executable, "-c", "from initadvisor.cli import main; main()"]
    words = ["lab", "--image", str(dracut_image(tree, "gzip")), "--engine", "uml"]
    with subprocess.Popen(
        [*command, *words, "--only", "lz4", "--rounds", "500"],
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert wait_until(lambda: _samples(place))
        process.send_signal(signal.SIGINT)
        try:
            said, complaint = process.communicate(timeout=HANGS_S)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said == ""
    assert complaint.splitlines()[-1] == "initadvisor: interrupted"
    run = answered(place, "history")["lab_runs"][0]
    assert run["end"] == "interrupted"
    assert sum(len(row["samples"]) for row in run["settings"]) >= 1
    assert machines_of(place) == []
    assert list((place / "tmp").iterdir()) == []


def _samples(place: Path) -> int:
    if not (place / "state/initadvisor.sqlite").exists():
        return 0
    runs = answered(place, "history")["lab_runs"]
    return sum(len(row["samples"]) for run in runs for row in run["settings"])


def _standing_in_for_qemu(place: Path, script: str) -> Path:
    """Put a program in QEMU's place; return a root directory with a /dev/kvm and a kernel."""
    programs = place / "programs"
    programs.mkdir()
    fake = programs / "qemu-system-x86_64"
    fake.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo QEMU 99 && exit\n{script}\n")
    fake.chmod(0o755)
    (place / "root/dev").mkdir(parents=True)
    (place / "root/dev/kvm").touch()
    return programs


class Watched(SystemRunner):
    """Keeps the command lines that are listened to."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: list[str] = []

    def watch(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        on_line: Callable[[bytes], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ending:
        self.watched.append(" ".join(map(str, argv)))
        return super().watch(argv, timeout_s=timeout_s, on_line=on_line, env=env, cwd=cwd)


def test_a_kvm_that_hangs_is_tried_once(
    kernel: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = _standing_in_for_qemu(
        place,
        'case "$*" in *"-accel kvm"*) exec sleep 3600 ;; *) echo "Linux version 6.1" ;; esac',
    )
    monkeypatch.setattr(engines, "KVM_TRIAL_S", 0.2)
    monkeypatch.setattr(engines, "_EMULATED_TRIAL_S", HANGS_S)
    programs_in(monkeypatch, programs)
    monkeypatch.setenv("STATE_DIRECTORY", str(place / "state"))
    runner = Watched()
    host = Host(root=place / "root", runner=runner)
    with open_store(host) as store:
        for _ in range(2):
            with machine_for(host, store, FOR_VERIFYING, Wanted(kernel=kernel)) as machine:
                assert machine.engine is Engine.TCG
            assert sum("-accel kvm" in words for words in runner.watched) == 1
