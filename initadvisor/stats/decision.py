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


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a difference counts: more than ``tolerance_ms`` and more than ``tolerance_fraction`` of
    today's total, with probability ``certainty``.
    """

    tolerance_ms: float = 5.0
    tolerance_fraction: float = 0.02
    certainty: float = 0.95


def decide(
    draws: Draws,
    candidates: Sequence[CandidateFacts],
    *,
    baseline: int,
    thresholds: Thresholds,
    source: str,
) -> Decision:
    """Weigh every eligible candidate against today's (the one with index ``baseline``).

    A tie within the tolerance goes to today's setting. ``source`` names the evidence in the
    figures that are returned.
    """
    saving = savings(draws, baseline)
    gain = _gains(saving, draws, candidates, baseline, thresholds)
    chosen, outcome = _choose(gain, saving, thresholds)
    helps = (gain > 0).mean(axis=0)
    best = np.where(_eligible(candidates, baseline), saving.mean(axis=0), -np.inf)
    leader = int(best.argmax()) if np.isfinite(best).any() else baseline
    index = baseline if chosen is None else chosen
    none_helps = float((gain <= 0).all(axis=1).mean())
    return Decision(
        action=Action.SWITCH if outcome is Outcome.SWITCH else Action.KEEP,
        outcome=outcome,
        setting=candidates[index].setting,
        probability=none_helps if chosen is None else float(helps[chosen]),
        saving_ms=summary(saving[:, index], source),
        leader=candidates[leader].setting,
        leader_probability=float(helps[leader]),
        leader_saving_ms=summary(saving[:, leader], source),
        deciding=_deciding_fact(draws, gain, saving, candidates, baseline, thresholds)
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


def _gains(
    saving: Floats,
    draws: Draws,
    candidates: Sequence[CandidateFacts],
    baseline: int,
    thresholds: Thresholds,
) -> Floats:
    """Return the savings beyond the tolerance; what may not be chosen never gains."""
    total = draws.total_ms[:, baseline]
    tolerance = np.maximum(thresholds.tolerance_ms, thresholds.tolerance_fraction * total)
    gain = saving - tolerance[:, None]
    gain[:, ~_eligible(candidates, baseline)] = -np.inf
    return gain


def _choose(gain: Floats, saving: Floats, thresholds: Thresholds) -> tuple[int | None, Outcome]:
    """Return the certain candidate with the largest mean saving, or None and why there is none."""
    certain = (gain > 0).mean(axis=0) >= thresholds.certainty
    if certain.any():
        return int(np.where(certain, saving.mean(axis=0), -np.inf).argmax()), Outcome.SWITCH
    if (gain <= 0).all(axis=1).mean() >= thresholds.certainty:
        return None, Outcome.KEEP
    return None, Outcome.UNDECIDED


def _deciding_fact(
    draws: Draws,
    gain: Floats,
    saving: Floats,
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
            own_gain, own_saving = gain[inside], saving[inside]
            outcomes.append(_choose(own_gain, own_saving, thresholds)[1])
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
