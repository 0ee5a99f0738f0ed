"""What boots tell of the loader: r, its time per byte, and L, what every candidate pays.

An interval that contains the reading is A + r * size, and what else is in it is hardly known: A may
be anything from reading the kernel upwards. So boots of one size bound r from above and tell next
to nothing else of it: whatever r is not, A is. Of different sizes the slope is r. Only intervals of
one class and one kind are held against each other, because A is another one in others; r is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.arrays import quantiles
from initadvisor.decide.costs import quantity_at
from initadvisor.decide.posterior.groups import grouped, location, scatter
from initadvisor.decide.posterior.smc import log_logistic, log_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.decide.arrays import Booleans, Floats, Integers
    from initadvisor.decide.cost import CandidateFacts, Machine
    from initadvisor.decide.costs import ParameterDraws
    from initadvisor.decide.posterior.boot_summary import Columns, IntervalGroup


READ_LOG_SD = 0.12
_SAME_SIZE_LOG_SD = 0.01
"""How far single intervals are apart before repeats tell, and by how much the reading of one file
may differ from that of another of its size.
"""

_LEAST_SHARED = 0.1
"""Reading is taken to be at least such a part of an interval: a slope may be no slope at all."""

_NEAR_LOG_SD = 0.2
"""How far r may have been another one in boots of another class."""

_SAME_SIZE = 1000.0
"""Sizes are one where they agree within 1 part in so many: page-rounded and exact ones do."""

_SIZES = 1 << 16
_MOST_SIZES = 24
_MOST_LINES = 16
_ROBUST_FREEDOM = 4.0
_MOST_FREEDOM = 30.0
_ROUNDS = 10
_GRID = 768
_GRID_SDS = 5.0
_NOWHERE = 25.0
"""Where the logarithm of a density is so much less than where it is highest, there is none."""

_LEVELS = 15
_LEVEL_SDS = 3.0
_REDRAWS = 10

_BESIDE_LOG_SD = 1.75
"""How far what else is in an interval may be from what every candidate is taken to pay (L): a
factor of 30 (firmware starts its drivers, hashes the kernel, measures it into a TPM). As likely it
is not at all like that but anything up to the whole interval.

By simulation: with this one size leaves r's median where it was, and the 95 % intervals of r and of
savings hold the truth in 92 to 94 % of machines like those expected and in 96 % of machines where L
is 20 times that. With anything up to the whole interval alone it is 85 % of the former, with L as
expected alone 43 % of the latter.
"""

_LEAST_MS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """Intervals of one line by size: at ``centre_mb`` the line is at ``centre_ms``.

    ``slope_s_per_mb``: r with its precision (1 / variance), 0 where there is one size only.
    """

    line: IntervalGroup
    centre_mb: float
    centre_ms: float
    centre_sd_ms: float
    slope_s_per_mb: float
    slope_precision: float
    freedom: float
    sizes: int
    boots: int

    def read_mb(self, kernel_mb: float) -> float:
        """Return how much is read within the interval of an image in the centre."""
        return self.centre_mb + (kernel_mb if self.line.has_kernel else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSummary:
    """What boots tell of the loader.

    ``beside_mb``: how much more is loaded than the image (microcode, what a stub adds).
    ``log_sd``: how far intervals of one size are apart. ``used``: for each boot, whether it tells
    any of this.
    """

    lines: tuple[ReadLine, ...]
    beside_mb: float
    log_sd: float
    used: Booleans

    @property
    def sizes(self) -> int:
        """How many different sizes the slope rests on, where it rests on most."""
        return max((line.sizes for line in self.lines), default=0)

    @property
    def today(self) -> ReadLine | None:
        """The line that today's boots are on: without a menu, if possible, and of most boots."""
        same = [found for found in self.lines if not found.line.near]
        return max(same, key=lambda f: (not f.line.may_have_menu, f.boots), default=None)


