"""Which states a record of writes can leave, on a record made by hand."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.vm.crash import Demand, Kind, replay
from tests.vm.disk import FAT32_BYTES, MIB, FileSystem, format_vfat, sparse_copy
from tests.vm.filesystems import Vfat, write
from tests.vm.medium import Area
from tests.vm.recording import Recording

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_SECTOR_BYTES = 512
_AREA = Area(file_system=FileSystem.VFAT, size_bytes=FAT32_BYTES)
_OLD, _NEW = b"old" * 400, b"new" * 400
_Sector = tuple[int, bytes]
Record = Callable[..., Recording]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Return a file system with one file."""
    path = tmp_path / "base"
    with path.open("wb") as file:
        file.truncate(FAT32_BYTES)
    write(format_vfat(path, 0, FAT32_BYTES), "/first", _OLD)
    return path


@pytest.fixture
def changes(base: Path) -> list[_Sector]:
    """Return the sectors that differ once a second file is there, its content first."""
    changed = sparse_copy(base, base.with_name("changed"))
    write(Vfat(image=changed), "/second", _NEW)
    before, after = base.read_bytes(), changed.read_bytes()
    sectors = [
        (start, after[start : start + _SECTOR_BYTES])
        for chunk in range(0, FAT32_BYTES, MIB)
        if after[chunk : chunk + MIB] != before[chunk : chunk + MIB]
        for start in range(chunk, chunk + MIB, _SECTOR_BYTES)
        if after[start : start + _SECTOR_BYTES] != before[start : start + _SECTOR_BYTES]
    ]
    return sorted(sectors, key=lambda sector: not sector[1].startswith((b"new", b"ewn", b"wne")))


@pytest.fixture
def record(base: Path) -> Record:
    """Return what writes a record of sectors, None among them for a flush."""

    def make(*entries: _Sector | None) -> Recording:
        log = base.with_name("log")
        with log.open("wb") as file:
            file.write(struct.pack("<QQQI", 0x6A736677736872, 1, 0, 512).ljust(512, b"\0"))
            for entry in entries:
                start, data = entry or (0, b"")
                header = (start // 512, len(data) // 512, int(entry is None), 0)
                file.write(struct.pack("<QQQQ", *header).ljust(512, b"\0") + data)
        return Recording(base=base, log=log)

    return make


def test_what_was_flushed_is_there_and_what_nobody_touched_stays(
    changes: list[_Sector], record: Record
) -> None:
    recording = record(*changes, None)
    outcome = replay(recording, _AREA, [_first(), _second(since=recording.moment())])
    assert outcome.states[Kind.PREFIX] == len(changes) + 1
    assert outcome.states[Kind.REORDERING] > len(changes)
    assert not outcome.torn


def test_what_was_not_flushed_may_be_missing_whatever_came_after_it(
    changes: list[_Sector], record: Record
) -> None:
    recording = record(*changes)
    outcome = replay(recording, _AREA, [_second(since=recording.moment())])
    assert outcome.torn_states(Kind.PREFIX) == 0
    assert outcome.torn_states(Kind.REORDERING) > 0


def test_what_is_demanded_too_early_is_not_there(changes: list[_Sector], record: Record) -> None:
    outcome = replay(record(*changes, None), _AREA, [_second(since=0)])
    assert outcome.torn_states(Kind.PREFIX) > 0


def test_content_that_nobody_asked_for_is_torn_in_every_state(
    changes: list[_Sector], record: Record
) -> None:
    demand = Demand(path="/first", sha256s=frozenset({_sha256(_NEW)}))
    outcome = replay(record(*changes, None), _AREA, [demand])
    assert all(outcome.torn_states(kind) == outcome.states[kind] for kind in Kind)
    assert {torn.found for torn in outcome.torn} == {_sha256(_OLD)}


def _first() -> Demand:
    return Demand(path="/first", sha256s=frozenset({_sha256(_OLD)}))


def _second(*, since: int) -> Demand:
    return Demand(path="/second", sha256s=frozenset({_sha256(_NEW)}), since=since)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
