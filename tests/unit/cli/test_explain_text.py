"""The explanation is said in words, each figure with what it is from, and fits the terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.cli.explain_text import explained
from initadvisor.cli.recommend import as_document
from initadvisor.cli.recommend_text import print_recommendation
from initadvisor.core.config import Objective
from initadvisor.core.estimates import Evidence
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import Parameter, ParameterUpdate
from initadvisor.decide.cost import BestRange, Outcome
from initadvisor.decide.explanation import Explanation, ExplanationStep, Weight
from tests.fixtures.answers import LOADER_DECIDES, LZ4, ZSTD, answer, contrast, decision, figure

if TYPE_CHECKING:
    import pytest

    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.core.estimates import Estimate

CAT = Setting.parse("cat")
SPEED = figure(316, 31.6, 3160)
LOADER = Weight(
    what=Parameter.LOADER, now=SPEED, share=0.82, ranges=LOADER_DECIDES.ranges, turns=0.4
)
NEVER = Weight(
    what=Parameter.CPU,
    now=figure(1.03, 0.6, 1.6),
    share=0.07,
    ranges=(BestRange(low=0.6, high=1.6, setting=ZSTD),),
    turns=0.0,
)


def step(
    evidence: Evidence, used: int, outcome: Outcome, saving: Estimate, probability: float
) -> ExplanationStep:
    return ExplanationStep(
        evidence=evidence,
        used=used,
        outcome=outcome,
        leader=LZ4,
        saving_ms=saving,
        probability=probability,
    )


WHY = Explanation(
    contrast=contrast(ZSTD, LZ4),
    weights=(LOADER, NEVER),
    images_share=0.05,
    steps=(
        step(Evidence.BENCH, 12, Outcome.UNDECIDED, figure(40, -30, 90), 0.6),
        step(Evidence.BOOTS, 1, Outcome.SWITCH, figure(60, 40, 80), 0.97),
    ),
    updates=(
        ParameterUpdate(
            what=Parameter.LOADER, prior=SPEED, posterior=figure(140, 120, 160), boots=12
        ),
        ParameterUpdate(
            what=Parameter.LAB,
            prior=replace(figure(1, 0.8, 1.2), source=""),
            posterior=figure(1, 0.8, 1.2),
            boots=0,
        ),
    ),
)


def asked(why: Explanation = WHY, *, objective: Objective = Objective.BOOT) -> Recommendation:
    chosen = decision(Outcome.UNDECIDED, saving=figure(40, -30, 90))
    return replace(answer(chosen, objective=objective), explanation=why)


def parts(why: Explanation = WHY, *, objective: Objective = Objective.BOOT) -> dict[str, list[str]]:
    return {title: list(lines) for title, lines in explained(asked(objective=objective), why)}


def test_the_two_are_compared_part_by_part() -> None:
    assert parts()["zstd against lz4 -9"] == [
        "with zstd reading takes 7 (5..9) ms less, waiting for the unpacking 10 (8..12) ms more; "
        "together 3 (-5..12) ms more (evidence: a test)"
    ]


def test_a_share_of_a_build_is_named_where_it_differs() -> None:
    dear = replace(WHY, contrast=replace(contrast(ZSTD, LZ4), build_ms=-200.0))
    [line] = parts(dear)["zstd against lz4 -9"]
    assert ", its share of a build 200 ms less; together" in line


def test_what_decides_is_said_with_what_is_known_its_share_and_where_it_turns() -> None:
    loader, cpu, images = parts()["What decides between them here"]
    assert loader == (
        "how fast the boot loader reads, 316 (31.6..3160) MB/s, makes 82 % of the doubt; below "
        "150 MB/s zstd is best, from there to 1200 MB/s lz4 -9, above 1200 MB/s cat; that this is "
        "another one than zstd is 40 % likely"
    )
    assert cpu == (
        "how fast this kernel decompresses, against the prediction, 1.03 (0.6..1.6) times, makes "
        "7 % of the doubt; zstd is best wherever in this range it is"
    )
    assert images.startswith("5 % of the doubt is about zstd and lz4 -9 themselves")


def test_of_two_stretches_the_bound_is_said_once() -> None:
    two = replace(LOADER, ranges=LOADER_DECIDES.ranges[:2])
    loader, *_ = parts(replace(WHY, weights=(two,)))["What decides between them here"]
    assert "below 150 MB/s zstd is best, above it lz4 -9;" in loader


def test_no_more_than_three_facts_are_named_and_none_that_tells_nothing() -> None:
    idle = replace(NEVER, share=0.0)
    turning = replace(LOADER, what=Parameter.SHADOW, share=0.001)
    why = replace(WHY, weights=(LOADER, NEVER, idle, turning, NEVER), images_share=0.0)
    named = parts(why)["What decides between them here"]
    assert len(named) == 3
    assert named[2].startswith("how long the kernel is busy before it needs the")


def test_where_nothing_is_in_doubt_no_fact_is_made_up() -> None:
    why = replace(WHY, weights=(), images_share=0.0)
    assert parts(why)["What decides between them here"] == [
        "no fact about the machine: none makes more than 1 % of the doubt"
    ]


def test_each_step_has_its_leader_saving_and_certainty_and_what_is_missing_is_said() -> None:
    assert parts()["What each kind of evidence made of it"] == [
        "sizes and predicted times: undecided; the largest expected gain is that of lz4 -9, 40 "
        "(-30..90) ms, which matters with a probability of 60 %",
        "and 1 boot of this machine: switch to lz4 -9, which saves 60 (40..80) ms, 97 % sure",
        "the lab: has not unpacked any of these images",
    ]


def test_a_gain_on_average_that_is_likelier_a_loss_is_told_with_both() -> None:
    lopsided = replace(figure(40, -142, 455), median=-27.0)
    found = step(Evidence.BENCH, 0, Outcome.UNDECIDED, lopsided, 0.39)
    said = parts(replace(WHY, steps=(found,)))["What each kind of evidence made of it"]
    assert said[0] == (
        "sizes and predicted times: undecided; the largest expected gain is that of lz4 -9, 40 ms "
        "on average, median -27 (-142..455) ms, which matters with a probability of 39 %"
    )


def test_a_step_without_a_gain_names_none() -> None:
    keep = step(Evidence.LAB, 2, Outcome.KEEP, figure(-5, -9, -1), 0.0)
    said = parts(replace(WHY, steps=(keep,)))["What each kind of evidence made of it"]
    assert said == [
        "and the lab, which unpacked 2 of the images: keep; none is expected to save anything, "
        "lz4 -9 costs 5 (1..9) ms",
        "boots: none is recorded that tells anything of these images",
    ]


def test_what_is_known_is_said_before_and_after_with_its_source() -> None:
    loader, lab = parts()["What is known of this machine, and from what"]
    assert loader == (
        "the loader reads: 140 (120..160) MB/s, from 12 boots; without them 316 (31.6..3160) MB/s, "
        "a test"
    )
    assert lab == "the bare machine, by the virtual one: 1 (0.8..1.2) times, assumed"


def test_where_sizes_decide_nothing_else_is_said_to() -> None:
    why = replace(WHY, weights=(), steps=(), images_share=0.0)
    found = parts(why, objective=Objective.SIZE)
    assert found["What decides between them here"] == [
        "their sizes alone; what each boot costs is not weighed"
    ]
    assert "What each kind of evidence made of it" not in found


def test_where_nothing_else_may_be_chosen_nothing_is_compared() -> None:
    why = replace(WHY, contrast=None, weights=(), steps=())
    assert list(parts(why)) == ["What is known of this machine, and from what"]


def test_every_fact_has_its_words() -> None:
    for what in (
        Parameter.LOADER,
        Parameter.SHADOW,
        Parameter.CPU,
        Parameter.POPULATE,
        Parameter.LAB,
    ):
        first, *_ = parts(replace(WHY, weights=(replace(LOADER, what=what),)))[
            "What decides between them here"
        ]
        assert first


def test_it_is_printed_after_the_answer_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_recommendation(asked(), evidence=True)
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert out.index("This rests on:") < out.index("zstd against lz4 -9:")
    print_recommendation(replace(asked(), explanation=None), evidence=True)
    assert "What decides between them" not in capsys.readouterr().out


def test_the_json_has_all_of_it() -> None:
    found = json.loads(json.dumps(as_document(asked()), allow_nan=False))["explain"]
    assert found["contrast"]["all_ms"]["source"] == "a test"
    loader, cpu = found["facts"]
    assert (loader["what"], loader["share"], loader["turns"]) == ("loader", 0.82, 0.4)
    assert [stretch["setting"] for stretch in loader["ranges"]] == ["zstd", "lz4 -9", "cat"]
    assert cpu["now"]["high"] == 1.6
    assert found["images_share"] == 0.05
    assert [(one["evidence"], one["used"]) for one in found["steps"]] == [
        ("predicted", 12),
        ("boots", 1),
    ]
    assert found["steps"][1]["probability"] == 0.97
    assert [(one["what"], one["boots"]) for one in found["updates"]] == [("loader", 12), ("lab", 0)]
    assert found["updates"][0]["before"]["mean"] == 316
    assert found["updates"][0]["now"]["mean"] == 140
