"""Which facts about a machine decide between two candidates, and where the best one changes.

Knowing a fact is imitated by keeping only the draws in one of 20 equally likely ranges of it, in
which everything else stays as doubtful as it is. So what the boots taught of several facts together
(that one is large where another is small) is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.boot_evidence import Shared
from initadvisor.model.cost import Stretch
from initadvisor.model.explanation import Weight
from initadvisor.stats.costs import populate_times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from initadvisor.model.boot_evidence import Lessons
    from initadvisor.model.cost import CandidateFacts
    from initadvisor.stats.costs import Parts
    from initadvisor.stats.decision import Standing

    Floats = NDArray[np.float64]

_BINS = 20
_CLIPPED = 0.02
"""What is further out than this quantile counts as if it were there: a variance of something with
long tails would tell of nothing but them.
"""

_MIDDLE = (0.025, 0.975)
_HALVINGS = 30
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two candidates by their columns: what is advised, and what comes closest to it."""

    advised: int
    rival: int


def weights(
    parts: Parts,
    candidates: Sequence[CandidateFacts],
    found: Standing,
    lessons: Lessons,
    pair: Pair,
    *,
    baseline: int,
) -> tuple[Weight, ...]:
    """Return what each fact that is not known for certain means, the weightiest first."""
    known = {learnt.what for learnt in lessons.learnt}
    doubt = _doubt(found, pair)
    result = []
    for what, values in _facts(parts, candidates).items():
        if what not in known or _is_certain(values):
            continue
        stretches = tuple(_Along(found, what, values, baseline).stretches())
        result.append(
            Weight(
                what=what,
                now=lessons.now(what),
                share=_share(doubt, values),
                stretches=tuple(
                    Stretch(low=low, high=high, setting=candidates[best].setting)
                    for low, high, best in stretches
                ),
                turns=sum(
                    float(((low <= values) & (values < high)).mean())
                    for low, high, best in stretches
                    if best != pair.advised
                ),
            )
        )
    return tuple(sorted(result, key=lambda weight: weight.share, reverse=True))


def images_share(parts: Parts, found: Standing, pair: Pair) -> float:
    """Return the part of the doubt about two candidates that is about their images alone."""
    doubt = _doubt(found, pair)
    shares = (
        _share(doubt, of_image[:, column])
        for column in (pair.advised, pair.rival)
        for of_image in (parts.size_mb, parts.own_ms)
        if not _is_certain(of_image[:, column])
    )
    return min(sum(shares), 1.0)


def _facts(parts: Parts, candidates: Sequence[CandidateFacts]) -> Mapping[Shared, Floats]:
    """Return the draws of the facts on which differences between candidates depend."""
    return {
        Shared.LOADER: 1 / parts.read_s_per_mb,
        Shared.SHADOW: parts.shadow_ms,
        Shared.CPU: parts.cpu,
        Shared.POPULATE: populate_times(parts, candidates),
        Shared.LAB: parts.lab,
    }


def _is_certain(values: Floats) -> bool:
    return bool(np.ptp(values) <= _NEGLIGIBLE * np.abs(values).max())


def _doubt(found: Standing, pair: Pair) -> Floats:
    """Return the difference of two candidates, without its tails."""
    difference = found.cost_ms[:, pair.advised] - found.cost_ms[:, pair.rival]
    return np.asarray(difference.clip(*np.quantile(difference, [_CLIPPED, 1 - _CLIPPED])))


