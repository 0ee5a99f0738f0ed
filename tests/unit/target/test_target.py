"""A sample is made of the machine's own files, is large enough, and repeats."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.image.scan import scan
from initadvisor.target.target import SAMPLE_BYTES, SMALLEST_BYTES, find_target, make_sample

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine with 50 MB of modules and 40 MB of programs."""
    modules = tmp_path / "usr/lib/modules/6.1.0-1-test/kernel"
    modules.mkdir(parents=True)
    programs = tmp_path / "usr/bin"
    programs.mkdir()
    chance = random.Random(1)
    for number in range(50):
        (modules / f"module{number:02}.ko").write_bytes(chance.randbytes(1000) * 1000)
    for number in range(20):
        (programs / f"program{number:02}").write_bytes(chance.randbytes(1000) * 2000)
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path)


def test_a_sample_holds_modules_and_programs_and_every_directory_they_are_in(machine: Host) -> None:
    path = make_sample(machine, ("gzip", "-1", "-c"))
    with path.open("rb") as file:
        contents = scan(file)
    assert SMALLEST_BYTES < contents.unpacked_bytes < SAMPLE_BYTES * 1.05
    assert contents.kernel_release == "6.1.0-1-test"
    assert contents.main.findings == ()
    modules = next(use for use in contents.kinds if use.kind == "other kernel modules")
    assert modules.files == 48


def test_the_same_files_give_the_same_sample_without_work(machine: Host) -> None:
    first = make_sample(machine, ("gzip", "-1", "-c"))
    stamp = first.stat().st_mtime_ns
    assert make_sample(machine, ("gzip", "-1", "-c")) == first
    assert first.stat().st_mtime_ns == stamp
    assert make_sample(machine, ("gzip", "-2", "-c")) != first


def test_a_machine_with_too_little_says_so(tmp_path: Path) -> None:
    with pytest.raises(InitadvisorError, match="only 0 MB") as caught:
        make_sample(Host(root=tmp_path), ("gzip",))
    assert "--image" in (caught.value.hint or "")
    with pytest.raises(InitadvisorError, match="find this machine's initramfs") as caught:
        find_target(Host(root=tmp_path), None)
    hint = caught.value.hint or ""
    assert "name an image" in hint
    assert "contents FILE" in hint  # it has no --image


def test_a_compressor_that_fails_leaves_nothing(machine: Host) -> None:
    with pytest.raises(InitadvisorError):
        make_sample(machine, ("false",))
    left = {path.name for path in (machine.cache_dir() / "sample").iterdir()}
    assert left == set()
