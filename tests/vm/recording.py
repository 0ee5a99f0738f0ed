"""A record of what a machine wrote to a disk: QEMU's blklogwrites, dm-log-writes' format
(Documentation/admin-guide/device-mapper/log-writes.rst).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.vm.disk import sparse_copy

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_MAGIC = 0x6A736677736872
_SECTOR_BYTES = 512
_SUPERBLOCK = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")
_FLUSH, _DISCARD = 1, 4

FIRST_ENTRY_AT = _SECTOR_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One entry of the log.

    ``data_at`` is where in the log the data is, None for a discard, after which zeros are read.
    With ``is_flush`` everything recorded before has reached the medium; it writes nothing itself.
    """

    offset_bytes: int
    size_bytes: int
    data_at: int | None
    is_flush: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """``base`` is the disk as it was before, ``log`` what was written to it since."""

    base: Path
    log: Path

    def writes(self) -> Iterator[Write]:
        """Read the entries so far, in the order in which the disk was given them.

        What is only partly there was under way when the machine was killed, and is left out.
        """
        for write, _ in self.writes_from(FIRST_ENTRY_AT):
            yield write

    def writes_from(self, position: int) -> Iterator[tuple[Write, int]]:
        """Read on from a position in the log, and say where the next entry begins or will begin."""
        with self.log.open("rb") as file:
            start = file.read(_SUPERBLOCK.size)
            if any(start):  # which is written with the first flush
                magic, _, _, sector_bytes = _SUPERBLOCK.unpack(start)
                assert (magic, sector_bytes) == (_MAGIC, _SECTOR_BYTES), self.log
            end = self.log.stat().st_size
            while position + _SECTOR_BYTES <= end:
                file.seek(position)
                sector, sectors, flags, _ = _ENTRY.unpack(file.read(_ENTRY.size))
                position += _SECTOR_BYTES
                data_bytes = 0 if flags & _DISCARD else sectors * _SECTOR_BYTES
                if position + data_bytes > end:
                    return
                write = Write(
                    offset_bytes=sector * _SECTOR_BYTES,
                    size_bytes=sectors * _SECTOR_BYTES,
                    data_at=None if flags & _DISCARD else position,
                    is_flush=bool(flags & _FLUSH),
                )
                position += data_bytes
                yield write, position

    def disk(self, writes: Iterable[Write], target: Path) -> Path:
        """Make a copy of the disk as it was before, with only these of the writes done to it."""
        sparse_copy(self.base, target)
        with target.open("r+b") as disk, self.log.open("rb") as log:
            for write in writes:
                data = bytes(write.size_bytes)
                if write.data_at is not None:
                    log.seek(write.data_at)
                    data = log.read(write.size_bytes)
                disk.seek(write.offset_bytes)
                disk.write(data)
        return target

    def moment(self) -> int:
        """Return how many entries there are: a moment that demands can refer to."""
        return sum(1 for _ in self.writes())


def kept(writes: Sequence[Write], rng: random.Random) -> Iterator[Write]:
    """Choose what a disk with a write cache keeps: what was flushed, and some of the rest."""
    flushed = max((number for number, write in enumerate(writes) if write.is_flush), default=-1)
    share = rng.random()
    for number, write in enumerate(writes):
        if number <= flushed or rng.random() < share:
            yield write


def record(disk: Path, directory: Path) -> Recording:
    """Prepare to record what the next machine writes to a disk."""
    log = directory / f"{disk.name}.log"
    log.touch()
    return Recording(base=sparse_copy(disk, directory / f"{disk.name}.base"), log=log)
