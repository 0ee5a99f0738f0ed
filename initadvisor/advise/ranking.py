"""What shows a decision: a row for each candidate, the rival, the boots that would settle it.

And why it is what it is: with less evidence it may have been another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.advise.decision_input import decision_result
from initadvisor.advise.recommendation import Plan, PlannedBoots, Rival, Row
from initadvisor.core.estimates import Evidence
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Outcome
from initadvisor.decide.costs import summary
from initadvisor.decide.decision import (
    chances,
    compare_candidates,
    contrast,
    savings,
    strongest_rival,
)
from initadvisor.decide.explanation import (
    Explanation,
    ExplanationStep,
    Pair,
    deciding_fact,
    images_share,
    weights,
)
from initadvisor.decide.next_boot import MOST_BOOTS, next_boots
from initadvisor.lab.evidence import LabEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.advise.decision_input import DecisionInput, DecisionResult
    from initadvisor.core.settings import Setting
    from initadvisor.decide.boot_evidence import PosteriorSummary
    from initadvisor.decide.cost import DecidingFact, Decision
    from initadvisor.decide.decision import CandidateComparison, Contrast


_WORTH_BUILDING = 0.02
"""A setting that is the best with less probability than this will not be recommended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidates:
    """The decision, the weakest evidence it rests on, and a row for each contender, in order.

    ``unbuilt``: the settings without a candidate that may be the best, the likeliest first. Only
    they are worth building. ``deciding``, ``rival``, ``plan`` and ``hinges_on_build`` as
    in ``Recommendation``.
    """

    decision: Decision
    evidence: Evidence
    rows: tuple[Row, ...]
    summary: PosteriorSummary
    deciding: DecidingFact | None
    rival: Rival | None
    plan: Plan | None
    hinges_on_build: bool = False
    unbuilt: tuple[Setting, ...] = ()


def summarise(decision_input: DecisionInput, result: DecisionResult) -> RankedCandidates:
    """Put in figures what comes of a decision, and what would make it surer."""
    deciding, rival = (None, None) if decision_input.by_size else _closest(decision_input, result)
    return RankedCandidates(
        decision=result.decision,
        evidence=result.weakest,
        rows=_in_order(decision_input, _rows(decision_input, result), result.decision.guess),
        summary=result.posterior_costs.summary,
        deciding=deciding,
        rival=rival,
        plan=None
        if decision_input.by_size or result.hinges_on_build
        else _plan(decision_input, result),
        hinges_on_build=result.hinges_on_build,
        unbuilt=_unbuilt(decision_input, result),
    )


def _closest(
    decision_input: DecisionInput, result: DecisionResult
) -> tuple[DecidingFact | None, Rival | None]:
    """Return what comes closest to what is advised, and what would decide where that is open."""
    facts, thresholds = result.facts, decision_input.thresholds
    chosen = result.column(result.decision.setting)
    found = _compared(decision_input, result)
    closest = strongest_rival(found, chosen)
    if closest is None:
        return None, None
    column, probability = closest
    rival = Rival(
        setting=facts[column].setting,
        probability=probability,
        contrast=_contrast(result, chosen, column),
    )
    if result.decision.outcome is not Outcome.UNDECIDED or result.hinges_on_build:
        return None, rival
    deciding = deciding_fact(
        result.posterior_costs.posterior.parameters,
        facts,
        found,
        Pair(advised=chosen, rival=column),
        baseline=0,
        thresholds=thresholds,
    )
    return deciding, rival


def _compared(decision_input: DecisionInput, result: DecisionResult) -> CandidateComparison:
    return compare_candidates(
        result.posterior_costs.draws, result.facts, baseline=0, thresholds=decision_input.thresholds
    )


def _contrast(result: DecisionResult, one: int, other: int) -> Contrast:
    weakest = Evidence.weakest((result.evidence[one], result.evidence[other]))
    return contrast(result.posterior_costs.draws, result.facts, one, other, source=str(weakest))


def _plan(decision_input: DecisionInput, result: DecisionResult) -> Plan | None:
    """Return the boots that would settle the decision, None where there are none to be made."""
    if decision_input.limits is None:
        return None
    posterior, facts = result.posterior_costs.posterior, result.facts
    plan = next_boots(
        posterior,
        decision_input.knowledge.machine,
        facts,
        decision=result.decision,
        own_boots=result.posterior_costs.summary.own_boots,
        baseline=0,
        thresholds=decision_input.thresholds,
        limits=decision_input.limits,
    )
    if plan is None:
        return None
    return Plan(
        purpose=plan.purpose,
        boots=tuple(
            PlannedBoots(setting=facts[column].setting, boots=count) for column, count in plan.boots
        ),
        chance=plan.chance,
        enough=plan.count < MOST_BOOTS,
        contrast=_contrast(result, plan.leader, plan.rival),
        loader_seen=posterior.noise.loader_seen,
        unbuilt=tuple(
            facts[column].setting
            for column, _ in plan.boots
            if _is_estimate(decision_input, column)
        ),
    )


def _is_estimate(decision_input: DecisionInput, column: int) -> bool:
    return decision_input.candidates[column].sampled is not None


