"""Power cuts without boots: every state a recorded disk could have been left in is looked at.

Two kinds of states. Prefixes: the disk has everything it was given up to some moment. Reorderings:
it has everything up to a flush, and any of what came between that flush and the next, as a disk
with a write cache may leave it. A single write is there or not. Where few writes lie between two
flushes all their subsets are tried, otherwise those without one of them, those with only one, and
random ones.

FUA is taken for an ordinary write, and a write that was under way when a flush came for flushed:
QEMU's virtio disks pass the first on as a write and a flush, and the file systems looked at here
wait for what they flush.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import tempfile
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from typing_extensions import override

from tests.vm import tools
from tests.vm.disk import FileSystem, cut_out, sparse_copy
from tests.vm.filesystems import Ext4, Vfat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.vm.recording import Recording, Write


class Kind(StrEnum):
    """How a state came about."""

    PREFIX = "prefixes"
    REORDERING = "reorderings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A file that is there, with one of these contents, in every state from a moment on."""

    path: str
    sha256s: frozenset[str]
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """A demand that a state does not meet.

    ``moment`` is the last, counted in entries of the recording, at which a power cut can leave
    this state; ``state`` tells states of one kind and moment apart.
    """

    kind: Kind
    state: int
    moment: int
    path: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many states were looked at, and which of them do not hold what was demanded."""

    states: dict[Kind, int]
    torn: tuple[Torn, ...]

    def torn_states(self, kind: Kind) -> int:
        """Return how many states of this kind do not meet some demand."""
        return len({torn.state for torn in self.torn if torn.kind is kind})

    @override
    def __str__(self) -> str:
        parts = (
            f"{self.torn_states(kind)} of {self.states[kind]} {kind.value} torn" for kind in Kind
        )
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Between two flushes: all subsets of up to ``exhaustive_writes`` writes, else ``samples``
    random ones beside the systematic ones, of which at most ``systematic`` are taken.
    """

    exhaustive_writes: int = 6
    systematic: int = 64
    samples: int = 32
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Where on the disk the file system is; without a partition table, all of it."""

    file_system: FileSystem
    offset_bytes: int = 0
    size_bytes: int


def replay(
    recording: Recording, area: Area, demands: Sequence[Demand], sampling: Sampling | None = None
) -> Outcome:
    """Look at every state the area could have been left in."""
    with tempfile.TemporaryDirectory(prefix="replay-") as directory:
        medium = _Medium.of(recording, area, Path(directory))
        judge = _Judge(medium=medium, area=area, demands=demands)
        _replay(recording, medium, judge, sampling or Sampling())
    return Outcome(states=judge.states, torn=tuple(judge.torn))


def _replay(recording: Recording, medium: _Medium, judge: _Judge, sampling: Sampling) -> None:
    pending: list[_Piece] = []
    rng = random.Random(sampling.seed)
    moment = 0
    for moment, write in enumerate(recording.writes()):
        pieces = medium.pieces(write)
        if pieces:
            judge.look(Kind.PREFIX, moment)  # what all before this one left
            medium.apply(pieces)
            pending += pieces
        if write.is_flush and pending:
            _reorder(medium, judge, moment, pending, _subsets(len(pending), sampling, rng))
            pending = []
    if pending:
        _reorder(medium, judge, moment + 1, pending, _subsets(len(pending), sampling, rng))
    judge.look(Kind.PREFIX, moment + 1)


def _reorder(
    medium: _Medium,
    judge: _Judge,
    moment: int,
    pending: list[_Piece],
    subsets: Iterator[tuple[int, ...]],
) -> None:
    medium.take_back(pending)
    for subset in subsets:
        some = [medium.again(pending[index]) for index in subset]
        medium.apply(some)
        judge.look(Kind.REORDERING, moment)
        medium.take_back(some)
    medium.apply([medium.again(piece) for piece in pending])


def _subsets(count: int, sampling: Sampling, rng: random.Random) -> Iterator[tuple[int, ...]]:
    """Choose which of so many writes are there, in order; prefixes are left out."""
    everything = range(count)
    chosen: set[tuple[int, ...]] = set()
    if count <= sampling.exhaustive_writes:
        for size in everything:
            chosen.update(itertools.combinations(everything, size))
    else:
        picked = sorted(rng.sample(everything, min(count, sampling.systematic // 2)))
        chosen.update((index,) for index in picked)
        chosen.update(tuple(i for i in everything if i != index) for index in picked)
        for _ in range(sampling.samples):
            share = rng.random()
            chosen.add(tuple(index for index in everything if rng.random() < share))
    prefixes = {tuple(range(size)) for size in range(count + 1)}
    yield from sorted(chosen - prefixes)


@dataclass(slots=True, kw_only=True)
class _Piece:
    """The part of a write that falls into the area, and what was there before."""

    offset_bytes: int
    data_at: int | None
    size_bytes: int
    before: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Medium:
    """The area as it is in one state, in a file of its own."""

    path: Path
    area: Area
    log: Path

    @classmethod
    def of(cls, recording: Recording, area: Area, directory: Path) -> Self:
        path = directory / "medium"
        cut_out(recording.base, area.offset_bytes, area.size_bytes, path)
        return cls(path=path, area=area, log=recording.log)

    def pieces(self, write: Write) -> list[_Piece]:
        start = max(write.offset_bytes, self.area.offset_bytes)
        end = min(
            write.offset_bytes + write.size_bytes, self.area.offset_bytes + self.area.size_bytes
        )
        if start >= end:
            return []
        skipped = start - write.offset_bytes
        return [
            _Piece(
                offset_bytes=start - self.area.offset_bytes,
                data_at=None if write.data_at is None else write.data_at + skipped,
                size_bytes=end - start,
            )
        ]

    def again(self, piece: _Piece) -> _Piece:
        return _Piece(
            offset_bytes=piece.offset_bytes, data_at=piece.data_at, size_bytes=piece.size_bytes
        )

    def apply(self, pieces: Sequence[_Piece]) -> None:
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

    def take_back(self, pieces: Sequence[_Piece]) -> None:
        with self.path.open("r+b") as file:
            for piece in reversed(pieces):
                file.seek(piece.offset_bytes)
                file.write(piece.before)


@dataclass(slots=True, kw_only=True)
class _Judge:
    """Holds states against demands."""

    medium: _Medium
    area: Area
    demands: Sequence[Demand]
    states: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    torn: list[Torn] = field(default_factory=list)

    def look(self, kind: Kind, moment: int) -> None:
        """Judge the medium as a power cut at this moment, the last that can leave it so."""
        self.states[kind] += 1
        demands = [demand for demand in self.demands if demand.since <= moment]
        with tempfile.TemporaryDirectory(dir=self.medium.path.parent) as directory:
            found = self._digests({demand.path for demand in demands}, Path(directory))
        for demand in demands:
            if found[demand.path] not in demand.sha256s:
                self.torn.append(
                    Torn(
                        kind=kind,
                        state=self.states[kind],
                        moment=moment,
                        path=demand.path,
                        found=found[demand.path],
                    )
                )

    def _digests(self, paths: set[str], directory: Path) -> dict[str, str]:
        try:
            files = self._files(directory)
        except tools.ToolError:
            return dict.fromkeys(paths, "a file system beyond repair")
        found = {}
        for number, path in enumerate(sorted(paths)):
            copy = directory / str(number)
            try:
                files.fetch(path, copy)
                found[path] = hashlib.sha256(copy.read_bytes()).hexdigest()
            except FileNotFoundError:
                found[path] = "no such file, or its clusters are not there"
        return found

    def _files(self, directory: Path) -> Vfat | Ext4:
        """Return the file system as the next boot finds it: ext4 has its journal replayed."""
        match self.area.file_system:
            case FileSystem.VFAT:
                return Vfat(image=self.medium.path)
            case FileSystem.EXT4:
                files = Ext4(image=sparse_copy(self.medium.path, directory / "copy"))
                files.check()
                return files
