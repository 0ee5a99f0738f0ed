"""Repeated measurements: medians, intervals, is it settled; and runs pooled into one figure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, hypot, log, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from initadvisor.decide.cost import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Runs = Sequence[Sequence[float]]


_Z95 = 1.96
_Z_SETTLED = 2.6
"""Whoever looks after every round and stops at what pleases needs more than 1.96 (95 % in all)."""

_MEDIAN_SD = 1.2533
"""The standard deviation of a median against that of a mean, for a normal distribution."""

_MAD_TO_SD = 1.4826
_OUTLIER_SDS = 5.0
_OUTLIER_LEAST = 0.1
_LEAST_LOG_SD = 0.002
_UNKNOWN_LOG_SD = 0.1
"""How far samples are taken to scatter where there is only one of each."""

_ENOUGH_REPEATS = 7
"""Samples beyond the first of each thing from which a spread can be told: with fewer, intervals
that claim 95 % hold 88 to 94 % (simulated, for a spread well above that between runs)."""

_ENOUGH_TO_DRAW_FROM = 8
_DRAWS = 2000
_SEED = 1

BETWEEN_RUNS_LOG_SD = 0.02
"""How far two runs of the same images are apart beyond what their samples show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """A median of ``count`` samples, and where that of another such run is with 95 % probability.

    ``outliers`` are the samples that are far from the others; a median does not mind them.
    ``assumed``: too few samples were repeated to tell how far they scatter, or this one was not, so
    that ``low`` and ``high`` rest on an assumption: they are for planning, not to be shown.
    """

    median: float
    low: float
    high: float
    count: int
    outliers: tuple[float, ...]
    assumed: bool


def log_spread(samples: Mapping[str, Sequence[float]]) -> float:
    """Return the standard deviation of one sample's logarithm, all things taken together.

    Few samples of one thing say little about their spread; those of all do. It is that of the bulk,
    from the median distance to the median: how far out a disturbed sample is tells nothing of the
    others.
    """
    distances = [abs(residual) for values in samples.values() for residual in _residuals(values)]
    if not distances:
        return _UNKNOWN_LOG_SD
    return max(_LEAST_LOG_SD, _MAD_TO_SD * median(distances))


def _residuals(values: Sequence[float]) -> list[float]:
    """Return how far the logarithms of samples are from their median, corrected for their number.

    Of an odd number one is the median itself, which tells nothing. Of an even number the median is
    between two, and nearer to them than the true one is; the factor was found by simulation.
    """
    if len(values) < 2:
        return []
    middle = median(values)
    residuals = sorted((log(value / middle) for value in values), key=abs)
    if len(values) % 2:
        return residuals[1:]
    return [residual * (1 + 1.5 / len(values)) for residual in residuals]


def median_error(samples: Mapping[str, Sequence[float]], count: int) -> float:
    """Return the standard error (of the logarithm) of a median of ``count`` samples.

    What samples scatter like is taken from all things together, and how their median scatters from
    drawing such samples again and again: disturbances make some longer, and no formula for a bell
    curve knows how often a median of few is among those. It is such that 1.96 times the error of
    two medians is what their difference stays below with 95 % probability.
    """
    import numpy as np

    from initadvisor.decide.arrays import quantiles

    spread = log_spread(samples)
    usual = _MEDIAN_SD * spread / sqrt(count)
    residuals = [residual for values in samples.values() for residual in _residuals(values)]
    if len(residuals) < _ENOUGH_TO_DRAW_FROM:
        return usual
    drawn = np.random.default_rng(_SEED).choice(residuals, (_DRAWS, 2, count))
    apart = np.abs(np.diff(np.median(drawn, axis=2), axis=1))
    return max(usual, float(quantiles(apart.ravel(), (0.95,))[0]) / (_Z95 * sqrt(2)))


