"""From what was measured to a decision, what would make it surer, and the rows that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.advise.recommendation import Plan, PlannedBoots, Rival, Row
from initadvisor.core.estimates import Evidence
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.contrast import contrast, strongest_rival
from initadvisor.decide.cost import Outcome
from initadvisor.decide.costs import summary
from initadvisor.decide.decision import chances, compare_candidates, savings
from initadvisor.decide.explanation import Pair, deciding_fact
from initadvisor.decide.next_boot import MOST_BOOTS, next_boots

if TYPE_CHECKING:
    from initadvisor.advise.decision_input import DecisionInput, DecisionResult
    from initadvisor.core.settings import Setting
    from initadvisor.decide.boot_evidence import PosteriorSummary
    from initadvisor.decide.contrast import Contrast
    from initadvisor.decide.cost import DecidingFact, Decision


_WORTH_BUILDING = 0.02
"""A setting that is the best with less probability than this will not be recommended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidates:
    """The decision, the weakest evidence it rests on, and a row for each contender.

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


def summarise(case: DecisionInput, judged: DecisionResult) -> RankedCandidates:
    """Put in figures what comes of a decision, and what would make it surer."""
    deciding, rival = (None, None) if case.by_size else _closest(case, judged)
    return RankedCandidates(
        decision=judged.decision,
        evidence=judged.weakest,
        rows=tuple(sorted(_rows(case, judged), key=lambda row: row.total_ms.mean)),
        summary=judged.posterior_costs.summary,
        deciding=deciding,
        rival=rival,
        plan=None if case.by_size or judged.hinges_on_build else _plan(case, judged),
        hinges_on_build=judged.hinges_on_build,
        unbuilt=_unbuilt(case, judged),
    )


def _closest(
    case: DecisionInput, judged: DecisionResult
) -> tuple[DecidingFact | None, Rival | None]:
    """Return what comes closest to what is advised, and what would decide where that is open."""
    facts, thresholds = judged.facts, case.thresholds
    chosen = judged.column(judged.decision.setting)
    found = compare_candidates(
        judged.posterior_costs.draws, facts, baseline=0, thresholds=thresholds
    )
    closest = strongest_rival(found, chosen)
    if closest is None:
        return None, None
    column, probability = closest
    rival = Rival(
        setting=facts[column].setting,
        probability=probability,
        contrast=_contrast(judged, chosen, column),
    )
    if judged.decision.outcome is not Outcome.UNDECIDED or judged.hinges_on_build:
        return None, rival
    deciding = deciding_fact(
        judged.posterior_costs.posterior.parameters,
        facts,
        found,
        Pair(advised=chosen, rival=column),
        baseline=0,
        thresholds=thresholds,
    )
    return deciding, rival


def _contrast(judged: DecisionResult, one: int, other: int) -> Contrast:
    weakest = Evidence.weakest((judged.evidence[one], judged.evidence[other]))
    return contrast(judged.posterior_costs.draws, judged.facts, one, other, source=str(weakest))


def _plan(case: DecisionInput, judged: DecisionResult) -> Plan | None:
    """Return the boots that would settle the decision, None where there are none to be made."""
    if case.limits is None:
        return None
    posterior, facts = judged.posterior_costs.posterior, judged.facts
    plan = next_boots(
        posterior,
        case.knowledge.machine,
        facts,
        decision=judged.decision,
        own_boots=judged.posterior_costs.summary.own_boots,
        baseline=0,
        thresholds=case.thresholds,
        limits=case.limits,
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
        contrast=_contrast(judged, plan.leader, plan.rival),
        loader_seen=posterior.noise.loader_seen,
        unbuilt=tuple(
            facts[column].setting for column, _ in plan.boots if _is_estimate(case, column)
        ),
    )


def _is_estimate(case: DecisionInput, column: int) -> bool:
    return case.candidates[column].sampled is not None


def _unbuilt(case: DecisionInput, judged: DecisionResult) -> tuple[Setting, ...]:
    """Return what is only estimated and may win, and what is said to lead."""
    field, decision = case.candidates, judged.decision
    chance = chances(judged.posterior_costs.draws, judged.facts, by_size=case.by_size)
    named = {decision.setting, decision.leader}
    order = sorted(range(len(field)), key=lambda column: -chance[column])
    return tuple(
        field[column].setting
        for column in order
        if _is_estimate(case, column)
        and (chance[column] >= _WORTH_BUILDING or field[column].setting in named)
    )


def _rows(case: DecisionInput, judged: DecisionResult) -> list[Row]:
    draws, evidence, lab = judged.posterior_costs.draws, judged.evidence, case.unpacking.lab
    loader = judged.posterior_costs.summary.now(Parameter.LOADER).source
    saving = savings(draws, 0)
    rows = []
    for column, contender in enumerate(case.candidates):
        own = evidence[column]
        against_today = Evidence.weakest((evidence[0], own))
        unpack = str(own) if own is Evidence.BOOTS else lab.source(contender.digest)
        cost = contender.cost
        rows.append(
            Row(
                setting=contender.setting,
                size_bytes=int(contender.size.median),
                size_log_sd=contender.size.log_sd,
                size_source=contender.size_source,
                read_ms=summary(draws.read_ms[:, column], loader),
                unpack_ms=summary(draws.unpack_ms[:, column], unpack),
                total_ms=summary(draws.total_ms[:, column], str(own)),
                saving_ms=summary(saving[:, column], str(against_today)),
                build_s=cost.build_s if cost else None,
                build_cpu_s=cost.build_cpu_s if cost else None,
                build_peak_bytes=cost.build_peak_bytes if cost else None,
                fits=case.fits(contender),
                lint=case.verdicts[contender.digest],
                notes=case.notes(contender),
                unusable=case.unusable(contender),
            )
        )
    return rows
