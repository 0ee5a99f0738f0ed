"""From draws to a decision: switch where a gain is expected that hardly ever is a loss.

And what two candidates differ by, and which one comes closest to what was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.arrays import quantiles
from initadvisor.decide.cost import Advice, Decision, Outcome
from initadvisor.decide.costs import summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.arrays import Booleans, Floats, Integers
    from initadvisor.decide.cost import CandidateFacts
    from initadvisor.decide.costs import Draws


_EVEN = 0.5
_LITTLE = 0.35
"""An expected loss up to such a part of the tolerance is not worth another boot.

With half of it, answers are wrong too often where boots scatter by 12 %: benchmarks/decision.py.
"""

_NEWTON_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a difference counts: if it is more than ``tolerance_ms`` and more than
    ``tolerance_fraction`` of what today's image takes; and how certain an answer has to be.
    """

    tolerance_ms: float = 5.0
    tolerance_fraction: float = 0.02
    certainty: float = 0.95

    def tolerance(self, todays_ms: Floats) -> Floats:
        """Return the difference that does not matter, in ms.

        ``todays_ms``: r * size + max(B1, U) of today's image. L and B2 never count: what every
        image costs says nothing of how much a difference between images is.
        """
        return np.maximum(self.tolerance_ms, self.tolerance_fraction * todays_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateComparison:
    """How candidates stand against today's and each other; rows are draws, columns candidates.

    ``cost_ms``: what a boot costs, the objective included. ``saving_ms``: against today's.
    ``tolerance_ms``: what does not matter, a value for each draw; ``todays_ms``: r * size, U and B1
    of today's image; ``typical_tolerance_ms``: the tolerance at their medians. For each candidate:
    ``eligible``: it is today's, or may replace it; ``expected_ms``: how much more than the
    tolerance it is expected to save; ``harms``, ``helps``: with which probability it loses, and
    saves, more than the tolerance; ``within``: with which probability nothing eligible is better by
    more than that; ``loss_ms``: how much more than the best of the eligible it is expected to cost.
    """

    cost_ms: Floats
    saving_ms: Floats
    tolerance_ms: Floats
    typical_tolerance_ms: float
    todays_ms: Floats
    size_mb: Floats
    unpack_ms: Floats
    eligible: Booleans
    expected_ms: Floats
    harms: Floats
    helps: Floats
    within: Floats
    loss_ms: Floats


def compare_candidates(
    draws: Draws, candidates: Sequence[CandidateFacts], *, baseline: int, thresholds: Thresholds
) -> CandidateComparison:
    """Compare every candidate with today's (the one with index ``baseline``) and with the best."""
    cost = draws.total_ms + draws.extra_ms
    saving = cost[:, [baseline]] - cost
    tolerance = thresholds.tolerance(draws.read_ms[:, baseline] + draws.waited_ms[:, baseline])
    todays_ms = np.column_stack(
        [draws.read_ms[:, baseline], draws.unpack_ms[:, baseline], draws.shadow_ms]
    )
    typical_tolerance_ms = _at_medians(todays_ms, thresholds)
    eligible = _eligible(candidates, baseline)
    eligible[baseline] = True
    harms, helps, within = _compared(cost, saving, tolerance, eligible)
    best = np.where(eligible, cost, np.inf).min(axis=1)
    return CandidateComparison(
        cost_ms=cost,
        saving_ms=saving,
        tolerance_ms=tolerance,
        typical_tolerance_ms=typical_tolerance_ms,
        todays_ms=todays_ms,
        size_mb=draws.size_mb,
        unpack_ms=draws.unpack_ms,
        eligible=eligible,
        expected_ms=saving.mean(axis=0) - typical_tolerance_ms,
        harms=harms.mean(axis=0),
        helps=helps.mean(axis=0),
        within=within.mean(axis=0),
        loss_ms=(cost - best[:, None]).mean(axis=0),
    )


def _at_medians(todays_ms: Floats, thresholds: Thresholds) -> float:
    """Return the tolerance where everything is as it most likely is; ``whatif`` has the same."""
    [(read_ms, unpack_ms, shadow_ms)] = quantiles(todays_ms, [0.5])
    return float(thresholds.tolerance(np.array([read_ms + max(unpack_ms, shadow_ms)]))[0])


def _compared(
    cost_ms: Floats, saving_ms: Floats, tolerance_ms: Floats, eligible: Booleans
) -> tuple[Booleans, Booleans, Booleans]:
    """Tell for each draw what ``CandidateComparison`` counts: ``harms``, ``helps``, ``within``."""
    best = np.where(eligible, cost_ms, np.inf).min(axis=1) + tolerance_ms
    matters = tolerance_ms[:, None]
    return saving_ms < -matters, saving_ms > matters, cost_ms <= best[:, None]


def gains(found: CandidateComparison, baseline: int) -> Floats:
    """Return the savings beyond the tolerance, in ms.

    Today's gains nothing, and what may not be chosen never.
    """
    gain = found.saving_ms - found.tolerance_ms[:, None]
    gain[:, ~found.eligible] = -np.inf
    gain[:, baseline] = 0.0
    return gain


def decide(
    draws: Draws,
    candidates: Sequence[CandidateFacts],
    *,
    baseline: int,
    thresholds: Thresholds,
    source: str,
    booted: bool = False,
) -> Decision:
    """Weigh every eligible candidate against today's (the one with index ``baseline``).

    A switch is advised to what is expected to save more than the tolerance and loses more than that
    with a probability below 1 - ``certainty``. A tie within the tolerance goes to today's setting.
    ``booted``: boots of this machine are among the evidence; without them nobody says that there
    is no difference worth having. ``source`` names the evidence in the figures that are returned.
    """
    found = compare_candidates(draws, candidates, baseline=baseline, thresholds=thresholds)
    saving = found.saving_ms
    chosen, outcome = _choose(found, baseline, thresholds, booted=booted)
    expected = np.where(_eligible(candidates, baseline), saving.mean(axis=0), -np.inf)
    leader = int(expected.argmax()) if np.isfinite(expected).any() else baseline
    index = baseline if chosen is None else chosen
    within = float(found.within[index])
    guess = index
    if outcome is Outcome.UNDECIDED and expected[leader] > 0:
        guess = leader
    best = within >= thresholds.certainty
    return Decision(
        action=Advice.SWITCH if outcome is Outcome.SWITCH else Advice.KEEP,
        outcome=outcome,
        setting=candidates[index].setting,
        probability=within if chosen is None else 1 - float(found.harms[chosen]),
        best_probability=within,
        best=best,
        settled=outcome is not Outcome.UNDECIDED
        and (best or (booted and _is_little(found, index))),
        loss_ms=float(found.loss_ms[index]),
        tolerance_ms=found.typical_tolerance_ms,
        saving_ms=summary(saving[:, index], source),
        guess=candidates[guess].setting,
        guess_probability=float(found.within[guess]),
        leader=candidates[leader].setting,
        leader_probability=float(found.helps[leader]),
        leader_saving_ms=summary(saving[:, leader], source),
    )


def _choose(
    found: CandidateComparison, baseline: int, thresholds: Thresholds, *, booted: bool
) -> tuple[int | None, Outcome]:
    """Return what to switch to, or None and why there is nothing.

    That is the largest expected saving, of what is certainly the best where there is any.
    """
    worth = _worth_it(found.expected_ms, found.harms, found.eligible, thresholds)
    outcome = _outcome(worth, found.within, baseline, thresholds)
    if outcome is Outcome.SWITCH:
        best = worth & (found.within >= thresholds.certainty)
        among = best if best.any() else worth
        return int(np.where(among, found.expected_ms, -np.inf).argmax()), outcome
    if outcome is Outcome.UNDECIDED and booted and _is_little(found, baseline):
        return None, Outcome.EVEN
    return None, outcome


def _worth_it(
    expected_ms: Floats, harms: Floats, eligible: Booleans, thresholds: Thresholds
) -> Booleans:
    """Tell which candidates are expected to save what matters and hardly ever lose it."""
    return eligible & (expected_ms > 0) & (harms < 1 - thresholds.certainty)


def _is_little(found: CandidateComparison, column: int) -> bool:
    """Tell whether there is nothing to gain by knowing which candidate is the best."""
    return bool(found.loss_ms[column] <= _LITTLE * found.typical_tolerance_ms)


def _outcome(worth: Booleans, within: Floats, baseline: int, thresholds: Thresholds) -> Outcome:
    """Return the outcome; that nothing saves what matters is that today's is within of the best."""
    if worth.any():
        return Outcome.SWITCH
    return Outcome.KEEP if within[baseline] >= thresholds.certainty else Outcome.UNDECIDED


def settling_means(
    sd_ms: float, tolerance_ms: float, certainty: float, *, today: bool
) -> tuple[float, float]:
    """Return up to which mean, and from which, a normal saving of this sd lets ``decide`` settle.

    After a boot, that is. With ``today`` it is a candidate's saving against today's: below today's
    is kept, above it is replaced. Else it is the saving of either of two that are both better than
    today's by far against the other.
    """
    certain_ms = NormalDist().inv_cdf(certainty) * sd_ms - tolerance_ms
    little_ms = _mean_of_gain(_LITTLE * tolerance_ms, sd_ms)
    below = max(-certain_ms, little_ms)
    return (below, max(tolerance_ms, certain_ms)) if today else (below, -below)


def _mean_of_gain(gain_ms: float, sd_ms: float) -> float:
    """Return the mean of a normal variable whose part above 0 is ``gain_ms`` on average."""
    normal, mean = NormalDist(), gain_ms
    # The average is convex in the mean and at least the mean: Newton's steps come down to it.
    for _ in range(_NEWTON_STEPS):
        z = mean / sd_ms
        above = normal.cdf(z)
        mean -= (mean * above + sd_ms * normal.pdf(z) - gain_ms) / above
    return mean


def outcomes_within(
    found: CandidateComparison,
    ranges: Sequence[Integers],
    *,
    baseline: int,
    thresholds: Thresholds,
) -> Iterator[Outcome]:
    """Yield what ``decide`` would come to with the draws of each range alone."""
    compared = _compared(found.cost_ms, found.saving_ms, found.tolerance_ms, found.eligible)
    for rows in ranges:
        harms, _, within = (true[rows].mean(axis=0) for true in compared)
        typical_ms = _at_medians(found.todays_ms[rows], thresholds)
        expected = found.saving_ms[rows].mean(axis=0) - typical_ms
        worth = _worth_it(expected, harms, found.eligible, thresholds)
        yield _outcome(worth, within, baseline, thresholds)


def decide_by_size(
    draws: Draws,
    candidates: Sequence[CandidateFacts],
    *,
    baseline: int,
    thresholds: Thresholds,
    source: str,
) -> Decision:
    """Choose the smallest image that is eligible, whatever it costs in time.

    It has to be smaller than today's by more than ``tolerance_fraction``, with ``certainty``.
    """
    size = draws.size_mb
    eligible = _eligible(candidates, baseline)
    smaller = (size < size[:, [baseline]] * (1 - thresholds.tolerance_fraction)) & eligible
    helps = smaller.mean(axis=0)
    leader = int(np.where(eligible, size.mean(axis=0), np.inf).argmin())
    none_helps = float((~smaller.any(axis=1)).mean())
    switch = bool(helps[leader] >= thresholds.certainty)
    certain_keep = none_helps >= thresholds.certainty
    index = leader if switch else baseline
    guess = leader if helps[leader] > _EVEN else baseline
    found = compare_candidates(draws, candidates, baseline=baseline, thresholds=thresholds)
    saving = found.saving_ms
    return Decision(
        action=Advice.SWITCH if switch else Advice.KEEP,
        outcome=Outcome.SWITCH if switch else (Outcome.KEEP if certain_keep else Outcome.UNDECIDED),
        setting=candidates[index].setting,
        probability=float(helps[leader]) if switch else none_helps,
        best_probability=float(helps[leader]) if switch else none_helps,
        best=switch or certain_keep,
        settled=switch or certain_keep,
        loss_ms=float(found.loss_ms[index]),
        tolerance_ms=found.typical_tolerance_ms,
        saving_ms=summary(saving[:, index], source),
        guess=candidates[guess].setting,
        guess_probability=float(helps[guess]) if guess != baseline else none_helps,
        leader=candidates[leader].setting,
        leader_probability=float(helps[leader]),
        leader_saving_ms=summary(saving[:, leader], source),
    )


def chances(draws: Draws, candidates: Sequence[CandidateFacts], *, by_size: bool) -> Floats:
    """Return with which probability each candidate is the best of those that may be chosen."""
    cost = draws.size_mb if by_size else draws.total_ms + draws.extra_ms
    eligible = np.array([candidate.eligible for candidate in candidates])
    best = np.where(eligible, cost, np.inf).argmin(axis=1)
    return np.asarray(np.bincount(best, minlength=len(candidates)) / len(best))


def savings(draws: Draws, baseline: int) -> Floats:
    """Return what each candidate saves per boot against today's, in ms, the objective included."""
    cost = draws.total_ms + draws.extra_ms
    return np.asarray(cost[:, [baseline]] - cost)


def _eligible(candidates: Sequence[CandidateFacts], baseline: int) -> Booleans:
    return np.array([c.eligible and i != baseline for i, c in enumerate(candidates)])


def strongest_rival(found: CandidateComparison, chosen: int) -> tuple[int, float] | None:
    """Return which candidate is likeliest to be better than the chosen one, and how likely.

    Better by more than the tolerance, that is; of those that are equally so, it is the one that is
    expected to cost least. None where nothing else may be chosen.
    """
    others = found.eligible.copy()
    others[chosen] = False
    if not others.any():
        return None
    saving = found.cost_ms[:, [chosen]] - found.cost_ms
    better = np.where(others, (saving > found.tolerance_ms[:, None]).mean(axis=0), -np.inf)
    foremost = better == better.max()
    rival = int(np.where(foremost, saving.mean(axis=0), -np.inf).argmax())
    return rival, float(better[rival])


def contrast(
    draws: Draws, candidates: Sequence[CandidateFacts], one: int, other: int, *, source: str
) -> Contrast:
    """Return what the candidate in column ``one`` costs more than the one in ``other``."""
    read = draws.read_ms[:, one] - draws.read_ms[:, other]
    total = draws.total_ms[:, one] - draws.total_ms[:, other]
    extra = float(draws.extra_ms[one] - draws.extra_ms[other])
    return Contrast(
        one=candidates[one].setting,
        other=candidates[other].setting,
        read_ms=summary(read, source),
        waited_ms=summary(draws.waited_ms[:, one] - draws.waited_ms[:, other], source),
        build_ms=extra,
        all_ms=summary(total + extra, source),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What a boot of ``one`` costs more than a boot of ``other``; less where it is negative.

    ``waited_ms``: of the time to unpack what the shadow does not hide. ``build_ms``: the build's
    share of a boot, 0 where the objective does not count it.
    """

    one: Setting
    other: Setting
    read_ms: Estimate
    waited_ms: Estimate
    build_ms: float
    all_ms: Estimate