def _share(doubt: Floats, values: Floats) -> float:
    """Return the part of a variance that goes where a fact is known (epsilon squared).

    That is the correlation ratio without what comes of the number of ranges (Kelley 1935).
    """
    whole = float(((doubt - doubt.mean()) ** 2).sum())
    if whole <= _NEGLIGIBLE:
        return 0.0
    groups = [doubt[inside] for inside in np.array_split(np.argsort(values), _BINS)]
    left = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    unbiased = left / (len(doubt) - len(groups)) * (len(doubt) - 1)
    return float(np.clip(1 - unbiased / whole, 0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bin:
    """A range of a fact: its bounds and middle, what each candidate gains there, and the best."""

    low: float
    middle: float
    high: float
    gain_ms: Floats
    best: int


class _Along:
    """Which candidate is the best along a fact.

    A gain is a saving beyond the tolerance; today's gains nothing and what may not be chosen never.
    """

    def __init__(self, found: Standing, what: Shared, values: Floats, baseline: int) -> None:
        self._found, self._what, self._values = found, what, values
        self._gain = gain = found.saving_ms - found.tolerance_ms[:, None]
        gain[:, ~found.eligible] = -np.inf
        gain[:, baseline] = 0.0
        low, high = np.quantile(values, _MIDDLE)
        inside = np.flatnonzero((low <= values) & (values <= high))
        ranges = np.array_split(inside[np.argsort(values[inside])], _BINS)
        self._bins = [
            _Bin(
                low=float(values[rows[0]]),
                middle=float(np.median(values[rows])),
                high=float(values[rows[-1]]),
                gain_ms=gain[rows].mean(axis=0),
                best=best,
            )
            for rows, best in zip(ranges, _best_in(gain, ranges, baseline), strict=True)
        ]

    def stretches(self) -> Iterator[tuple[float, float, int]]:
        """Yield from where to where which candidate is the best."""
        bins = self._bins
        low = bins[0].low
        for number, (before, after) in enumerate(pairwise(bins), start=1):
            if after.best != before.best:
                crossing = max(low, self._crossing(number))
                yield low, crossing, before.best
                low = crossing
        yield low, bins[-1].high, bins[-1].best

    def _crossing(self, number: int) -> float:
        """Return where the best of a range begins to gain more than that of the range before it.

        That may be some ranges off, where the difference is not clear. Between the middles of two
        ranges it is taken to be straight, of the loader in time per byte, in which it is.
        """
        bins = self._bins
        former, best = bins[number - 1].best, bins[number].best
        ahead = [float(one.gain_ms[best] - one.gain_ms[former]) for one in bins]
        after = number
        if ahead[number] > 0:
            while after > 0 and ahead[after - 1] > 0:
                after -= 1
        else:
            while after < len(bins) and ahead[after] <= 0:
                after += 1
        if not 0 < after < len(bins):
            return bins[number].low
        low, high = bins[after - 1].middle, bins[after].middle
        if self._what is Shared.SHADOW:
            return self._where_hidden(former, best)
        part = ahead[after - 1] / (ahead[after - 1] - ahead[after])
        if self._what is Shared.LOADER:
            return 1 / (1 / low + part * (1 / high - 1 / low))
        return low + part * (high - low)

    def _where_hidden(self, former: int, best: int) -> float:
        """Return the shadow with which two candidates gain the same.

        The difference bends where the shadow begins to hide what one of them takes, and of shadows
        there may be none for a long way. So what both wait is computed; what else they differ by
        does not depend on the shadow.
        """
        unpack_ms = self._found.unpack_ms[:, [former, best]]
        gains = self._gain[:, best] - self._gain[:, former]

        def waited(shadow_ms: float | Floats) -> float:
            each = np.maximum(shadow_ms, unpack_ms).mean(axis=0)
            return float(each[0] - each[1])

        enough = waited(self._values[:, None]) - float(gains.mean())
        low, high = self._bins[0].low, self._bins[-1].high
        more = waited(high) > enough
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if (waited(middle) > enough) is more:
                high = middle
            else:
                low = middle
        return high


def _best_in(gain: Floats, ranges: Sequence[NDArray[np.int64]], baseline: int) -> Sequence[int]:
    """Return what gains most on average in each range.

    The best of the range before stays so unless the difference is clear. There is none before the
    first one, so that of the last one is where all begins again, from the other end.
    """
    best = baseline
    for rows in ranges:
        best = _best_of(gain[rows], best)
    result = []
    for rows in reversed(ranges):
        best = _best_of(gain[rows], best)
        result.append(best)
    return result[::-1]


def _best_of(gain: Floats, previous: int) -> int:
    """Return what gains most on average.

    ``previous`` is, unless the difference is larger than two standard errors: what comes of few
    draws is not to look like a fact.
    """
    best = int(gain.mean(axis=0).argmax())
    difference = gain[:, best] - gain[:, previous]
    error = difference.std() / np.sqrt(len(difference))
    return best if difference.mean() > 2 * error else previous
