"""What building takes, and in which order to build.

What matters is to be there first, and no processor is to idle at the end. Many compressors use one
processor only. A long one of them (lzma: a minute for 100 MB), left to the end, has the other
processors wait for it; taken first, it delays what the user wants to see. So the wanted order is
kept while that costs nothing, and a long single-threaded job is taken out of turn only when,
started later, it would outlast all the rest.

Of an image that was found, not built, only the codec is known: what it took is a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from initadvisor.core.settings import Setting


COST_S: dict[Codec, dict[int | None, float]] = {
    Codec.CAT: {None: 0.1},
    Codec.LZ4: {1: 0.3, 4: 1.2, 9: 3.5, 12: 25.0},
    Codec.ZSTD: {1: 0.3, 3: 0.5, 9: 2.2, 12: 6.6, 15: 19.0, 19: 58.0, 22: 72.0},
    Codec.GZIP: {1: 1.4, 6: 4.1, 9: 33.0},
    Codec.LZOP: {3: 0.3, 6: 0.3, 7: 5.4, 9: 37.0},
    Codec.XZ: {0: 4.7, 3: 22.0, 6: 55.0, 9: 75.0},
    Codec.LZMA: {0: 4.7, 3: 22.0, 6: 55.0, 9: 72.0},
    Codec.BZIP2: {9: 5.9},
}
"""CPU time in s to compress 100 MB of kernel modules and programs, by level.

Measured with Debian 12's tools on one virtual processor; only the proportions matter here, and they
hold within a factor of 2 on other contents.
"""

PEAK_MB: dict[Codec, dict[int | None, float]] = {
    Codec.CAT: {None: 2},
    Codec.LZ4: {1: 14},
    Codec.ZSTD: {1: 19, 3: 55, 9: 125, 15: 230, 19: 300},
    Codec.GZIP: {6: 2},
    Codec.LZOP: {3: 2},
    Codec.XZ: {0: 12, 6: 265},
    Codec.LZMA: {6: 99, 9: 707},
    Codec.BZIP2: {9: 9},
}
"""Peak memory in MB of a compressor on 80 MB and more, measured in the same way, by level."""

PEAK_FULL_BYTES = 64 << 20
"""With this much input, tables and threads have what they ever need."""

_PIECE_BYTES = 32 << 20
"""What one thread of zstd -19 compresses at a time; xz -6 takes 24 MiB, others less."""

_PARALLEL_PROGRAMS = frozenset({"pigz", "lbzip2", "pbzip2", "pixz", "pxz"})
_THREAD_OPTIONS = ("-T", "--threads=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one job is expected to take: ``cpu_s`` in all, on up to ``threads`` processors."""

    cpu_s: float
    threads: int = 1

    @property
    def span_s(self) -> float:
        """How long it takes when no other job is in its way."""
        return self.cpu_s / self.threads


def expected_cpu_s(codec: Codec, level: int | None, payload_bytes: int) -> float:
    """Return what compressing is expected to take, going by the nearest level that was measured."""
    costs = COST_S[codec]
    nearest = min(costs, key=lambda measured: abs((measured or 0) - (level or 0)))
    return costs[nearest] * payload_bytes / 100e6


def expected_peak_bytes(codec: Codec, level: int | None) -> int:
    """Return what a compressor is expected to need at most, going by the nearest known level."""
    peaks = PEAK_MB[codec]
    nearest = min(peaks, key=lambda measured: abs((measured or 0) - (level or 0)))
    return int(peaks[nearest] * 1e6)


