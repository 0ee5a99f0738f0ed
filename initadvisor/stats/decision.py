"""From draws to a decision: switch only when the gain is certain enough and large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.cost import Action, DecidingFact, Decision, Factor, Outcome, Stretch
from initadvisor.stats.costs import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.model.cost import CandidateFacts
    from initadvisor.stats.costs import Draws

    Floats = NDArray[np.float64]

_BINS = 20
_EVEN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a difference counts: if there is one with probability ``certainty``, and if it is likely
    more than ``tolerance_ms`` and more than ``tolerance_fraction`` of today's total.
    """

    tolerance_ms: float = 5.0
    tolerance_fraction: float = 0.02
    certainty: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
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
    eligible: NDArray[np.bool_]
    faster: Floats
    helps: Floats
    within: Floats


def standing(
    draws: Draws, candidates: Sequence[CandidateFacts], *, baseline: int, thresholds: Thresholds
) -> Standing:
    """Compare every candidate with today's (the one with index ``baseline``) and with the best."""
    cost = draws.total_ms + draws.extra_ms
    saving = cost[:, [baseline]] - cost
    tolerance = np.maximum(
        thresholds.tolerance_ms, thresholds.tolerance_fraction * draws.total_ms[:, baseline]
    )
    eligible = _eligible(candidates, baseline)
    eligible[baseline] = True
    best = np.where(eligible, cost, np.inf).min(axis=1) + tolerance
    return Standing(
        cost_ms=cost,
        saving_ms=saving,
        tolerance_ms=tolerance,
        size_mb=draws.size_mb,
        unpack_ms=draws.unpack_ms,
        eligible=eligible,
        faster=(saving > 0).mean(axis=0),
        helps=(saving > tolerance[:, None]).mean(axis=0),
        within=(cost <= best[:, None]).mean(axis=0),
    )


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
    found = standing(draws, candidates, baseline=baseline, thresholds=thresholds)
    saving = found.saving_ms
    gain = _gains(found, baseline)
    chosen, outcome = _choose(gain, saving, found.within, thresholds)
    expected = np.where(_eligible(candidates, baseline), saving.mean(axis=0), -np.inf)
    leader = int(expected.argmax()) if np.isfinite(expected).any() else baseline
    index = baseline if chosen is None else chosen
    within = float(found.within[index])
    return Decision(
        action=Action.SWITCH if outcome is Outcome.SWITCH else Action.KEEP,
        outcome=outcome,
        setting=candidates[index].setting,
        probability=within if chosen is None else float(found.faster[chosen]),
        best_probability=within,
        settled=outcome is not Outcome.UNDECIDED and within >= thresholds.certainty,
        saving_ms=summary(saving[:, index], source),
        leader=candidates[leader].setting,
        leader_probability=float(found.helps[leader]),
        leader_saving_ms=summary(saving[:, leader], source),
        deciding=_deciding_fact(draws, gain, found, candidates, baseline, thresholds)
        if outcome is Outcome.UNDECIDED
        else None,
    )


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
        action=Action.SWITCH if switch else Action.KEEP,
        outcome=Outcome.SWITCH if switch else (Outcome.KEEP if certain_keep else Outcome.UNDECIDED),
        setting=candidates[index].setting,
        probability=float(helps[leader]) if switch else none_helps,
        best_probability=float(helps[leader]) if switch else none_helps,
        settled=switch or certain_keep,
        saving_ms=summary(saving[:, index], source),
        leader=candidates[leader].setting,
        leader_probability=float(helps[leader]),
        leader_saving_ms=summary(saving[:, leader], source),
        deciding=None,
    )


def chances(
    draws: Draws, candidates: Sequence[CandidateFacts], *, by_size: bool
) -> NDArray[np.float64]:
    """Return with which probability each candidate is the best of those that may be chosen."""
    cost = draws.size_mb if by_size else draws.total_ms + draws.extra_ms
    eligible = np.array([candidate.eligible for candidate in candidates])
    best = np.where(eligible, cost, np.inf).argmin(axis=1)
    return np.asarray(np.bincount(best, minlength=len(candidates)) / len(best))


