"""An explanation shows what less evidence would have said, and between which two it was close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.decision_input import DecisionInput, decision_result
from initadvisor.advise.ranking import explain
from initadvisor.core.config import Config, Objective
from initadvisor.core.estimates import Evidence
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Outcome, Quantity
from initadvisor.lab.evidence import LabEvidence
from tests.fixtures.decision_cases import boot, case, image, lab_of

if TYPE_CHECKING:
    from initadvisor.decide.explanation import Explanation, ExplanationStep

ALL = ("zstd", "lz4 -9", "cat")
BOOTS = [boot("zstd", 400), boot("zstd", 400), boot("cat", 400)]


def explained(asked: DecisionInput) -> Explanation:
    return explain(asked, decision_result(asked))


def as_decided(step: ExplanationStep, asked: DecisionInput) -> bool:
    """Tell whether a step says what a case's decision does."""
    decision = decision_result(asked).decision
    if decision.outcome is Outcome.SWITCH:
        said = (decision.setting, decision.saving_ms, decision.probability)
    else:
        said = (decision.leader, decision.leader_saving_ms, decision.leader_probability)
    return (step.outcome, step.leader, step.saving_ms, step.probability) == (
        decision.outcome,
        *said,
    )


def test_each_step_is_the_answer_with_so_much_evidence() -> None:
    bare, lab = case(*ALL), case(*ALL, lab=lab_of(*ALL))
    asked = case(*ALL, lab=lab_of(*ALL), boots=BOOTS)
    steps = explained(asked).steps
    assert [(step.evidence, step.used) for step in steps] == [
        (Evidence.BENCH, 3),
        (Evidence.LAB, 3),
        (Evidence.BOOTS, 3),
    ]
    for step, known in zip(steps, (bare, lab, asked), strict=True):
        assert as_decided(step, known)
    assert steps[0].outcome is Outcome.UNDECIDED
    assert steps[2].outcome is Outcome.SWITCH
    widths = [step.saving_ms.high - step.saving_ms.low for step in steps]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("lab", "boots", "expected"),
    [
        ((), (), [Evidence.BENCH]),
        (("zstd",), (), [Evidence.BENCH, Evidence.LAB]),
        ((), BOOTS, [Evidence.BENCH, Evidence.BOOTS]),
        (("cat",), BOOTS, list(Evidence)),
    ],
)
def test_evidence_of_which_there_is_none_makes_no_step(
    lab: tuple[str, ...], boots: list[object], expected: list[Evidence]
) -> None:
    asked = case(*ALL, lab=lab_of(*lab), boots=boots)  # type: ignore[arg-type]
    steps = explained(asked).steps
    assert [step.evidence for step in steps] == expected
    assert as_decided(steps[-1], asked)


def test_another_kernel_s_lab_is_a_step_too() -> None:
    lab = LabEvidence(decompress_ms={"zstd": Quantity(median=200, log_sd=0.02, source="UML")})
    steps = explained(case(*ALL, lab=lab)).steps
    assert [(step.evidence, step.used) for step in steps] == [
        (Evidence.BENCH, 3),
        (Evidence.LAB, 1),
    ]


def test_the_two_that_are_compared_are_the_advised_and_its_rival() -> None:
    asked = case(*ALL, boots=BOOTS)
    why = explained(asked)
    assert why.contrast is not None
    assert why.contrast.one == decision_result(asked).decision.setting
    assert {str(why.contrast.one), str(why.contrast.other)} <= set(ALL)


@pytest.mark.parametrize("boots", [(), BOOTS])
def test_what_decides_is_told_for_every_outcome(boots: list[object]) -> None:
    why = explained(case(*ALL, boots=boots))  # type: ignore[arg-type]
    assert Parameter.LOADER in {weight.what for weight in why.weights}
    shares = [weight.share for weight in why.weights]
    assert shares == sorted(shares, reverse=True)
    for weight in why.weights:
        assert weight.now.source
        assert weight.ranges
        assert 0 <= weight.turns <= 1
        for one, following in zip(weight.ranges, weight.ranges[1:], strict=False):
            assert one.high == following.low
            assert one.setting != following.setting


def test_without_a_loader_in_doubt_it_is_not_what_decides() -> None:
    why = explained(case(*ALL, given_mb_s=100))
    assert why.weights[0].what is not Parameter.LOADER


def test_where_sizes_decide_only_the_smallest_are_compared() -> None:
    why = explained(case("zstd", "xz", "cat", config=Config(objective=Objective.SIZE)))
    assert why.contrast is not None
    assert (str(why.contrast.one), str(why.contrast.other)) == ("xz", "zstd")
    assert (why.weights, why.steps) == ((), ())
    assert why.updates


def test_the_share_of_a_build_is_in_the_comparison() -> None:
    config = Config(objective=Objective.BALANCED, boots_per_upgrade=10)
    why = explained(
        case(image("zstd", cpu_s=1), image("lz4 -9", cpu_s=3), config=config, boots=BOOTS[:2])
    )
    contrast = why.contrast
    assert contrast is not None
    sign = 1 if str(contrast.one) == "zstd" else -1
    assert contrast.build_ms == pytest.approx(-200 * sign)
    parts = contrast.read_ms.mean + contrast.waited_ms.mean + contrast.build_ms
    assert contrast.all_ms.mean == pytest.approx(parts)
