"""Power cuts while a guest replaces files: which ways of replacing leave a whole file behind."""

from __future__ import annotations

import hashlib
import inspect
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.vm import replacing
from tests.vm.boot import running
from tests.vm.crash import Demand, Kind, Outcome, replay
from tests.vm.disk import FAT32_BYTES, MIB, FileSystem, format_ext4, format_vfat
from tests.vm.filesystems import write
from tests.vm.guest import Recipe, guest
from tests.vm.machine import Drive, Machine
from tests.vm.medium import Area
from tests.vm.recording import record
from tests.vm.replacing import Way

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.vm
log = logging.getLogger(__name__)

_VERSIONS = range(1, 5)
_SIZES = {FileSystem.VFAT: FAT32_BYTES, FileSystem.EXT4: 64 * MIB}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A way to replace a file, and where."""

    way: Way
    file_system: FileSystem

    @property
    def name(self) -> str:
        """What the guest knows it by: the serial number of a disk, up to 20 characters."""
        return f"{self.file_system}-{self.way}"


def test_a_file_replaced_on_vfat_is_whole_after_any_power_cut_when_the_old_one_was_held(
    tmp_path: Path,
) -> None:
    cases = [Case(file_system=FileSystem.VFAT, way=way) for way in Way]
    cases.append(Case(file_system=FileSystem.EXT4, way=Way.RENAMED))
    renamed, synced_again, held, exchanged, ext4 = _outcomes(cases, tmp_path)
    for outcome in (renamed, synced_again, held, exchanged, ext4):
        assert outcome.states[Kind.PREFIX] > 10
        assert outcome.states[Kind.REORDERING] > 5  # how many there are is a matter of timing
    assert renamed.torn_states(Kind.PREFIX) > 0
    assert synced_again.torn_states(Kind.PREFIX) == 0
    assert synced_again.torn_states(Kind.REORDERING) > 0, (
        "the old file's room is given up too early"
    )
    assert not held.torn
    assert not exchanged.torn
    assert not ext4.torn


def _outcomes(cases: Sequence[Case], directory: Path) -> list[Outcome]:
    """Record one boot in which each case replaces its file several times; look at every cut."""
    drives = {case: _drive(case, directory) for case in cases}
    copy = guest(Recipe()).copied_to(directory / "guest")
    machine = Machine(drives=tuple(drives.values()))
    moments: dict[Case, list[int]] = {case: [] for case in cases}
    with running(copy, machine, direct=True, script=_script(cases)) as started:
        for case in cases:
            recording = drives[case].recording
            assert recording
            for version in _VERSIONS:
                started.wait_for(rf"> replaced {case.name} {version}$")
                moments[case].append(recording.moment())
        started.kill()
    outcomes = [_replay(drives[case], case, moments[case]) for case in cases]
    for case, outcome in zip(cases, outcomes, strict=True):
        log.info("%s: %s", case.name, outcome)
    return outcomes


def _drive(case: Case, directory: Path) -> Drive:
    path = directory / case.name
    size_bytes = _SIZES[case.file_system]
    with path.open("wb") as file:
        file.truncate(size_bytes)
    make = format_vfat if case.file_system is FileSystem.VFAT else format_ext4
    write(make(path, 0, size_bytes), replacing.PATH, replacing.content(0))
    return Drive(path=path, serial=case.name, recording=record(path, directory))


def _script(cases: Sequence[Case]) -> str:
    lines = ["cat >/run/replacing.py <<'END'", inspect.getsource(replacing), "END"]
    for case in cases:
        mount = f"/run/{case.name}"
        lines += [
            f"mkdir {mount}",
            f"mount -t {case.file_system} /dev/disk/by-id/virtio-{case.name} {mount}",
            f"python3 /run/replacing.py {mount} {_VERSIONS[-1]} {case.way}",
        ]
    return "\n".join(lines)


def _replay(drive: Drive, case: Case, moments: list[int]) -> Outcome:
    """Demand a whole version at every moment, and none older than what was reported by then."""
    assert drive.recording
    digests = [_sha256(replacing.content(version)) for version in (0, *_VERSIONS)]
    demands = [
        Demand(path=replacing.PATH, sha256s=frozenset(digests[version:]), since=since)
        for version, since in enumerate((0, *moments))
    ]
    area = Area(file_system=case.file_system, size_bytes=_SIZES[case.file_system])
    return replay(drive.recording, area, demands)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
