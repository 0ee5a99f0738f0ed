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

import contextlib
import hashlib
import itertools
import random
import re
import tempfile
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm import tools
from tests.vm.disk import FileSystem
from tests.vm.filesystems import Ext4, Vfat
from tests.vm.medium import Area, Medium

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.vm.filesystems import Files
    from tests.vm.medium import Piece
    from tests.vm.recording import Recording


_FREE = re.compile(r"^(/.*)\n +Contains a free cluster", re.MULTILINE)
"""What fsck.fat(8) says of a name, in a line before."""


class Kind(StrEnum):
    """How a state came about."""

    PREFIX = "prefixes"
    REORDERING = "reorderings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A file that is there, with one of these contents, in every state from a moment on and, where
    there is an ``until``, before another; with ``may_be_missing`` it may also not be there.
    """

    path: str
    sha256s: frozenset[str]
    since: int = 0
    until: int | None = None
    may_be_missing: bool = False

    def applies(self, moment: int) -> bool:
        """Tell whether it is demanded of what a power cut at a moment leaves."""
        return self.since <= moment and (self.until is None or moment < self.until)

    def is_met_by(self, found: str | None) -> bool:
        """Judge the digest of what is there, None for nothing."""
        return self.may_be_missing if found is None else found in self.sha256s


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


def replay(
    recording: Recording,
    area: Area,
    demands: Sequence[Demand],
    sampling: Sampling | None = None,
    *,
    moments: range | None = None,
    names_have_clusters: bool = False,
) -> Outcome:
    """Look at every state the area could have been left in, by power cuts at some of the moments
    or at all.

    ``names_have_clusters`` demands of FAT that no name leads to clusters that are free: the kernel
    would make it read-only as soon as that name is read or removed.
    """
    with tempfile.TemporaryDirectory(prefix="replay-") as directory:
        medium = Medium.of(recording, area, Path(directory))
        is_asked = names_have_clusters and area.file_system is FileSystem.VFAT
        judge = _Judge(
            medium=medium, area=area, demands=demands, moments=moments, asks_for_clusters=is_asked
        )
        _replay(recording, medium, judge, sampling or Sampling())
    return Outcome(states=judge.states, torn=tuple(judge.torn))


def _replay(recording: Recording, medium: Medium, judge: _Judge, sampling: Sampling) -> None:
    pending: list[Piece] = []
    rng = random.Random(sampling.seed)
    moment = 0
    for moment, write in enumerate(recording.writes()):
        pieces = medium.pieces(write)
        if pieces:
            judge.look(Kind.PREFIX, moment)  # what all before this one left
            medium.apply(pieces)
            pending += pieces
        if write.is_flush and pending:
            if judge.wants(moment):
                _reorder(medium, judge, moment, pending, _subsets(len(pending), sampling, rng))
            pending = []
    if pending and judge.wants(moment + 1):
        _reorder(medium, judge, moment + 1, pending, _subsets(len(pending), sampling, rng))
    judge.look(Kind.PREFIX, moment + 1)


def _reorder(
    medium: Medium,
    judge: _Judge,
    moment: int,
    pending: list[Piece],
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
class _Judge:
    """Holds states against demands."""

    medium: Medium
    area: Area
    demands: Sequence[Demand]
    moments: range | None
    asks_for_clusters: bool
    states: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    torn: list[Torn] = field(default_factory=list)

    def wants(self, moment: int) -> bool:
        """Tell whether states of this moment are to be judged."""
        return self.moments is None or moment in self.moments

    def look(self, kind: Kind, moment: int) -> None:
        """Judge the medium as a power cut at this moment, the last that can leave it so."""
        if not self.wants(moment):
            return
        self.states[kind] += 1
        demands = [demand for demand in self.demands if demand.applies(moment)]
        with tempfile.TemporaryDirectory(dir=self.medium.path.parent) as directory:
            found = self._digests({demand.path for demand in demands}, Path(directory))
        for demand in demands:
            if not demand.is_met_by(found[demand.path]):
                self.torn.append(
                    Torn(
                        kind=kind,
                        state=self.states[kind],
                        moment=moment,
                        path=demand.path,
                        found=found[demand.path] or "no such file, or its clusters are not there",
                    )
                )
        if self.asks_for_clusters:
            for name in names_without_clusters(self.medium.path):
                state = self.states[kind]
                said = "a name of clusters that are free"
                torn = Torn(kind=kind, state=state, moment=moment, path=name, found=said)
                self.torn.append(torn)

    def _digests(self, paths: set[str], directory: Path) -> dict[str, str | None]:
        try:
            with self._recovered(directory) as files:
                return {
                    path: _digest(files, path, directory / str(number))
                    for number, path in enumerate(sorted(paths))
                }
        except tools.ToolError:
            return dict.fromkeys(paths, "a file system beyond repair")

    @contextlib.contextmanager
    def _recovered(self, directory: Path) -> Iterator[Files]:
        """Have the file system as the next boot finds it: ext4 with its journal replayed, as long
        as the context is.
        """
        match self.area.file_system:
            case FileSystem.VFAT:
                yield Vfat(image=self.medium.path)
            case FileSystem.EXT4:
                files = Ext4(image=self.medium.path)
                with files.repaired(directory / "undo"):
                    yield files


def names_without_clusters(image: Path) -> list[str]:
    """Return the names of a FAT file system that lead to clusters that are free."""
    said = tools.run("fsck.fat", "-n", image, good=(0, 1)).decode(errors="replace")
    return _FREE.findall(said)


def _digest(files: Files, path: str, copy: Path) -> str | None:
    try:
        files.fetch(path, copy)
    except FileNotFoundError:
        return None
    return hashlib.sha256(copy.read_bytes()).hexdigest()
