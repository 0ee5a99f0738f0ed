"""Whether boots have become slower: a decision that is looked at anew after every boot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_LEAST = 2
"""Without a second boot nothing is known of the spread."""

_FLOOR_MS = 1.0
"""No machine repeats a boot more closely than this; a few equal values are chance."""

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
