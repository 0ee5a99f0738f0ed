"""The boots that would settle it are said in a sentence, and no more than is known of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from initadvisor.advise.recommendation import Plan, PlannedBoots, Recommendation, Rival
from initadvisor.cli.explain_text import advice, plan_sentences
from initadvisor.cli.recommend import as_document
from initadvisor.cli.recommend_text import print_recommendation
from initadvisor.core.config import Objective
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Outcome
from initadvisor.decide.next_boot import Purpose
from tests.fixtures.answers import LOADER_DECIDES, LZ4, ZSTD, answer, contrast, decision, figure

CAT, XZ = Setting.parse("cat"), Setting.parse("xz -6")
GAIN = figure(61.4, 20.2, 103.9)


def plan(
    *boots: tuple[Setting, int],
    purpose: Purpose = Purpose.LEARN,
    chance: float = 0.85,
    unbuilt: tuple[Setting, ...] = (),
) -> Plan:
    return Plan(
        purpose=purpose,
        boots=tuple(PlannedBoots(setting=setting, boots=count) for setting, count in boots),
        chance=chance,
        enough=True,
        contrast=contrast(),
        loader_seen=True,
        unbuilt=unbuilt,
    )


def undecided(of: Plan) -> Recommendation:
    return replace(answer(decision(Outcome.UNDECIDED, saving=GAIN)), plan=of)


def switched(*, settled: bool = True, of: Plan | None = None) -> Recommendation:
    """Return a switch to lz4 -9, beside which cat comes closest."""
    chosen = replace(
        decision(Outcome.SWITCH, saving=GAIN), settled=settled, best=settled, best_probability=0.77
    )
    rival = Rival(setting=CAT, probability=0.2, contrast=contrast(LZ4, CAT))
    return replace(answer(chosen), rival=rival, plan=of)


def said(of: Recommendation) -> str:
    [sentence] = plan_sentences(of)
    return sentence


@pytest.mark.parametrize(
    ("boots", "expected"),
    [
        (
            [(CAT, 2), (XZ, 1)],
            "What would decide it: at most about 3 more boots, 2 of cat and 1 of xz -6 (85 % "
            "likely); the next one: cat.",
        ),
        ([(CAT, 4)], "What would decide it: at most about 4 more boots of cat (85 % likely)."),
        ([(CAT, 1)], "What would decide it: one more boot, of cat (85 % likely)."),
        (
            [(CAT, 2), (XZ, 1), (ZSTD, 9)],
            "What would decide it: at most about 12 more boots, 2 of cat, 1 of xz -6 and 9 of zstd "
            "(85 % likely); the next one: cat.",
        ),
    ],
)
def test_how_many_boots_of_what_would_decide(
    boots: list[tuple[Setting, int]], expected: str
) -> None:
    assert said(undecided(plan(*boots))) == expected


def test_it_is_the_first_thing_said_after_the_verdict() -> None:
    chosen = decision(Outcome.UNDECIDED, saving=GAIN)
    asked = replace(answer(chosen, sampled=True, deciding=LOADER_DECIDES), plan=plan((CAT, 1)))
    _, first, build, fact = advice(asked)
    assert first.startswith("What would decide it: one more boot")
    assert "--build does that" in build
    assert fact.startswith("What would decide it (60 % likely) is to know")


@pytest.mark.parametrize("outcome", list(Outcome))
def test_before_any_boot_of_today_s_image_that_is_said(outcome: Outcome) -> None:
    first = plan((ZSTD, 1), purpose=Purpose.TODAY, chance=0.0)
    sentence = said(replace(answer(decision(outcome, saving=GAIN)), plan=first))
    assert sentence.startswith(
        "No boot is recorded yet that is certain to be of today's image (zstd); "
    )
    assert "'initadvisor measure' records this boot" in sentence
    assert "%" not in sentence


def test_one_boot_of_todays_image_is_not_called_none() -> None:
    """What a settled keep still wants is a second boot of what is in use."""
    of = plan((ZSTD, 1), purpose=Purpose.PROVE, chance=1.0)
    kept = replace(answer(decision(Outcome.KEEP, saving=figure(0, 0, 0))), plan=of)
    assert kept.baseline == ZSTD
    assert said(kept) == (
        "Nothing is left to find out; one boot more of zstd would prove it on this machine: one "
        "alone may have been disturbed."
    )


def test_what_is_decided_is_proved_by_one_boot() -> None:
    of = plan((LZ4, 1), purpose=Purpose.PROVE, chance=1.0)
    assert said(switched(of=of)) == (
        "Nothing is left to find out; one boot of lz4 -9 would prove it on this machine."
    )


def test_a_near_tie_is_called_one() -> None:
    of = replace(plan((CAT, 25), (ZSTD, 15), chance=0.3), enough=False)
    assert said(undecided(of)) == (
        "It may take more than 40 boots to decide it: zstd and lz4 -9 may be a near-tie (lz4 -9 "
        "saves 3 (-5..12) ms), and keeping zstd is fine until then. What tells most is a boot of "
        "cat."
    )


def test_a_near_tie_with_what_is_advised_is_fine_either_way() -> None:
    of = replace(plan((CAT, 40), chance=0.3), enough=False, contrast=contrast(LZ4, CAT, saves=-3))
    _, sentence = plan_sentences(switched(settled=False, of=of))
    assert (
        "lz4 -9 and cat may be a near-tie (cat costs 3 (-6..11) ms), and switching to" in sentence
    )
    others = replace(of, contrast=contrast(XZ, CAT))
    _, sentence = plan_sentences(switched(settled=False, of=others))
    assert "and either is fine" in sentence


def test_where_no_boot_shows_the_loader_that_is_said_and_no_tie_claimed() -> None:
    of = replace(plan((CAT, 40), chance=0.3), enough=False, loader_seen=False)
    sentence = said(undecided(of))
    assert "no boot recorded so far shows how long the loader reads" in sentence
    assert "--read-speed" in sentence
    assert "near-tie" not in sentence


def test_of_a_switch_that_is_not_settled_what_may_be_better_still_is_said() -> None:
    better, tells = plan_sentences(switched(settled=False, of=plan((CAT, 3))))
    assert better == (
        "Something else may be better still by enough to matter (23 % likely), first of all cat: "
        "against lz4 -9 it saves 3 (-5..12) ms."
    )
    assert tells == "What would tell: at most about 3 more boots of cat (85 % likely)."
    [alone] = plan_sentences(switched(settled=False))
    assert alone == better


def test_of_a_settled_switch_nothing_is_said_to_be_better() -> None:
    assert list(plan_sentences(switched())) == []


def test_where_sizes_decide_no_boots_are_needed() -> None:
    by_size = answer(decision(Outcome.SWITCH, saving=GAIN), objective=Objective.SIZE)
    assert said(by_size) == "No boots are needed to decide: sizes do."


def test_what_cannot_boot_yet_has_to_be_built() -> None:
    of = plan((LZ4, 2), (XZ, 1), unbuilt=(LZ4, XZ))
    assert said(undecided(of)).endswith(
        " lz4 -9 and xz -6 have to be built first (initadvisor candidates build --only 'lz4 -9' "
        "--only 'xz -6')."
    )
    one = replace(undecided(plan((LZ4, 2), unbuilt=(LZ4,))), unbuilt=(LZ4, CAT))
    assert said(one).endswith(" lz4 -9 has to be built first (--build does that).")


def test_the_plan_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_recommendation(
        switched(settled=False, of=plan((LZ4, 2), (XZ, 1), unbuilt=(LZ4, XZ))), evidence=True
    )
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 80


def test_the_json_has_the_plan_and_the_rival() -> None:
    document = json.loads(
        json.dumps(as_document(switched(of=plan((CAT, 2), (XZ, 1), unbuilt=(XZ,)))))
    )
    found = document["plan"]
    assert (found["purpose"], found["next"], found["chance"]) == ("learn", "cat", 0.85)
    assert found["boots"] == [{"setting": "cat", "boots": 2}, {"setting": "xz -6", "boots": 1}]
    assert (found["enough"], found["loader_seen"], found["unbuilt"]) == (True, True, ["xz -6"])
    assert (found["contrast"]["one"], found["contrast"]["other"]) == ("zstd", "lz4 -9")
    rival = document["recommendation"]["rival"]
    assert (rival["setting"], rival["probability"]) == ("cat", 0.2)
    assert rival["contrast"]["all_ms"]["mean"] == 3.0


def test_the_json_without_a_plan_says_so() -> None:
    document = as_document(answer(decision(Outcome.KEEP, saving=GAIN)))
    assert document["plan"] is None
    assert document["recommendation"]["rival"] is None
    assert document["explain"] is None
    assert document["boots_per_upgrade"] == {
        "boots": 14,
        "source": "assumed",
        "recorded_boots": 0,
        "upgrades": 0,
    }