def _unbuilt(decision_input: DecisionInput, result: DecisionResult) -> tuple[Setting, ...]:
    """Return what is only estimated and may win, and what is said to lead."""
    candidate_set, decision = decision_input.candidates, result.decision
    chance = chances(result.posterior_costs.draws, result.facts, by_size=decision_input.by_size)
    named = {decision.setting, decision.leader}
    order = sorted(range(len(candidate_set)), key=lambda column: -chance[column])
    return tuple(
        candidate_set[column].setting
        for column in order
        if _is_estimate(decision_input, column)
        and (chance[column] >= _WORTH_BUILDING or candidate_set[column].setting in named)
    )


def _rows(decision_input: DecisionInput, result: DecisionResult) -> list[Row]:
    draws, evidence, lab = (
        result.posterior_costs.draws,
        result.evidence,
        decision_input.unpacking.lab,
    )
    loader = result.posterior_costs.summary.now(Parameter.LOADER).source
    saving = savings(draws, 0)
    rows = []
    for column, candidate in enumerate(decision_input.candidates):
        told = 0 if candidate.like_today else column
        digest = decision_input.candidates[told].digest
        own = evidence[told]
        against_today = Evidence.weakest((evidence[0], own))
        unpack = str(own) if own is Evidence.BOOTS else lab.source(digest)
        cost, own_saving = candidate.cost, summary(saving[:, told], str(against_today))
        rows.append(
            Row(
                setting=candidate.setting,
                size_bytes=int(candidate.size.median),
                size_log_sd=candidate.size.log_sd,
                size_source=candidate.size_source,
                read_ms=summary(draws.read_ms[:, told], loader),
                unpack_ms=summary(draws.unpack_ms[:, told], unpack),
                total_ms=summary(draws.total_ms[:, told], str(own)),
                saving_ms=decision_input.widened(own_saving) if told else own_saving,
                build_s=cost.build_s if cost else None,
                build_cpu_s=cost.build_cpu_s if cost else None,
                build_peak_bytes=cost.build_peak_bytes if cost else None,
                fits=decision_input.fits(candidate),
                more_kernels=decision_input.more_kernels(candidate),
                lint=decision_input.verdicts[candidate.digest],
                notes=decision_input.notes(candidate),
                unusable=decision_input.unusable(candidate),
            )
        )
    return rows


def _in_order(
    decision_input: DecisionInput, rows: Sequence[Row], guess: Setting
) -> tuple[Row, ...]:
    """Return the rows as they are shown, last what may not be chosen.

    What is advised, or else the best guess, comes first, then what saves most; where sizes decide
    the smallest comes first.
    """
    today, by_size = rows[0], decision_input.by_size
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row is not today and row.unfit is not None,
                not by_size and row.setting != guess,
                row.size_bytes if by_size else -row.saving_ms.middle,
            ),
        )
    )


def explain(decision_input: DecisionInput, result: DecisionResult) -> Explanation:
    """Explain a decision: the facts it depends on, and what each kind of evidence did to it.

    What is advised is held against what is likeliest to be better; where sizes decide, against the
    smallest beside it.
    """
    costs, found = result.posterior_costs, _compared(decision_input, result)
    advised = result.column(result.decision.setting)
    if decision_input.by_size:
        rival = _smallest(decision_input, result, advised)
    else:
        closest = strongest_rival(found, advised)
        rival = closest[0] if closest else None
    explained = Explanation(
        contrast=None if rival is None else _contrast(result, advised, rival),
        weights=(),
        images_share=0.0,
        steps=(),
        updates=costs.summary.updates,
    )
    if rival is None or decision_input.by_size:
        return explained
    pair, parts = Pair(advised=advised, rival=rival), costs.posterior.parameters
    return replace(
        explained,
        weights=weights(parts, result.facts, found, costs.summary, pair, baseline=0),
        images_share=images_share(parts, found, pair),
        steps=tuple(_steps(decision_input, result)),
    )


def _smallest(decision_input: DecisionInput, result: DecisionResult, advised: int) -> int | None:
    """Return the smallest beside what is advised."""
    others = [
        column
        for column, fact in enumerate(result.facts)
        if column != advised and (fact.eligible or decision_input.candidates[column].today)
    ]
    return min(others, key=lambda column: result.facts[column].size_mb.median, default=None)


def _steps(decision_input: DecisionInput, result: DecisionResult) -> Iterator[ExplanationStep]:
    """Yield the answers without boots and without the lab, and the one that is given.

    Evidence of which there is none makes no step.
    """
    lab = decision_input.unpacking.lab
    in_lab = sum(
        c.digest in lab.unpack_ms or c.digest in lab.decompress_ms
        for c in decision_input.candidates
    )
    boots = result.posterior_costs.summary.boots_used
    bare = replace(
        decision_input, boots=(), unpacking=replace(decision_input.unpacking, lab=LabEvidence())
    )
    images = len(decision_input.candidates)
    yield _step(decision_result(bare) if in_lab or boots else result, Evidence.BENCH, images)
    if in_lab:
        yield _step(
            decision_result(replace(decision_input, boots=())) if boots else result,
            Evidence.LAB,
            in_lab,
        )
    if boots:
        yield _step(result, Evidence.BOOTS, boots)


def _step(result: DecisionResult, evidence: Evidence, used: int) -> ExplanationStep:
    decision = result.decision
    switch = decision.outcome is Outcome.SWITCH
    return ExplanationStep(
        evidence=evidence,
        used=used,
        outcome=decision.outcome,
        leader=decision.setting if switch else decision.leader,
        saving_ms=decision.saving_ms if switch else decision.leader_saving_ms,
        probability=decision.probability if switch else decision.leader_probability,
    )
