"""A file system on a recorded disk, in a file of its own that writes are done to and taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tests.vm.disk import FileSystem, cut_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.vm.recording import Recording, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Where on the disk the file system is; without a partition table, all of it."""

    file_system: FileSystem
    offset_bytes: int = 0
    size_bytes: int


@dataclass(slots=True, kw_only=True)
class Piece:
    """The part of a write that falls into the area, and what was there before."""

    offset_bytes: int
    data_at: int | None
    size_bytes: int
    before: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium:
    """The area as it is in one state, in a file of its own."""

    path: Path
    area: Area
    log: Path

    @classmethod
    def of(cls, recording: Recording, area: Area, directory: Path) -> Self:
        """Cut the area out of the disk as it was before."""
        path = directory / "medium"
        cut_out(recording.base, area.offset_bytes, area.size_bytes, path)
        return cls(path=path, area=area, log=recording.log)

    def pieces(self, write: Write) -> list[Piece]:
        """Return the part of a write that falls into the area: one piece, or none."""
        start = max(write.offset_bytes, self.area.offset_bytes)
        end = min(
            write.offset_bytes + write.size_bytes, self.area.offset_bytes + self.area.size_bytes
        )
        if start >= end:
            return []
        skipped = start - write.offset_bytes
        return [
            Piece(
                offset_bytes=start - self.area.offset_bytes,
                data_at=None if write.data_at is None else write.data_at + skipped,
                size_bytes=end - start,
            )
        ]

    def again(self, piece: Piece) -> Piece:
        """Return the piece as it is before it is applied."""
        return Piece(
            offset_bytes=piece.offset_bytes, data_at=piece.data_at, size_bytes=piece.size_bytes
        )

    def apply(self, pieces: Sequence[Piece]) -> None:
        """Write pieces, and keep in them what they write over."""
        with self.path.open("r+b") as file, self.log.open("rb") as log:
            for piece in pieces:
                file.seek(piece.offset_bytes)
                piece.before = file.read(piece.size_bytes)
                data = bytes(piece.size_bytes)
                if piece.data_at is not None:
                    log.seek(piece.data_at)
                    data = log.read(piece.size_bytes)
                file.seek(piece.offset_bytes)
                file.write(data)

    def take_back(self, pieces: Sequence[Piece]) -> None:
        """Undo what ``apply`` did to these pieces, the last."""
        with self.path.open("r+b") as file:
            for piece in reversed(pieces):
                file.seek(piece.offset_bytes)
                file.write(piece.before)
