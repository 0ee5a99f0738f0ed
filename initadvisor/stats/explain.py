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
        bins = tuple(_bins(found, values, baseline))
        result.append(
            Weight(
                what=what,
                now=lessons.now(what),
                share=_share(doubt, values),
                stretches=tuple(
                    Stretch(low=low, high=high, setting=candidates[best].setting)
                    for low, high, best in _stretches(bins, what)
                ),
                turns=sum(one.best != pair.advised for one in bins) / len(bins),
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


def _bins(found: Standing, values: Floats, baseline: int) -> Iterator[_Bin]:
    """Yield equally likely ranges of a fact, from the smallest values to the largest."""
    gain = found.saving_ms - found.tolerance_ms[:, None]
    gain[:, ~found.eligible] = -np.inf
    gain[:, baseline] = 0.0
    low, high = np.quantile(values, _MIDDLE)
    inside = np.flatnonzero((low <= values) & (values <= high))
    order = inside[np.argsort(values[inside])]
    best = baseline
    for rows in np.array_split(order, _BINS):
        own = gain[rows]
        best = _best_of(own, best)
        yield _Bin(
            low=float(values[rows[0]]),
            middle=float(np.median(values[rows])),
            high=float(values[rows[-1]]),
            gain_ms=own.mean(axis=0),
            best=best,
        )


def _best_of(gain: Floats, previous: int) -> int:
    """Return what gains most on average.

    ``previous``, the best of the range before, stays so unless the difference is larger than two
    standard errors: what comes of few draws is not to look like a fact.
    """
    best = int(gain.mean(axis=0).argmax())
    difference = gain[:, best] - gain[:, previous]
    error = difference.std() / np.sqrt(len(difference))
    return best if difference.mean() > 2 * error else previous


def _stretches(bins: Sequence[_Bin], what: Shared) -> Iterator[tuple[float, float, int]]:
    """Yield from where to where which candidate is the best."""
    low = bins[0].low
    for number, (before, after) in enumerate(pairwise(bins), start=1):
        if after.best != before.best:
            crossing = max(low, _crossing(bins[:number], after, what))
            yield low, crossing, before.best
            low = crossing
    yield low, bins[-1].high, bins[-1].best


def _crossing(earlier: Sequence[_Bin], now: _Bin, what: Shared) -> float:
    """Return where the best of ``now`` began to gain more than the best before it did.

    Between the middles of two ranges it is taken to be straight, of the loader in time per byte, in
    which it is.
    """
    former, best = earlier[-1].best, now.best

    def ahead(one: _Bin) -> float:
        return float(one.gain_ms[best] - one.gain_ms[former])

    later = now
    for one in reversed(earlier):
        if ahead(one) <= 0:
            part = ahead(one) / (ahead(one) - ahead(later))
            if what is Shared.LOADER:
                return 1 / (1 / one.middle + part * (1 / later.middle - 1 / one.middle))
            return one.middle + part * (later.middle - one.middle)
        later = one
    return earlier[-1].high
