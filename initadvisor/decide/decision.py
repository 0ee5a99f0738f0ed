"""From draws to a decision: switch only when the gain is certain enough and large enough.

And what two candidates differ by, and which one comes closest to what was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a difference counts: if there is one with probability ``certainty``, and if it is likely
    more than ``tolerance_ms`` and more than ``tolerance_fraction`` of what today's image takes.
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
    ``tolerance_ms``: what does not matter, a value for each draw. For each candidate:
    ``eligible``: it is today's, or may replace it; ``faster``, ``helps``: with which probability it
    saves anything, and more than the tolerance; ``within``: with which probability nothing eligible
    is better by more than the tolerance.
    """

    cost_ms: Floats
    saving_ms: Floats
    tolerance_ms: Floats
    size_mb: Floats
    unpack_ms: Floats
    eligible: Booleans
    faster: Floats
    helps: Floats
    within: Floats


def compare_candidates(
    draws: Draws, candidates: Sequence[CandidateFacts], *, baseline: int, thresholds: Thresholds
) -> CandidateComparison:
    """Compare every candidate with today's (the one with index ``baseline``) and with the best."""
    cost = draws.total_ms + draws.extra_ms
    saving = cost[:, [baseline]] - cost
    tolerance = thresholds.tolerance(draws.read_ms[:, baseline] + draws.waited_ms[:, baseline])
    eligible = _eligible(candidates, baseline)
    eligible[baseline] = True
    faster, helps, within = _compared(cost, saving, tolerance, eligible)
    return CandidateComparison(
        cost_ms=cost,
        saving_ms=saving,
        tolerance_ms=tolerance,
        size_mb=draws.size_mb,
        unpack_ms=draws.unpack_ms,
        eligible=eligible,
        faster=faster.mean(axis=0),
        helps=helps.mean(axis=0),
        within=within.mean(axis=0),
    )


def _compared(
    cost_ms: Floats, saving_ms: Floats, tolerance_ms: Floats, eligible: Booleans
) -> tuple[Booleans, Booleans, Booleans]:
    """Tell for each draw what ``CandidateComparison`` counts: ``faster``, ``helps``, ``within``."""
    best = np.where(eligible, cost_ms, np.inf).min(axis=1) + tolerance_ms
    return saving_ms > 0, saving_ms > tolerance_ms[:, None], cost_ms <= best[:, None]


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
) -> Decision:
    """Weigh every eligible candidate against today's (the one with index ``baseline``).

    A switch is advised if it is certain that the candidate saves something and it is likelier than
    not that this matters. A tie within the tolerance goes to today's setting. ``source`` names the
    evidence in the figures that are returned.
    """
    found = compare_candidates(draws, candidates, baseline=baseline, thresholds=thresholds)
    saving = found.saving_ms
    chosen, outcome = _choose(found, baseline, thresholds)
    expected = np.where(_eligible(candidates, baseline), saving.mean(axis=0), -np.inf)
    leader = int(expected.argmax()) if np.isfinite(expected).any() else baseline
    index = baseline if chosen is None else chosen
    within = float(found.within[index])
    return Decision(
        action=Advice.SWITCH if outcome is Outcome.SWITCH else Advice.KEEP,
        outcome=outcome,
        setting=candidates[index].setting,
        probability=within if chosen is None else float(found.faster[chosen]),
        best_probability=within,
        settled=outcome is not Outcome.UNDECIDED and within >= thresholds.certainty,
        saving_ms=summary(saving[:, index], source),
        leader=candidates[leader].setting,
        leader_probability=float(found.helps[leader]),
        leader_saving_ms=summary(saving[:, leader], source),
    )


def _choose(
    found: CandidateComparison, baseline: int, thresholds: Thresholds
) -> tuple[int | None, Outcome]:
    """Return the certain candidate that is best, or None and why there is none.

    Of those that are as certainly the best as is asked for, it is the one with the largest mean
    saving; where there is none, the likeliest to be.
    """
    certain = _certain(found.faster, found.helps, found.eligible, thresholds)
    outcome = _outcome(certain, found.within, baseline, thresholds)
    if outcome is not Outcome.SWITCH:
        return None, outcome
    rank = np.where(certain, found.within.clip(max=thresholds.certainty), -np.inf)
    likeliest = rank == rank.max()
    return int(np.where(likeliest, found.saving_ms.mean(axis=0), -np.inf).argmax()), outcome


def _certain(faster: Floats, helps: Floats, eligible: Booleans, thresholds: Thresholds) -> Booleans:
    """Tell which candidates certainly save something that likelier than not matters."""
    return eligible & (helps > _EVEN) & (faster >= thresholds.certainty)


def _outcome(certain: Booleans, within: Floats, baseline: int, thresholds: Thresholds) -> Outcome:
    """Return the outcome; that nothing saves what matters is that today's is within of the best."""
    if certain.any():
        return Outcome.SWITCH
    return Outcome.KEEP if within[baseline] >= thresholds.certainty else Outcome.UNDECIDED


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
        faster, helps, within = (true[rows].mean(axis=0) for true in compared)
        certain = _certain(faster, helps, found.eligible, thresholds)
        yield _outcome(certain, within, baseline, thresholds)


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
    saving = savings(draws, baseline)
    return Decision(
        action=Advice.SWITCH if switch else Advice.KEEP,
        outcome=Outcome.SWITCH if switch else (Outcome.KEEP if certain_keep else Outcome.UNDECIDED),
        setting=candidates[index].setting,
        probability=float(helps[leader]) if switch else none_helps,
        best_probability=float(helps[leader]) if switch else none_helps,
        settled=switch or certain_keep,
        saving_ms=summary(saving[:, index], source),
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
