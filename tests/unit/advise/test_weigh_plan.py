"""With the advice comes what would make it surer: which boots, and what may be better still."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.ranking import RankedCandidates
from initadvisor.core.config import Config, Objective
from initadvisor.decide.cost import Factor, Outcome
from initadvisor.decide.next_boot import MOST_BOOTS, BootLimits, Purpose
from initadvisor.image.contents import Lint, Verdict
from tests.fixtures.decision_cases import boot, case, image, weigh

if TYPE_CHECKING:
    from initadvisor.advise.ranking import RankedCandidates
    from initadvisor.advise.recommendation import Plan


def plan_of(weighed: RankedCandidates) -> Plan:
    assert weighed.plan is not None
    return weighed.plan


def named(plan: Plan) -> dict[str, int]:
    return {str(planned.setting): planned.boots for planned in plan.boots}


def test_today_s_image_is_booted_first() -> None:
    plan = plan_of(weigh(case()))
    assert (plan.purpose, named(plan)) == (Purpose.TODAY, {"zstd": 1})
    assert str(plan.following) == "zstd"


def test_what_tells_the_loader_s_speed_is_booted_where_all_depends_on_it() -> None:
    weighed = weigh(case(boots=[boot("zstd", 60)] * 2))
    plan = plan_of(weighed)
    assert weighed.decision.outcome is Outcome.UNDECIDED
    assert plan.purpose is Purpose.LEARN
    assert str(plan.following) == "cat"  # of another size than today's
    assert plan.enough
    assert plan.chance >= 0.8
    assert plan.count == sum(named(plan).values()) < 10
    assert plan.loader_seen
    assert plan.unbuilt == ()


def test_the_boots_that_were_planned_do_settle_it() -> None:
    field = ("zstd", "lz4 -9", "cat")
    today = [boot("zstd", 50)] * 2
    before = weigh(case(*field, boots=today))
    planned = [
        boot(str(one.setting), 50) for one in plan_of(before).boots for _ in range(one.boots)
    ]
    after = weigh(case(*field, boots=[*today, *planned]))
    assert before.decision.outcome is Outcome.UNDECIDED
    assert after.decision.outcome is Outcome.KEEP
    assert after.decision.settled


def test_what_was_decided_is_proved_by_one_boot() -> None:
    boots = [boot("zstd", 400), boot("zstd", 400), boot("lz4", 400), boot("cat", 400)]
    weighed = weigh(case(boots=boots * 2))
    assert (weighed.decision.outcome, weighed.decision.settled) == (Outcome.SWITCH, True)
    plan = plan_of(weighed)
    assert (plan.purpose, named(plan)) == (Purpose.PROVE, {"lz4 -9": 1})
    assert plan.chance == 1
    assert weigh(case(boots=[*boots * 2, boot("lz4 -9", 400)])).plan is None


def test_a_certain_keep_of_a_booted_image_leaves_nothing_to_boot() -> None:
    weighed = weigh(case("lz4 -9", "xz", boots=[boot("lz4 -9", 100)] * 2))
    assert weighed.decision.outcome is Outcome.KEEP
    assert weighed.plan is None


def test_what_was_not_built_has_to_be_built_first() -> None:
    field = [image("zstd"), image("lz4 -9"), image("cat", estimated=True)]
    plan = plan_of(weigh(case(*field, boots=[boot("zstd", 60)] * 2)))
    assert "cat" in named(plan)
    assert [str(setting) for setting in plan.unbuilt] == ["cat"]


def test_what_may_cost_too_much_is_not_booted_unless_all_may_be() -> None:
    boots = [boot("zstd", 60)] * 2
    little = weigh(case(boots=boots, limits=BootLimits(excess_ms=50)))
    everything = weigh(case(boots=boots, limits=BootLimits(excess_ms=50, everything=True)))
    assert "cat" not in named(plan_of(little))
    assert "cat" in named(plan_of(everything))


def test_without_readings_even_many_boots_are_not_enough() -> None:
    boots = [boot("zstd", 60, reading_seen=False)] * 3
    plan = plan_of(weigh(case("zstd", "lz4 -9", "cat", boots=boots)))
    assert not plan.loader_seen
    assert not plan.enough
    assert (plan.count, plan.chance < 0.8) == (MOST_BOOTS, True)


def test_images_that_this_machine_does_not_boot_have_no_plan() -> None:
    assert weigh(case(limits=None)).plan is None


def test_where_sizes_decide_no_boot_is_needed() -> None:
    weighed = weigh(case(config=Config(objective=Objective.SIZE)))
    assert weighed.plan is None
    assert weighed.rival is None


def test_of_an_undecided_answer_the_rival_is_what_may_gain_most_likely() -> None:
    weighed = weigh(case(linux_mb_s=800))
    rival = weighed.rival
    assert rival is not None
    assert str(rival.setting) == "lz4 -9"
    assert rival.probability == pytest.approx(weighed.decision.leader_probability, abs=0.02)
    assert str(rival.contrast.one) == "zstd"
    assert rival.contrast.all_ms.mean == pytest.approx(weighed.decision.leader_saving_ms.mean)


def test_a_switch_that_is_not_settled_has_a_rival_and_a_plan() -> None:
    weighed = weigh(case("xz", "zstd", "zstd -19", "lz4 -9", boots=[boot("xz", 60)] * 2))
    decision = weighed.decision
    assert (decision.outcome, decision.settled) == (Outcome.SWITCH, False)
    rival, plan = weighed.rival, plan_of(weighed)
    assert rival is not None
    assert rival.setting != decision.setting
    assert 0 < rival.probability <= 1 - decision.best_probability + 1e-9
    assert rival.contrast.one == decision.setting
    assert plan.purpose is Purpose.LEARN
    assert decision.setting in {plan.contrast.one, plan.contrast.other}


def test_without_anything_else_to_choose_there_is_no_rival() -> None:
    asked = case("zstd", "lz4 -9")
    refused = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_LZ4",))
    assert weigh(asked).rival is not None
    asked = replace(asked, verdicts={**asked.verdicts, "lz4 -9": refused})
    assert weigh(asked).rival is None


def test_what_would_decide_is_named_where_the_decision_is_open() -> None:
    """What is then said of the loader is what is said once its speed is given."""
    field = ("zstd", "lz4 -9", "cat")
    weighed = weigh(case(*field, boots=[boot("zstd", 60)] * 2))
    fact = weighed.deciding
    assert weighed.decision.outcome is Outcome.UNDECIDED
    assert fact is not None
    assert fact.factor is Factor.LOADER
    assert [str(stretch.setting) for stretch in fact.ranges] == ["zstd", "lz4 -9"]
    crossing = fact.ranges[0].high
    for mb_s, outcome in ((crossing / 2, Outcome.KEEP), (crossing * 2, Outcome.SWITCH)):
        known = weigh(
            case(*field, boots=[boot("zstd", 60, reading_seen=False)] * 2, given_mb_s=mb_s)
        )
        assert known.decision.outcome is outcome
        assert known.deciding is None


def test_where_sizes_decide_no_fact_does() -> None:
    assert weigh(case(config=Config(objective=Objective.SIZE))).deciding is None