def savings(draws: Draws, baseline: int) -> Floats:
    """Return what each candidate saves per boot against today's, in ms, the objective included."""
    cost = draws.total_ms + draws.extra_ms
    return np.asarray(cost[:, [baseline]] - cost)


def _eligible(candidates: Sequence[CandidateFacts], baseline: int) -> NDArray[np.bool_]:
    return np.array([c.eligible and i != baseline for i, c in enumerate(candidates)])


def _gains(found: Standing, baseline: int) -> Floats:
    """Return the savings beyond the tolerance; what may not be chosen never gains."""
    gain = found.saving_ms - found.tolerance_ms[:, None]
    gain[:, ~found.eligible] = -np.inf
    gain[:, baseline] = -np.inf
    return gain


def _choose(
    gain: Floats, saving: Floats, within: Floats, thresholds: Thresholds
) -> tuple[int | None, Outcome]:
    """Return the certain candidate that is best, or None and why there is none.

    Of those that are as certainly the best as is asked for, it is the one with the largest mean
    saving; where there is none, the likeliest to be.
    """
    matters = gain > 0
    certain = (matters.mean(axis=0) > _EVEN) & ((saving > 0).mean(axis=0) >= thresholds.certainty)
    if certain.any():
        rank = np.where(certain, within.clip(max=thresholds.certainty), -np.inf)
        likeliest = rank == rank.max()
        return int(np.where(likeliest, saving.mean(axis=0), -np.inf).argmax()), Outcome.SWITCH
    if float((~matters).all(axis=1).mean()) >= thresholds.certainty:
        return None, Outcome.KEEP
    return None, Outcome.UNDECIDED


def _deciding_fact(
    draws: Draws,
    gain: Floats,
    found: Standing,
    candidates: Sequence[CandidateFacts],
    baseline: int,
    thresholds: Thresholds,
) -> DecidingFact | None:
    """Find the factor that, were it known, would settle the decision most often.

    Knowing a factor is imitated by keeping only the draws in one of 20 equally likely ranges of it.
    """
    facts = []
    for factor, values in draws.factors.items():
        if np.ptp(values) == 0:
            continue
        outcomes: list[Outcome] = []
        stretches: list[tuple[float, float, int]] = []
        for inside in np.array_split(np.argsort(values), _BINS):
            own_gain, own_saving = gain[inside], found.saving_ms[inside]
            outcomes.append(_choose(own_gain, own_saving, found.within, thresholds)[1])
            previous = stretches[-1][2] if stretches else baseline
            best = _best_within(own_gain, baseline, previous)
            stretches.append((float(values[inside[0]]), float(values[inside[-1]]), best))
        settled = sum(outcome is not Outcome.UNDECIDED for outcome in outcomes) / len(outcomes)
        facts.append(_fact(factor, settled, stretches, candidates))
    return max(facts, key=lambda fact: fact.settled, default=None)


def _best_within(gain: Floats, baseline: int, previous: int) -> int:
    """Return the candidate that gains most on average, today's where none does.

    ``previous``, the best of the neighbouring range, stays so unless the difference is larger than
    two standard errors: what comes of few draws is not to look like a fact.
    """
    value = gain.copy()
    value[:, baseline] = 0.0
    best = int(value.mean(axis=0).argmax())
    if best == previous or np.isneginf(value[0, previous]):
        return best
    difference = value[:, best] - value[:, previous]
    error = difference.std() / np.sqrt(len(difference))
    return best if difference.mean() > 2 * error else previous


def _fact(
    factor: Factor,
    settled: float,
    stretches: Sequence[tuple[float, float, int]],
    candidates: Sequence[CandidateFacts],
) -> DecidingFact:
    merged: list[Stretch] = []
    for low, high, best in stretches:
        setting = candidates[best].setting
        start = merged.pop().low if merged and merged[-1].setting == setting else low
        merged.append(Stretch(low=start, high=high, setting=setting))
    return DecidingFact(factor=factor, settled=settled, stretches=tuple(merged))
