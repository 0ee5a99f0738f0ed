"""The daemon's real work after a kernel upgrade, with real compressors, also when cut short."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.candidates.build import cached_candidates
from initadvisor.host import Host
from initadvisor.image.decompressors.decompress import decompress
from tests.fixtures.dracut_machine import OTHER, make_machine
from tests.fixtures.hosts import RELEASE
from tests.fixtures.small_images import program_archive, write_image
from tests.fixtures.waiting import HANGS_S, alive, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("daemon-work")]

SETTINGS = ["gzip", "lz4 -9", "xz -9", "zstd", "zstd -19"]
DRIVER = """
import os, sys, threading, time
from pathlib import Path
import psutil
from initadvisor.daemon import watchdog as attendant
from initadvisor.daemon.loop import Daemon
from initadvisor.daemon.manager import set_up_logging
from initadvisor.daemon.watchdog import preempt as disturb
from initadvisor.daemon.work import AdvisorsWork
from initadvisor.host import Host
from initadvisor.daemon.planning import Needs
from initadvisor.apply import proving
from tests.fixtures.idle_programs import run_like_others

run_like_others()
set_up_logging(verbose=False)
attendant._monitor = lambda: None
proving._require_own_system = lambda host: None
AdvisorsWork._lab = lambda self, release: None  # minutes of virtual machines, tried elsewhere
machine = lambda: Host(root=Path(sys.argv[1]))


def named(process):
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def unplug(times):
    names = {"xz", "zstd"}
    for _ in range(times):
        while not any(named(child) in names for child in psutil.Process().children(recursive=True)):
            time.sleep(0.005)
        disturb()


threading.Thread(target=unplug, args=[int(sys.argv[2])], daemon=True).start()
work = lambda job: AdvisorsWork(host=machine()).do(job)
Daemon(host=machine(), work=work, look=lambda host, needs: Needs(0)).run()
"""


@pytest.fixture(scope="module")
def payload() -> bytes:
    """Programs of this machine, 6 MB."""
    return program_archive(6_000_000)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, payload: bytes) -> Path:
    """A machine with dracut whose kernel was just upgraded."""
    make_machine(tmp_path, monkeypatch)
    write_image(tmp_path / f"boot/initramfs-{RELEASE}.img", payload)
    (tmp_path / f"boot/initramfs-{OTHER}.img").unlink()
    listed = ", ".join(repr(setting) for setting in SETTINGS)
    (tmp_path / "etc/initadvisor.toml").write_text(f"[candidates]\nsettings = [{listed}]\n")
    (tmp_path / "state/queue").mkdir(parents=True)
    note(tmp_path)
    return tmp_path


def note(root: Path) -> None:
    """Note the upgrade as hooks do."""
    (root / f"state/queue/kernel-added@{RELEASE}").touch()
    (root / f"state/queue/kernel-removed@{OTHER}").touch()


def start(root: Path, *, unplugged: int = 0) -> subprocess.Popen[str]:
    """Start the daemon on that machine, which loses its power for a moment so many times."""
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(root), str(unplugged)],
        env={
            **os.environ,
            "CACHE_DIRECTORY": str(root / "cache"),
            "STATE_DIRECTORY": str(root / "state"),
        },
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(daemon: subprocess.Popen[str]) -> str:
    """Wait for its end and return what it said."""
    _, said = daemon.communicate(timeout=HANGS_S)
    assert daemon.returncode == 0, said
    assert "Traceback" not in said, said
    return said


def built(root: Path, payload: bytes) -> set[str]:
    """Return what was built, having made sure that each unpacks to the same."""
    found = [cached.candidate for cached in cached_candidates(Host(root=root))]
    for candidate in found:
        with open(candidate.path, "rb") as file:  # noqa: PTH123
            size_bytes = candidate.size_bytes - candidate.main_offset
            parts = decompress(candidate.setting.codec, file, candidate.main_offset, size_bytes)
            assert b"".join(bytes(part) for part in parts) == payload
    return {str(candidate.setting) for candidate in found}


def test_candidates_are_built_and_weighed_and_nothing_is_left(root: Path, payload: bytes) -> None:
    image = root / f"boot/initramfs-{RELEASE}.img"
    before = image.read_bytes()
    said = ended(start(root))
    assert built(root, payload) == set(SETTINGS)
    advice = rf"{re.escape(str(image))}: (keep|switch) .*\(evidence: predicted\)"
    assert re.search(advice, said), said
    assert said.endswith("nothing is left to do\n")
    assert not (root / "state/tasks").exists()
    assert image.read_bytes() == before
    note(root)
    again = ended(start(root))
    assert "advise: begins" in again
    assert "building" not in again, "what is there was built again"


def test_cut_short_while_compressors_run_it_ends_at_once_and_goes_on_later(
    root: Path, payload: bytes
) -> None:
    for _ in range(3):
        daemon = start(root)
        wait_for_compressors(daemon)
        children = psutil.Process(daemon.pid).children(recursive=True)
        daemon.send_signal(signal.SIGTERM)
        assert "was told to end" in ended(daemon)
        assert are_gone(children)
        assert list((root / "cache/candidates").glob(".partial-*")) == []
        assert (root / f"state/tasks/build@{RELEASE}").stat().st_size == 0
    said = ended(start(root))
    assert said.endswith("nothing is left to do\n")
    assert built(root, payload) == set(SETTINGS)


def test_what_was_put_off_is_done_by_the_same_run(root: Path, payload: bytes) -> None:
    said = ended(start(root, unplugged=1))
    assert f"build@{RELEASE}: put off" in said
    assert "failed" not in said
    assert said.endswith("nothing is left to do\n")
    assert built(root, payload) == set(SETTINGS)


def is_compressor(process: psutil.Process) -> bool:
    """Tell whether it is one; it may be over meanwhile."""
    try:
        return process.name() in {"xz", "zstd"}
    except psutil.NoSuchProcess:
        return False


def are_gone(processes: list[psutil.Process]) -> bool:
    """Wait until none of them runs."""
    return wait_until(lambda: not any(alive(process.pid) for process in processes))


def wait_for_compressors(daemon: subprocess.Popen[str]) -> None:
    """Wait until it has started one."""
    process = psutil.Process(daemon.pid)
    assert wait_until(
        lambda: (
            any(is_compressor(child) for child in process.children(recursive=True))
            or daemon.poll() is not None
        )
    )
    assert daemon.poll() is None, "it has ended already"
