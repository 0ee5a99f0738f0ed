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


def explain(decision_input: DecisionInput, result: DecisionResult) -> Explanation:
    """Explain a decision: the facts it depends on, and what each kind of evidence did to it."""
    draws, summary = result.posterior_costs.draws, result.posterior_costs.summary
    pair = (
        _smallest(decision_input, result)
        if decision_input.by_size
        else _closest(decision_input, result)
    )
    explained = Explanation(
        contrast=None, weights=(), images_share=0.0, steps=(), updates=summary.updates
    )
    if pair is None:
        return explained
    weakest = Evidence.weakest((result.evidence[pair.advised], result.evidence[pair.rival]))
    explained = replace(
        explained,
        contrast=contrast(draws, result.facts, pair.advised, pair.rival, source=str(weakest)),
    )
    if decision_input.by_size:
        return explained
    found = compare_candidates(
        draws, result.facts, baseline=0, thresholds=decision_input.thresholds
    )
    parts = result.posterior_costs.posterior.parameters
    return replace(
        explained,
        weights=weights(parts, result.facts, found, summary, pair, baseline=0),
        images_share=images_share(parts, found, pair),
        steps=tuple(_steps(decision_input, result)),
    )


def _closest(decision_input: DecisionInput, result: DecisionResult) -> Pair | None:
    """Return what is advised and what is likeliest to be better."""
    advised = result.column(result.decision.setting)
    found = compare_candidates(
        result.posterior_costs.draws, result.facts, baseline=0, thresholds=decision_input.thresholds
    )
    rival = strongest_rival(found, advised)
    return None if rival is None else Pair(advised=advised, rival=rival[0])


def _smallest(decision_input: DecisionInput, result: DecisionResult) -> Pair | None:
    """Return what is advised, and the smallest beside it."""
    advised = result.column(result.decision.setting)
    others = [
        column
        for column, fact in enumerate(result.facts)
        if column != advised and (fact.eligible or decision_input.candidates[column].today)
    ]
    if not others:
        return None
    rival = min(others, key=lambda column: result.facts[column].size_mb.median)
    return Pair(advised=advised, rival=rival)


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
