"""Repeated measurements of several things, side by side: medians, intervals, is it settled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, hypot, log, sqrt
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_Z95 = 1.96
_Z_SETTLED = 2.6
"""Whoever looks after every round and stops at what pleases needs more than 1.96 (95 % in all)."""

_MEDIAN_SD = 1.2533
"""The standard deviation of a median against that of a mean, for a normal distribution."""

_MAD_TO_SD = 1.4826
_CLIP_SDS = 3.0
_OUTLIER_SDS = 5.0
_OUTLIER_LEAST = 0.1
_LEAST_LOG_SD = 0.002
_UNKNOWN_LOG_SD = 0.1
"""How far samples are taken to scatter where there is only one of each."""

BETWEEN_RUNS_LOG_SD = 0.02
"""How far two runs of the same images are apart beyond what their samples show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """A median of ``count`` samples, and where that of another such run is with 95 % probability.

    ``outliers`` are the samples that are far from the others; a median does not mind them.
    """

    median: float
    low: float
    high: float
    count: int
    outliers: tuple[float, ...]


def log_spread(samples: Mapping[str, Sequence[float]]) -> float:
    """Return the standard deviation of one sample's logarithm, all things taken together.

    Few samples of one thing say little about their spread; those of all do. What is far out is
    counted as if it were three standard deviations out.
    """
    residuals = [
        log(value / median(values)) for values in samples.values() for value in values if value > 0
    ]
    freedom = sum(len(values) - 1 for values in samples.values() if values)
    if freedom < 1:
        return _UNKNOWN_LOG_SD
    shrink = sqrt(len(residuals) / freedom)
    usual = _MAD_TO_SD * median(abs(residual) for residual in residuals) * shrink
    bound = _CLIP_SDS * max(usual, _LEAST_LOG_SD)
    clipped = [min(abs(residual), bound) for residual in residuals]
    return max(_LEAST_LOG_SD, sqrt(sum(value * value for value in clipped) / freedom))


def middles(samples: Mapping[str, Sequence[float]]) -> dict[str, Middle]:
    """Return the median and interval of each thing that has samples (all above 0)."""
    spread = log_spread(samples)
    return {key: _middle(values, spread) for key, values in samples.items() if values}


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
    spread = log_spread(samples)
    ordered = sorted((values for values in samples.values() if values), key=median)
    return all(
        _pair_settled(faster, slower, spread, tolerance, tolerance_fraction)
        for faster, slower in pairwise(ordered)
    )


def _pair_settled(
    faster: Sequence[float],
    slower: Sequence[float],
    spread: float,
    tolerance: float,
    tolerance_fraction: float,
) -> bool:
    low, high = median(faster), median(slower)
    # Taken in turns, both had the same drift, so that only the samples' own spread is left.
    error = _Z_SETTLED * _MEDIAN_SD * spread * sqrt(1 / len(faster) + 1 / len(slower))
    difference = log(high / low)
    matters = log(1 + max(tolerance / low, tolerance_fraction))
    return difference > error or difference + error < matters


def _middle(values: Sequence[float], spread: float) -> Middle:
    middle = median(values)
    # This run's median is as uncertain as the next one's.
    within = _MEDIAN_SD * spread * sqrt(2 / len(values))
    width = _Z95 * hypot(within, BETWEEN_RUNS_LOG_SD)
    far = max(_OUTLIER_SDS * spread, _OUTLIER_LEAST)
    return Middle(
        median=middle,
        low=middle * exp(-width),
        high=middle * exp(width),
        count=len(values),
        outliers=tuple(value for value in values if abs(log(value / middle)) > far),
    )
