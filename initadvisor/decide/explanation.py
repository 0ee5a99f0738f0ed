"""Why ``recommend`` answers as it does: which facts decide, and where the best setting changes.

Knowing a fact is imitated by keeping only the draws in one of 20 equally likely ranges of it, in
which everything else stays as doubtful as it is. So what the boots taught of several facts together
(that one is large where another is small) is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.arrays import quantiles
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import BestRange, DecidingFact, Factor, Outcome
from initadvisor.decide.costs import populate_times
from initadvisor.decide.decision import gains, outcomes_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from initadvisor.core.estimates import Estimate, Evidence
    from initadvisor.core.settings import Setting
    from initadvisor.decide.arrays import Floats, Integers
    from initadvisor.decide.boot_evidence import ParameterUpdate, PosteriorSummary
    from initadvisor.decide.cost import CandidateFacts
    from initadvisor.decide.costs import ParameterDraws
    from initadvisor.decide.decision import CandidateComparison, Contrast, Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What one fact about the machine means for the decision.

    ``now``: what is known of it, in the unit of ``Parameter``. ``share``: the part of the doubt
    about the contrast that would go if the fact were known, from 0 to 1. ``ranges``: which
    setting would then be the best, over the middle 95 % of what the fact may be. ``turns``: how
    probable it is that this is another one than what is advised.
    """

    what: Parameter
    now: Estimate
    share: float
    ranges: tuple[BestRange, ...]
    turns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationStep:
    """The answer with the evidence up to ``evidence`` and nothing stronger.

    ``used``: how much of that evidence there is: images whose time to unpack it is (bench, lab), or
    boots. The other fields are as in ``Decision``: those of its setting for a switch, those of its
    leader otherwise.
    """

    evidence: Evidence
    used: int
    outcome: Outcome
    leader: Setting
    saving_ms: Estimate
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the answer is what it is.

    ``contrast``: of what is advised and what comes closest to it (what is smallest beside it where
    sizes decide), None where there is nothing else to choose. ``weights``: the facts that decide
    between the two, the weightiest first; none where sizes decide. ``images_share``: the part of
    the doubt that is about single images (their sizes, how long each takes to decompress).
    ``steps``: from the weakest evidence to all of it. ``updates``: what all images share, as it is
    known without this machine's boots, and with them.
    """

    contrast: Contrast | None
    weights: tuple[Weight, ...]
    images_share: float
    steps: tuple[ExplanationStep, ...]
    updates: tuple[ParameterUpdate, ...]


_CLIPPED = 0.02
"""What is further out than this quantile counts as if it were there: a variance of something with
long tails would tell of nothing but them.
"""

_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two candidates by their columns: what is advised, and what comes closest to it."""

    advised: int
    rival: int


def weights(
    parameters: ParameterDraws,
    candidates: Sequence[CandidateFacts],
    found: CandidateComparison,
    summary: PosteriorSummary,
    pair: Pair,
    *,
    baseline: int,
) -> tuple[Weight, ...]:
    """Return what each fact that is not known for certain means, the weightiest first."""
    known = {update.what for update in summary.updates}
    advised = candidates[pair.advised].setting
    doubt = _doubt(found, pair)
    result = []
    for what, values in _facts(parameters, candidates).items():
        if what not in known or _is_certain(values):
            continue
        ranges = stretches_along(found, candidates, what, values, baseline=baseline)
        result.append(
            Weight(
                what=what,
                now=summary.now(what),
                share=_share(doubt, values),
                ranges=ranges,
                turns=sum(
                    float(((stretch.low <= values) & (values < stretch.high)).mean())
                    for stretch in ranges
                    if stretch.setting != advised
                ),
            )
        )
    return tuple(sorted(result, key=lambda weight: weight.share, reverse=True))


def deciding_fact(
    parameters: ParameterDraws,
    candidates: Sequence[CandidateFacts],
    found: CandidateComparison,
    pair: Pair,
    *,
    baseline: int,
    thresholds: Thresholds,
) -> DecidingFact | None:
    """Return which fact, were it known, is likeliest to give a certain decision.

    Of those that are as likely to, it is the one with the largest share of the doubt about the
    pair. None where every fact is known.
    """
    facts = _facts(parameters, candidates)
    doubt = _doubt(found, pair)
    ranked = []
    for factor in Factor:
        values = facts[Parameter(factor)]
        if not _is_certain(values):
            outcomes = list(
                outcomes_within(found, ranges_of(values), baseline=baseline, thresholds=thresholds)
            )
            settled = sum(outcome is not Outcome.UNDECIDED for outcome in outcomes) / len(outcomes)
            ranked.append((settled, _share(doubt, values), factor))
    if not ranked:
        return None
    settled, _, factor = max(ranked)
    what = Parameter(factor)
    return DecidingFact(
        factor=factor,
        settled=settled,
        ranges=stretches_along(found, candidates, what, facts[what], baseline=baseline),
    )


def images_share(parameters: ParameterDraws, found: CandidateComparison, pair: Pair) -> float:
    """Return the part of the doubt about two candidates that is about their images alone."""
    doubt = _doubt(found, pair)
    shares = (
        _share(doubt, of_image[:, column])
        for column in (pair.advised, pair.rival)
        for of_image in (parameters.size_mb, parameters.own_ms * parameters.codec)
        if not _is_certain(of_image[:, column])
    )
    return min(sum(shares), 1.0)


