"""From the sizes of a compressed sample to those of the compressed whole.

A sample says how well a compressor does on the content, but not how many matches it would find in
what the sample lacks, and by chance it holds too much of one kind. Both is known exactly of fast
compressors, the controls, because they are run on the sample and on the whole. So the size of the
whole is that of the sample, times what the whole is longer than the sample for a control that looks
back as far (``Rung``). A slow setting with a fast relative (``xz -6`` and ``xz -0``) is compared
with it on a small sample, and the relative is measured on a large one (``related``).

What was tried, on images of dracut, initramfs-tools and Arch's layout with 5 % of the content:

- Growing the sample's size by the number of bytes alone: 2 to 30 % off, most of it chance.
- Blocks drawn by how far each compresses, so that every kind is there in proportion: no better than
  equal distances in the order of the archive, where directories keep kinds together anyway.
- A control with a small window (``zstd -1``) for ``zstd -19``, ``xz``, ``lzma``: 3 to 8 % too
  large, because matches across megabytes are what these gain from.
- One with the same window that searches little (``zstd -3``): 2 to 3 % too large; it finds the long
  repetitions but not the short ones. With a table for long distances only (``--long``): 3 to 7 %.
- One with the same window that searches well (``zstd -6`` with large tables): 1 %. ``zstd -9`` is
  better by half a percent and takes half as long again.
- One that searches little, but with a large table (``zstd -1``, 2^18 entries): as good, but for
  ``lzma``, where slow settings are compared with a fast relative, in a quarter of its time. With
  2^20 entries, a table for long distances in addition, or for shorter matches: no better.
- ``zstd -3`` as a control for windows between those of ``zstd -1`` and that one: no better.
- A window in between, taken from controls below and above it: as good as one of its own.
- Blocks of 512 KiB in place of 128 KiB: fewer of them, so more left to chance (``xz``: 3 %).
  Blocks of 64 KiB: settings with small windows are overstated by 2 to 3 %, for want of history.
- A slow setting's sample alone, 3 % of the content: up to 5 % off, for ``gzip -9`` as for ``xz``;
  with a fast relative on four times as much: 1 to 2 %. With one, 2 MB do as well as 3.5 %; 1 MB
  is up to 5 % off for ``zstd -19`` and ``xz``, and enough for ``gzip -9`` and ``lzop -9``.

What is left over on average is taken off (``Error.bias``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, hypot, log, sqrt
from typing import TYPE_CHECKING

from initadvisor.decide.cost import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


BLOCK_BYTES = 1 << 17
"""How much is taken from one place: a few files, or a part of one."""


_ODDITY_DOUBT = 0.25
_CORRECTION_DOUBT = 4.0
"""How much doubt the square of a deviation adds: with one of 0.1 on real images, little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleBlock:
    """A run of bytes of the content."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How far estimates were from what was then built: ``bias`` and ``log_sd``, as logarithms."""

    bias: float
    log_sd: float


def blocks(whole_bytes: int, sample_bytes: int, *, phase: float) -> tuple[SampleBlock, ...]:
    """Return blocks at equal distances that make up ``sample_bytes`` in all, within one block.

    ``phase``, from 0 up to but not 1, is the place of the first one in its share of the whole. All
    of the whole, as one stretch, where the sample would be most of it.
    """
    there = -(-whole_bytes // BLOCK_BYTES)
    wanted = -(-sample_bytes // BLOCK_BYTES)
    if 2 * wanted > there:
        return (SampleBlock(offset=0, size_bytes=whole_bytes),) if whole_bytes else ()
    places = (int((number + phase) * there / wanted) for number in range(wanted))
    # A sum with a phase next to 1 may be rounded up to the end.
    return tuple(_block(min(place, there - 1), whole_bytes) for place in places)


def thinned(large: Sequence[SampleBlock], sample_bytes: int) -> tuple[SampleBlock, ...]:
    """Return some of the blocks, at equal distances, for ``sample_bytes`` in all, within one."""
    wanted = min(len(large), -(-sample_bytes // BLOCK_BYTES))
    return tuple(large[(2 * number + 1) * len(large) // (2 * wanted)] for number in range(wanted))


def _block(index: int, whole_bytes: int) -> SampleBlock:
    offset = index * BLOCK_BYTES
    return SampleBlock(offset=offset, size_bytes=min(BLOCK_BYTES, whole_bytes - offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A control's result: its window, and its size on the whole and on a sample, in bytes."""

    window_log: float
    whole_bytes: int
    sample_bytes: int

    @property
    def growth(self) -> float:
        """The logarithm of what the whole is longer than the sample."""
        return log(max(self.whole_bytes, 1) / max(self.sample_bytes, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The logarithm of what the whole is longer than the sample, and how far it may be off.

    ``doubt``, one standard deviation, is next to nothing for the images that the errors are known
    of. It grows with the square of how much more there is to the whole than more of the same:
    repetitions far apart, in which compressors are less alike than otherwise.
    """

    log: float
    doubt: float


def growth(ladder: Iterable[Rung], window_log: float, *, in_bytes: float) -> Growth:
    """Return the growth at a window, between controls by the logarithm of the window.

    Beyond the first and the last control it is theirs. ``in_bytes``: the logarithm of what the
    whole is longer than the sample before compression.
    """
    rungs = sorted(ladder, key=lambda rung: rung.window_log)
    found = _between(rungs, window_log)
    oddity = max(abs(rung.growth - in_bytes) for rung in rungs)
    return Growth(log=found, doubt=_ODDITY_DOUBT * oddity**2)


def _between(rungs: Sequence[Rung], window_log: float) -> float:
    for below, above in pairwise(rungs):
        if window_log < above.window_log:
            if window_log <= below.window_log:
                return below.growth
            part = (window_log - below.window_log) / (above.window_log - below.window_log)
            return below.growth + part * (above.growth - below.growth)
    return rungs[-1].growth


def whole_size(
    sample_bytes: int,
    grows: Growth,
    error: Error,
    *,
    sampled_part: float,
    most_bytes: float,
    source: str,
) -> Quantity:
    """Return the size of the whole, from that of the sample and its growth.

    ``sampled_part``: how much of the whole the sample is. What was sampled completely is known but
    for the error of the method, which shrinks with what is left to chance. ``most_bytes``: no
    compressor makes more of the whole.
    """
    left = max(0.0, 1 - sampled_part)
    return Quantity(
        median=min(sample_bytes * exp(grows.log - error.bias * sqrt(left)), most_bytes)
        if left
        else float(sample_bytes) * exp(grows.log),
        log_sd=hypot(error.log_sd, grows.doubt) * sqrt(left),
        source=source,
    )


def related(slow: Growth, fast_small: float, fast_large: float) -> Growth:
    """Return the growth of a slow setting, corrected by how its fast relative does.

    ``slow``: its growth from the small sample. ``fast_small`` and ``fast_large``: the logarithms of
    the size of the whole that the two samples give for the relative. Where they differ, the small
    sample is not like the large one, and what that does to the relative it does to the slow one.
    """
    correction = fast_large - fast_small
    doubt = _CORRECTION_DOUBT * correction**2
    return Growth(log=slow.log + correction, doubt=hypot(slow.doubt, doubt))