def summarise_reading(boots: Columns, candidates: Sequence[CandidateFacts]) -> ReadSummary:
    """Return the lines that boots are on."""
    known = (boots.line >= 0) & ~np.isnan(boots.read_ms) & ~np.isnan(boots.loaded_mb)
    sizes = np.round(_SAME_SIZE * np.log(boots.loaded_mb[known])).astype(np.int64)
    number = boots.line[known] * _SIZES + sizes + _SIZES // 2
    groups = grouped(np.log(boots.read_ms[known]), number)
    spread = scatter(groups, READ_LOG_SD)
    middle = groups.middle(spread)
    owners = groups.keys // _SIZES
    size = np.exp((groups.keys % _SIZES - _SIZES // 2) / _SAME_SIZE)
    boots_of = np.bincount(owners, weights=groups.count.astype(np.float64))
    owned = np.flatnonzero(boots_of)
    near = np.array([line.near for line in boots.lines])[owned]
    lines = []
    for owner in owned[np.lexsort((owned, -boots_of[owned], near))[:_MOST_LINES]]:
        own = np.flatnonzero(owners == owner)
        own = own[_most_telling(size[own], groups.count[own])]
        lines.append(_fitted(boots.lines[owner], size[own], middle[own], groups.count[own], spread))
    return ReadSummary(
        lines=tuple(lines), beside_mb=_beside(boots, candidates), log_sd=spread, used=known
    )


def _most_telling(size: Floats, count: Integers) -> Integers:
    """Return the sizes of most boots, in their order; of as many, those furthest out."""
    off = np.abs(size - quantiles(size, (0.5,))[0])
    return np.sort(np.lexsort((size, -off, -count))[:_MOST_SIZES])


def _beside(boots: Columns, candidates: Sequence[CandidateFacts]) -> float:
    sizes = np.array([candidate.size_mb.median for candidate in candidates])
    known = ~boots.near & (boots.own_column >= 0) & ~np.isnan(boots.loaded_mb)
    more = boots.loaded_mb[known] - sizes[boots.own_column[known]]
    return max(0.0, float(quantiles(more, (0.5,))[0])) if more.size else 0.0


def _fitted(
    line: IntervalGroup, size: Floats, logs: Floats, count: Integers, spread: float
) -> ReadLine:
    """Fit a line that single sizes, if disturbed, do not bend."""
    read = np.exp(logs)
    own_ms = read * np.array([location(0.0, int(n), sd=spread, floor=0.0).sd for n in count])
    shared_ms = _SAME_SIZE_LOG_SD * read
    weight = 1 / (own_ms**2 + shared_ms**2)
    slope, level = _best_pair(size, read, weight)
    centre = float(size.mean())
    level += slope * centre
    trusted = weight
    for _ in range(_ROUNDS):
        if len(size) > 1:
            # What boots of one size share is how its file is read, not what else takes its time.
            part = np.clip(slope * size, _LEAST_SHARED * read, read)
            weight = 1 / (own_ms**2 + (_SAME_SIZE_LOG_SD * part) ** 2)
        squares = weight * (read - level - slope * (size - centre)) ** 2
        trusted = weight * np.minimum(1, (_ROBUST_FREEDOM + 1) / (_ROBUST_FREEDOM + squares))
        centre, level = float(np.average(size, weights=trusted)), np.average(read, weights=trusted)
        if len(size) > 1:
            off = size - centre
            slope = float(trusted @ (off * read) / (trusted @ off**2))
    return ReadLine(
        line=line,
        centre_mb=centre,
        centre_ms=float(level),
        centre_sd_ms=float(trusted.sum()) ** -0.5,
        slope_s_per_mb=slope / 1000,
        slope_precision=float(trusted @ (size - centre) ** 2) * 1e6 if len(size) > 1 else 0.0,
        freedom=min(_ROBUST_FREEDOM - 1 + float(count.sum()), _MOST_FREEDOM),
        sizes=1 + int((np.diff(np.log(size)) > 1.5 / _SAME_SIZE).sum()),
        boots=int(count.sum()),
    )


def _best_pair(size: Floats, read: Floats, weight: Floats) -> tuple[float, float]:
    """Return slope and level at 0 of the line through two points that fits all of them best.

    Least squares would begin at a line that one disturbed boot has bent already.
    """
    first, second = np.triu_indices(len(size), k=1)
    if not first.size:
        return 0.0, float(read[0])
    slopes = (read[second] - read[first]) / (size[second] - size[first])
    levels = read[first] - slopes * size[first]
    off = read - levels[:, None] - slopes[:, None] * size
    misfit = np.log1p(weight * off**2 / _ROBUST_FREEDOM).sum(axis=1)
    best = int(misfit.argmin())
    return float(slopes[best]), float(levels[best])


def draw_reading(
    rng: np.random.Generator, machine: Machine, reading: ReadSummary, prior: ParameterDraws
) -> tuple[Floats, Floats]:
    """Draw r (in s per MB) and L without reading the kernel (in ms), given what boots tell.

    Without boots of the same class L is only as known as before.
    """
    count = len(prior.fixed_ms)
    read_s_per_mb = _draw_slope(rng, machine, reading, count)
    today = reading.today
    if today is None:
        return read_s_per_mb, prior.fixed_ms
    if today.line.may_have_menu:
        most = today.centre_ms - read_s_per_mb * 1000 * today.read_mb(machine.kernel_mb)
        return read_s_per_mb, _at_most(rng, prior.fixed_ms, np.maximum(most, 0.0))
    logs, left = _left(today, machine, read_s_per_mb)
    reached = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
    which = (reached < rng.random(count) * reached[-1]).sum(axis=0).clip(max=_LEVELS - 1)
    step = 2 * _LEVEL_SDS / (_LEVELS - 1) * today.centre_sd_ms
    fixed = left[which, np.arange(count)] + (rng.random(count) - 0.5) * step
    fixed += read_s_per_mb * 1000 * reading.beside_mb
    return read_s_per_mb, np.maximum(fixed, 0.0)


def _draw_slope(
    rng: np.random.Generator, machine: Machine, reading: ReadSummary, count: int
) -> Floats:
    """Draw r from its density at points of its logarithm, which is known exactly there.

    Few points show where it is at all, the others lie there.
    """
    prior = machine.read_s_per_mb
    steps = np.linspace(-_GRID_SDS, _GRID_SDS, _GRID)
    same, near = _told(machine, reading, steps)
    if prior.log_sd and near.any():
        log_sd = min(prior.log_sd, prior.log_sd_below or prior.log_sd)
        near = _blurred(near, _NEAR_LOG_SD / (log_sd * (steps[1] - steps[0])))
    density = same + near - steps**2 / 2
    there = np.flatnonzero(density > density.max() - _NOWHERE)
    low, high = max(there[0] - 1, 0), min(there[-1] + 1, _GRID - 1)
    points = np.linspace(steps[low], steps[high], _GRID)
    density = _told(machine, reading, points)[0] + np.interp(points, steps, near) - points**2 / 2
    mass = np.cumsum(np.exp(density - density.max()))
    at = np.searchsorted(mass, rng.random(count) * mass[-1])
    between = points[at] + (rng.random(count) - 0.5) * (points[1] - points[0])
    return quantity_at(prior, between)


def _told(machine: Machine, reading: ReadSummary, steps: Floats) -> tuple[Floats, Floats]:
    """Return what boots say of r, those of the same class and those of others (logarithms).

    That reading takes no longer than the interval counts once, for the line of today's boots where
    there is one: it is the same loader's in every class. Of the other lines only the slope counts.
    """
    prior = machine.read_s_per_mb
    slopes = quantity_at(prior, steps)
    told = {near: np.zeros(len(steps)) for near in (False, True)}
    for found in reading.lines:
        told[found.line.near] += _of_slope(found, slopes)
    main = reading.today or reading.lines[0]
    if main.line.may_have_menu:
        told[main.line.near] += _of_bound(main, slopes, machine.kernel_mb)
    else:
        told[main.line.near] += log_sum(_left(main, machine, slopes)[0])
    return told[False], told[True]


def _left(found: ReadLine, machine: Machine, slopes: Floats) -> tuple[Floats, Floats]:
    """Return what is left of an interval when all has been read (in ms), and how likely that is.

    A row for each of some places where the line may be, a column for each r. The likelihood, a
    logarithm, is that of the line being there and of so much being left.
    """
    places = np.linspace(-_LEVEL_SDS, _LEVEL_SDS, _LEVELS)[:, None]
    read_ms = slopes * 1000 * found.read_mb(machine.kernel_mb)
    left = np.maximum(found.centre_ms + places * found.centre_sd_ms - read_ms, _LEAST_MS)
    prior = machine.fixed_ms
    blur = np.hypot(prior.log_sd, _BESIDE_LOG_SD)
    off = np.log(left / prior.median) / blur
    there = -(found.freedom + 1) / 2 * np.log1p(places**2 / found.freedom)
    expected = np.exp(-(off**2) / 2) / (left * blur * np.sqrt(2 * np.pi))
    anything = np.where(left > _LEAST_MS, 1 / found.centre_ms, 0.0)
    return there + np.log(anything + expected), left


def _blurred(log_likelihood: Floats, sd_steps: float) -> Floats:
    """Return what is left where each point may as well be one so many steps away (one sd).

    Boots of other classes are blurred together: they may all differ from today's in the same way.
    """
    ends = np.pad(np.exp(log_likelihood - log_likelihood.max()), _GRID, mode="edge")
    frequency = np.fft.rfftfreq(len(ends))
    gain = np.exp(-2 * (np.pi * frequency * sd_steps) ** 2)
    blurred = np.fft.irfft(np.fft.rfft(ends) * gain, len(ends))[_GRID:-_GRID]
    return np.log(np.maximum(blurred, 1e-12))


def _of_slope(found: ReadLine, slopes: Floats) -> Floats:
    """Return how likely a line's own slope is with each r (a logarithm)."""
    off = found.slope_precision * (slopes - found.slope_s_per_mb) ** 2
    return np.asarray(-(found.freedom + 1) / 2 * np.log1p(off / found.freedom))


def _of_bound(found: ReadLine, slopes: Floats, kernel_mb: float) -> Floats:
    """Return how likely it is with each r that reading takes no longer than the interval."""
    left = found.centre_ms - slopes * 1000 * found.read_mb(kernel_mb)
    return log_logistic(left / found.centre_sd_ms)


def _at_most(rng: np.random.Generator, values: Floats, most: Floats) -> Floats:
    """Return draws like ``values``, each at most as large as its bound."""
    kept = np.minimum(values, most)
    for _ in range(_REDRAWS):
        over = np.flatnonzero(values > most)
        values = values.copy()
        values[over] = rng.choice(values, len(over))
        kept = np.where(values > most, kept, values)
    return kept