def threads_of(argv: Sequence[str], payload_bytes: int, cores: int) -> int:
    """Return on how many processors a compressor's command line has it work.

    A thread number of 0 stands for all of them in xz(1) and zstd(1), but each thread takes a large
    piece at a time, so that a short payload does not occupy many. The .lzma format cannot be
    written by several threads (xz(1)), whatever lzma is told.
    """
    program = argv[0].rpartition("/")[2]
    if program in _PARALLEL_PROGRAMS:
        return cores
    wanted = 1
    for word in argv[1:]:
        for option in _THREAD_OPTIONS:
            number = word.removeprefix(option)
            if number != word and number.isdecimal():
                wanted = int(number) or cores
    pieces = 1 if program == "lzma" else -(-payload_bytes // _PIECE_BYTES)
    return max(1, min(wanted, cores, pieces))


def may_start(running: Sequence[Load], *, cores: int, jobs: int) -> bool:
    """Tell whether one more job may start: a processor has no thread yet, fewer than ``jobs`` run.

    More threads than that would only slow the long single-threaded job the others wait for.
    """
    return len(running) < jobs and sum(load.threads for load in running) < cores


def next_job(waiting: Sequence[Load], *, cores: int) -> int:
    """Return which of the jobs that wait, given in the order wanted, is to start now.

    A job that cannot use every processor is urgent when all the others would be done before it,
    were it started after the first of them. It may have to share its processor with a job of many
    threads, which is why it is taken to need twice its time as long as there are such jobs.
    """
    slowed = 2.0 if any(load.threads > 1 for load in waiting) else 1.0
    left_s = sum(load.cpu_s for load in waiting[1:]) / cores
    urgent = [
        index
        for index, load in enumerate(waiting)
        if load.threads < cores and load.span_s * slowed > left_s
    ]
    return max(urgent, key=lambda index: waiting[index].span_s, default=0)


_PAYLOAD_BYTES = 100_000_000
"""What ``COST_S`` is of; only ratios are taken, so that any would do."""

UNKNOWN_BUILD = (
    "what building today's image takes is not counted: nothing with its codec is compared, so "
    "nothing tells"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRange:
    """The processor time of the cheapest and of the dearest level of a codec, in seconds.

    ``like``: of the levels near those that make images as large as today's.
    """

    setting: Setting
    least_s: float
    most_s: float
    like: bool = False

    @property
    def middle_s(self) -> float:
        """The time as many times the least as the most is of it."""
        return sqrt(self.least_s * self.most_s)

    @property
    def words(self) -> str:
        """What is to be said of it."""
        return (
            f"what building today's image takes is not known, as its level is not: taken to be "
            f"{self.middle_s:.1f} s of processor time, {self.least_s:.1f} to {self.most_s:.1f} s "
            f"over the levels of {self.setting.codec}"
            f"{' that make images about as large' if self.like else ''}"
        )


def build_range(
    setting: Setting,
    known: Iterable[tuple[Setting, float]],
    *,
    like: Collection[Setting] = (),
) -> BuildRange | None:
    """Return what building some level of the codec takes, None where nothing is known of any.

    ``known``: what was built or estimated, and its processor time in seconds. How much more or less
    other levels take than those is as it was measured elsewhere, so that it does not matter which
    of the levels are known. ``like``: those of them that make images as large as today's. Then its
    level is taken to be one of theirs or the next to it, but for what makes images of other sizes.
    """
    codec = setting.codec
    costs_s = {
        (codec.spec.level if other.level is None else other.level): (cpu_s, other in like)
        for other, cpu_s in known
        if other.codec is codec
    }
    if not costs_s:
        return None
    near = any(is_like for _, is_like in costs_s.values())
    bounds = []
    for level, (cpu_s, is_like) in costs_s.items():
        if is_like or not near:
            scale = cpu_s / expected_cpu_s(codec, level, _PAYLOAD_BYTES)
            levels = _next_to(codec, level) - costs_s.keys() if near else COST_S[codec]
            bounds += [cpu_s, *(scale * COST_S[codec][other] for other in levels)]
    return BuildRange(setting=setting, least_s=min(bounds), most_s=max(bounds), like=near)


def _next_to(codec: Codec, level: int | None) -> set[int | None]:
    """Return the measured levels next to one."""
    levels = sorted(COST_S[codec], key=lambda one: one or 0)
    below = [one for one in levels if (one or 0) < (level or 0)]
    above = [one for one in levels if (one or 0) > (level or 0)]
    return {*below[-1:], *above[:1]}