def middles(samples: Mapping[str, Sequence[float]]) -> dict[str, Middle]:
    """Return the median and interval of each thing that has samples (all above 0)."""
    spread = log_spread(samples)
    errors = {n: median_error(samples, n) for n in {len(v) for v in samples.values() if v}}
    repeats = sum(len(values) - 1 for values in samples.values() if values)
    return {
        key: _middle(
            values,
            spread,
            errors[len(values)],
            assumed=len(values) < 2 or repeats < _ENOUGH_REPEATS,
        )
        for key, values in samples.items()
        if values
    }


def is_precise(samples: Mapping[str, Sequence[float]], *, within: float) -> bool:
    """Tell whether every interval is at most this part of its median wide, either way."""
    return all(
        max(shown.high / shown.median, shown.median / shown.low) <= 1 + within
        for shown in middles(samples).values()
    )


def is_settled(
    samples: Mapping[str, Sequence[float]], *, tolerance: float, tolerance_fraction: float
) -> bool:
    """Tell whether the order is certain, as far as it matters.

    Two neighbours are settled when their difference is certain (95 %), or certainly below the
    tolerance: the larger of ``tolerance`` (in the samples' unit) and a fraction of the smaller.
    """
    ordered = sorted((values for values in samples.values() if values), key=median)
    errors = {count: median_error(samples, count) for count in {len(v) for v in ordered}}
    return all(
        _pair_settled(
            median(faster),
            median(slower),
            hypot(errors[len(faster)], errors[len(slower)]),
            tolerance,
            tolerance_fraction,
        )
        for faster, slower in pairwise(ordered)
    )


def _pair_settled(
    low: float, high: float, error: float, tolerance: float, tolerance_fraction: float
) -> bool:
    # Taken in turns, both had the same drift, so that only the samples' own spread is left.
    error *= _Z_SETTLED
    difference = log(high / low)
    matters = log(1 + max(tolerance / low, tolerance_fraction))
    return difference > error or difference + error < matters


def _middle(values: Sequence[float], spread: float, error: float, *, assumed: bool) -> Middle:
    middle = median(values)
    # This run's median is as uncertain as the next one's.
    width = _Z95 * hypot(sqrt(2) * error, BETWEEN_RUNS_LOG_SD)
    far = max(_OUTLIER_SDS * spread, _OUTLIER_LEAST)
    return Middle(
        median=middle,
        low=middle * exp(-width),
        high=middle * exp(width),
        count=len(values),
        outliers=tuple(value for value in values if abs(log(value / middle)) > far),
        assumed=assumed,
    )


def pooled(subjects: Mapping[str, Runs], *, source: str) -> dict[str, Quantity]:
    """Return the median of each subject, and how far another run's median may be from it.

    ``subjects`` has for each subject the positive samples of its runs; no run is empty. How much
    samples scatter, within a run and from run to run, is taken from all subjects together, because
    one alone has too few of either. Runs are compared by their medians, so that one disturbed boot
    does not decide.
    """
    known = {name: runs for name, runs in subjects.items() if runs}
    every = {
        f"{name} {number}": run for name, runs in known.items() for number, run in enumerate(runs)
    }
    medians = {name: [log(median(run)) for run in runs] for name, runs in known.items()}
    between = _between(list(medians.values()))
    figures = {}
    for name, values in medians.items():
        counts = [len(run) for run in known[name]]
        error = median_error(every, round(fmean(counts)))
        run_sd = max(between, hypot(error, BETWEEN_RUNS_LOG_SD))
        figures[name] = Quantity(
            median=exp(fmean(values, weights=counts)),
            # Another run differs from the true value as these do, whose mean differs, too.
            log_sd=run_sd * sqrt(1 + 1 / len(values)),
            source=source,
        )
    return figures


def _between(medians: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of runs around their subject's mean, 0 where none has two.

    Widened by how uncertain one is that few runs tell: the first term by which Student's t exceeds
    the normal distribution at 95 %.
    """
    freedom = sum(len(values) - 1 for values in medians)
    if not freedom:
        return 0.0
    squares = sum((value - fmean(values)) ** 2 for values in medians for value in values)
    return sqrt(squares / freedom) * (1 + (_Z95**2 + 1) / (4 * freedom))
