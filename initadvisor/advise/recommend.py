"""The main job: from an image to a recommendation, with what it rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.advise.boots import what_was_learnt
from initadvisor.advise.evaluation import CandidateEvaluation, RecommendObserver, Request
from initadvisor.advise.explain import explain
from initadvisor.advise.machine import unpacking_assumptions
from initadvisor.advise.recommendation import Assumption, Recommendation, Storage
from initadvisor.candidates.build_range import UNKNOWN_BUILD
from initadvisor.candidates.search_space import open_search_space
from initadvisor.core.config import Objective
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.host.configuration import load_config
from initadvisor.target.context import what_matters_more
from initadvisor.target.target import find_target, sample_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.advise.evaluation import Answer
    from initadvisor.core.config import Config
    from initadvisor.core.estimates import Estimate
    from initadvisor.host import Host
    from initadvisor.image.kernel import KernelConfig
    from initadvisor.target.disk import Disk
    from initadvisor.target.target import Target


def recommend(host: Host, request: Request, *, observer: RecommendObserver) -> Recommendation:
    """Estimate or build, measure, weigh, and decide.

    Candidates that were not built are estimated from a sample; with ``build`` those that may be the
    best are built, and all are weighed again. With ``explain`` it is said why.

    Raises ``InitadvisorError`` (with its exit code) where there is no image, it cannot be read or
    is none, nothing can be compared, or the lab is asked for and no virtual machine works.
    """
    config = _config(host, request)
    target = sample_target(host) if request.sample else find_target(host, request.image)
    with open_search_space(
        host, target, config, only=request.only, everything=request.everything
    ) as search_space:
        evaluation = CandidateEvaluation(
            host, request, config, search_space, observer, sample=target.sample
        )
        answer = evaluation.rank()
        if request.build:
            evaluation.build(answer.candidate_set, answer.ranked.unbuilt)
            answer = evaluation.rank()
        if request.lab:
            evaluation.run_lab(answer.candidate_set)
            answer = evaluation.rank()
        found = _recommendation(host, target, config, evaluation, answer)
        if request.explain:
            found = replace(
                found, explanation=explain(answer.decision_input, answer.decision_result)
            )
        return found


def _recommendation(
    host: Host, target: Target, config: Config, evaluation: CandidateEvaluation, answer: Answer
) -> Recommendation:
    candidate_set, ranked = answer.candidate_set, answer.ranked
    lab = answer.decision_input.unpacking.lab
    return Recommendation(
        image=candidate_set.source.path,
        sample=target.sample,
        generator=candidate_set.generator.NAME,
        kernel_release=candidate_set.kernel_release,
        baseline=candidate_set.baseline.setting,
        baseline_source=candidate_set.baseline.source,
        objective=config.objective,
        certainty=config.certainty,
        evidence=ranked.evidence,
        decision=ranked.decision,
        storage=_storage(evaluation.disk, ranked.summary.now(Parameter.LOADER)),
        unpacked_bytes=candidate_set.source.contents.unpacked_bytes,
        whole_boot_ms=evaluation.context.whole_boot_ms,
        rows=ranked.rows,
        pace=evaluation.pace,
        deciding=ranked.deciding,
        rival=ranked.rival,
        plan=ranked.plan,
        hinges_on_build=ranked.hinges_on_build,
        unbuilt=ranked.unbuilt,
        skipped=candidate_set.skipped,
        assumptions=tuple(_assumptions(config, evaluation, answer)),
        warnings=(
            *candidate_set.baseline.warnings,
            *evaluation.disk.warnings,
            *evaluation.table.warnings,
            *lab.warnings,
            *evaluation.boots.warnings,
            *_unknown_kernel(candidate_set.kernel_release, evaluation.kernel_config),
        ),
        context=what_matters_more(host, candidate_set.generator, candidate_set.source),
    )


def _assumptions(
    config: Config, evaluation: CandidateEvaluation, answer: Answer
) -> Iterator[Assumption]:
    """Yield what the answer rests on; of what boots told of, what they made of what was assumed."""
    decision_input, summary = answer.decision_input, answer.ranked.summary
    known, told = decision_input.knowledge, summary.informed
    yield from (assumed for assumed in known.assumptions if assumed.about not in told)
    yield from unpacking_assumptions(
        decision_input.candidates, known.machine, decision_input.unpacking.lab, told=told
    )
    yield from what_was_learnt(summary)
    if config.objective is Objective.BALANCED:
        yield Assumption(about=None, text=evaluation.pace.words)
        if decision_input.todays_build_open:
            spread = decision_input.todays_build
            yield Assumption(about=None, text=spread.words if spread else UNKNOWN_BUILD)


def _config(host: Host, request: Request) -> Config:
    config = load_config(host)
    return replace(config, objective=request.objective) if request.objective else config


def _unknown_kernel(kernel: str | None, config: KernelConfig | None) -> tuple[str, ...]:
    """Say once what keeps the verdicts of lint from being certain."""
    if config is not None:
        return ()
    return (
        f"the configuration of {f'Linux {kernel}' if kernel else 'the kernel'} is not known, so it "
        "is not certain which codecs it unpacks: name it with --kernel-config FILE",
    )


def _storage(disk: Disk, loader_mb_s: Estimate) -> Storage:
    return Storage(
        device=disk.device,
        kind=disk.kind,
        read_mb_s=disk.read_mb_s,
        loader_mb_s=loader_mb_s,
        free_bytes=disk.free_bytes,
        room_on=disk.room_on,
    )