def _facts(
    parameters: ParameterDraws, candidates: Sequence[CandidateFacts]
) -> Mapping[Parameter, Floats]:
    """Return the draws of the facts on which differences between candidates depend."""
    return {
        Parameter.LOADER: 1 / parameters.read_s_per_mb,
        Parameter.SHADOW: parameters.shadow_ms,
        Parameter.CPU: parameters.cpu,
        Parameter.POPULATE: populate_times(parameters, candidates),
        Parameter.LAB: parameters.lab,
    }


def _is_certain(values: Floats) -> bool:
    return bool(np.ptp(values) <= _NEGLIGIBLE * np.abs(values).max())


def _doubt(found: CandidateComparison, pair: Pair) -> Floats:
    """Return the difference of two candidates, without its tails."""
    difference = found.cost_ms[:, pair.advised] - found.cost_ms[:, pair.rival]
    return np.asarray(difference.clip(*quantiles(difference, (_CLIPPED, 1 - _CLIPPED))))


def _share(doubt: Floats, values: Floats) -> float:
    """Return the part of a variance that goes where a fact is known (epsilon squared).

    That is the correlation ratio without what comes of the number of ranges (Kelley 1935).
    """
    whole = float(((doubt - doubt.mean()) ** 2).sum())
    if whole <= _NEGLIGIBLE:
        return 0.0
    groups = [doubt[inside] for inside in ranges_of(values)]
    left = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    unbiased = left / (len(doubt) - len(groups)) * (len(doubt) - 1)
    return float(np.clip(1 - unbiased / whole, 0.0, 1.0))


_BINS = 20
_MIDDLE = (0.025, 0.975)
_HALVINGS = 30


def ranges_of(values: Floats) -> Sequence[Integers]:
    """Return the rows of 20 ranges of a fact that are equally likely, the smallest values first."""
    return np.array_split(np.argsort(values), _BINS)


def stretches_along(
    found: CandidateComparison,
    candidates: Sequence[CandidateFacts],
    what: Parameter,
    values: Floats,
    *,
    baseline: int,
) -> tuple[BestRange, ...]:
    """Return which setting is the best from where to where, over the middle 95 % of a fact.

    Stretches follow each other without a gap, from low to high.
    """
    return tuple(
        BestRange(low=low, high=high, setting=candidates[best].setting)
        for low, high, best in _Along(found, what, values, baseline).ranges()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bin:
    """A range of a fact: its bounds and middle, what each candidate gains there, and the best."""

    low: float
    middle: float
    high: float
    gain_ms: Floats
    best: int


class _Along:
    """Which candidate is the best along a fact: the one with the largest gain (``gains``)."""

    def __init__(
        self, found: CandidateComparison, what: Parameter, values: Floats, baseline: int
    ) -> None:
        self._found, self._what, self._values = found, what, values
        self._gain = gain = gains(found, baseline)
        low, high = quantiles(values, _MIDDLE)
        inside = np.flatnonzero((low <= values) & (values <= high))
        ranges = [inside[rows] for rows in ranges_of(values[inside])]
        self._bins = [
            _Bin(
                low=float(values[rows[0]]),
                middle=float(quantiles(values[rows], (0.5,))[0]),
                high=float(values[rows[-1]]),
                gain_ms=gain[rows].mean(axis=0),
                best=best,
            )
            for rows, best in zip(ranges, _best_in(gain, ranges, baseline), strict=True)
        ]

    def ranges(self) -> Iterator[tuple[float, float, int]]:
        """Yield from where to where which candidate is the best."""
        begins = self._begins()
        ends = [*(low for low, _ in begins[1:]), self._bins[-1].high]
        for (low, best), high in zip(begins, ends, strict=True):
            yield low, high, best

    def _begins(self) -> list[tuple[float, int]]:
        """Return from where on which candidate is the best.

        Crossings are found for two candidates at a time. One that would only begin to be the best
        where the next does already is the best nowhere.
        """
        lowest, highest = self._bins[0].low, self._bins[-1].high
        begins: list[tuple[float, int]] = []
        for number, one in enumerate(self._bins):
            low = lowest
            while begins and begins[-1][1] != one.best:
                low = self._crossing(begins[-1][1], number)
                if low > begins[-1][0]:
                    break
                begins.pop()
                low = lowest
            if low < highest and (not begins or begins[-1][1] != one.best):
                begins.append((low, one.best))
        return begins

    def _crossing(self, former: int, number: int) -> float:
        """Return where the best of a range begins to gain more than one that was before it.

        That may be some ranges off, where the difference is not clear. Between the middles of two
        ranges it is taken to be straight, of the loader in time per byte, in which it is.
        """
        bins = self._bins
        best = bins[number].best
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
        if self._what is Parameter.SHADOW:
            return self._where_hidden(former, best)
        part = ahead[after - 1] / (ahead[after - 1] - ahead[after])
        if self._what is Parameter.LOADER:
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


def _best_in(gain: Floats, ranges: Sequence[Integers], baseline: int) -> Sequence[int]:
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
