"""Why the answer is what it is: with less evidence it may have been another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.advise.decision_input import decision_result
from initadvisor.core.estimates import Evidence
from initadvisor.decide.contrast import contrast, strongest_rival
from initadvisor.decide.cost import Outcome
from initadvisor.decide.decision import compare_candidates
from initadvisor.decide.explanation import Explanation, ExplanationStep, Pair, images_share, weights
from initadvisor.lab.evidence import LabEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.advise.decision_input import DecisionInput, DecisionResult


def explain(case: DecisionInput, judged: DecisionResult) -> Explanation:
    """Explain a decision: the facts it depends on, and what each kind of evidence did to it."""
    draws, lessons = judged.posterior_costs.draws, judged.posterior_costs.summary
    pair = _smallest(case, judged) if case.by_size else _closest(case, judged)
    explained = Explanation(
        contrast=None, weights=(), images_share=0.0, steps=(), updates=lessons.updates
    )
    if pair is None:
        return explained
    weakest = Evidence.weakest((judged.evidence[pair.advised], judged.evidence[pair.rival]))
    explained = replace(
        explained,
        contrast=contrast(draws, judged.facts, pair.advised, pair.rival, source=str(weakest)),
    )
    if case.by_size:
        return explained
    found = compare_candidates(draws, judged.facts, baseline=0, thresholds=case.thresholds)
    parts = judged.posterior_costs.posterior.parameters
    return replace(
        explained,
        weights=weights(parts, judged.facts, found, lessons, pair, baseline=0),
        images_share=images_share(parts, found, pair),
        steps=tuple(_steps(case, judged)),
    )


def _closest(case: DecisionInput, judged: DecisionResult) -> Pair | None:
    """Return what is advised and what is likeliest to be better."""
    advised = judged.column(judged.decision.setting)
    found = compare_candidates(
        judged.posterior_costs.draws, judged.facts, baseline=0, thresholds=case.thresholds
    )
    rival = strongest_rival(found, advised)
    return None if rival is None else Pair(advised=advised, rival=rival[0])


def _smallest(case: DecisionInput, judged: DecisionResult) -> Pair | None:
    """Return what is advised, and the smallest beside it."""
    advised = judged.column(judged.decision.setting)
    others = [
        column
        for column, fact in enumerate(judged.facts)
        if column != advised and (fact.eligible or case.candidates[column].today)
    ]
    if not others:
        return None
    rival = min(others, key=lambda column: judged.facts[column].size_mb.median)
    return Pair(advised=advised, rival=rival)


def _steps(case: DecisionInput, judged: DecisionResult) -> Iterator[ExplanationStep]:
    """Yield the answers without boots and without the lab, and the one that is given.

    Evidence of which there is none makes no step.
    """
    lab = case.unpacking.lab
    in_lab = sum(
        c.digest in lab.unpack_ms or c.digest in lab.decompress_ms for c in case.candidates
    )
    boots = judged.posterior_costs.summary.boots_used
    bare = replace(case, boots=(), unpacking=replace(case.unpacking, lab=LabEvidence()))
    images = len(case.candidates)
    yield _step(decision_result(bare) if in_lab or boots else judged, Evidence.BENCH, images)
    if in_lab:
        yield _step(
            decision_result(replace(case, boots=())) if boots else judged, Evidence.LAB, in_lab
        )
    if boots:
        yield _step(judged, Evidence.BOOTS, boots)


def _step(judged: DecisionResult, evidence: Evidence, used: int) -> ExplanationStep:
    decision = judged.decision
    switch = decision.outcome is Outcome.SWITCH
    return ExplanationStep(
        evidence=evidence,
        used=used,
        outcome=decision.outcome,
        leader=decision.setting if switch else decision.leader,
        saving_ms=decision.saving_ms if switch else decision.leader_saving_ms,
        probability=decision.probability if switch else decision.leader_probability,
    )
