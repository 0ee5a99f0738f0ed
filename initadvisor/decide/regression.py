"""Boots before a change and since: have they become slower, looked at anew after every boot.

And what the change saves, with an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median, variance
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_LEAST = 2
"""Without a second boot nothing is known of the spread."""

_FLOOR_MS = 1.0
"""No machine repeats a boot more closely than this; a few equal values are chance."""

_OUTSIDE = 0.025
"""Of a 95 % interval, on either side."""

_MEDIAN_SD = 1.2533
"""The standard deviation of a median against that of a mean, of many; of two they are the same."""

_STEPS = 100
_NO_FREEDOM_LOST = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """What boots since a change take longer than those before, and how sure it is.

    ``doubt``: how probable so large a difference would be if nothing that matters had changed.
    ``allowed``: how much of that is allowed at this look. Nothing is known (``doubt`` is 1) while
    there are too few boots.
    """

    boots_before: int
    boots_after: int
    slower_ms: float
    doubt: float
    allowed: float

    @property
    def certain(self) -> bool:
        """Whether it is to be acted on."""
        return self.doubt <= self.allowed


def regression(
    before_ms: Sequence[float], after_ms: Sequence[float], *, tolerance_ms: float, certainty: float
) -> Regression:
    """Compare the boots before a change with those since.

    ``tolerance_ms``: a difference that does not matter. Means are compared as Welch does, so that
    spreads may differ; a disturbed boot widens the spread and makes for caution. Whoever looks
    after every boot would find a difference in the end where there is none. So 1 / (n (n - 1)) of
    the doubt that ``certainty`` leaves is allowed at the look with n boots: all looks together
    are wrong no more often than 1 - ``certainty``, however many there are.
    """
    before, after = len(before_ms), len(after_ms)
    if before < _LEAST or after < _LEAST:
        return Regression(
            boots_before=before, boots_after=after, slower_ms=0.0, doubt=1.0, allowed=0.0
        )
    slower_ms = fmean(after_ms) - fmean(before_ms)
    parts = [max(variance(values), _FLOOR_MS**2) / len(values) for values in (before_ms, after_ms)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (before - 1) + parts[1] ** 2 / (after - 1))
    doubt = _beyond((slower_ms - tolerance_ms) / math.sqrt(sum(parts)), freedom)
    return Regression(
        boots_before=before,
        boots_after=after,
        slower_ms=slower_ms,
        doubt=doubt,
        allowed=(1 - certainty) / (after * (after - 1)),
    )


def median_saving(
    before_ms: Sequence[float], after_ms: Sequence[float]
) -> tuple[float, float, float] | None:
    """Return what boots since a change take less than those before, and its 95 % interval.

    The spread is taken to be the same of both, so that one boot of the one is enough; None where
    there are not three in all, or none of one. Of two or three it is hardly known, and the interval
    is wide for that.
    """
    samples = (before_ms, after_ms)
    freedom = sum(map(len, samples)) - 2
    if not all(samples) or freedom < 1:
        return None
    squares = sum(variance(values) * (len(values) - 1) for values in samples if len(values) > 1)
    spread = max(math.sqrt(squares / freedom), _FLOOR_MS)
    error = spread * math.hypot(*(_median_error(len(values)) for values in samples))
    saved, width = median(before_ms) - median(after_ms), _outside(freedom) * error
    return saved, saved - width, saved + width


def _median_error(count: int) -> float:
    """Return the standard error of a median, by the spread of the samples."""
    return (_MEDIAN_SD if count > _LEAST else 1.0) / math.sqrt(count)


def _outside(freedom: float) -> float:
    """Return beyond which value, on either side, Student's distribution has 5 %."""
    low, high = 0.0, 20.0
    for _ in range(_STEPS // 2):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, freedom) > _OUTSIDE else (low, middle)
    return high


def _beyond(t: float, freedom: float) -> float:
    """Return how probable a value above ``t`` is in Student's distribution.

    Its density becomes a power of the cosine with t = sqrt(freedom) tan(angle), which is smooth on
    a bounded interval: Simpson's rule is enough, from the end where the tail is.
    """
    if freedom > _NO_FREEDOM_LOST:
        return 0.5 * math.erfc(t / math.sqrt(2))
    if t < 0:
        return 1.0 - _beyond(-t, freedom)
    low, high = math.atan(t / math.sqrt(freedom)), math.pi / 2
    step = (high - low) / _STEPS
    total = 0.0
    for number in range(_STEPS + 1):
        weight = 1 if number in {0, _STEPS} else 4 if number % 2 else 2
        total += weight * max(math.cos(low + number * step), 0.0) ** (freedom - 1)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return math.exp(scale) / math.sqrt(math.pi) * total * step / 3
