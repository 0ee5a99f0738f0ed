"""The next boot is the one that teaches, never one that is hopeless, and plans keep their word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.decide.cost import CandidateFacts, Machine, Outcome
from initadvisor.decide.costs import priced
from initadvisor.decide.decision import Thresholds, decide
from initadvisor.decide.next_boot import MOST_BOOTS, BootLimits, Purpose, next_boots
from initadvisor.decide.posterior.posterior import Noise, Posterior, sample_posterior
from tests.fixtures.known_machines import candidate, known, machine
from tests.fixtures.synthetic_boots import FIELD, WITH_LAB, simulate, unknown_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import Decision
    from initadvisor.decide.next_boot import BootPlan

TODAY = candidate("zstd -19", 40, 120)
CERTAIN = machine()
UNKNOWN_LOADER = replace(machine(read_log_sd=1.2), fixed_ms=known(100, 1.0))
SOME_NOISE = Noise(unpack_log_sd=0.05, read_log_sd=0.05)


def known_of(
    machine: Machine,
    field: Sequence[CandidateFacts],
    boots: Sequence[BootEvidence] = (),
    *,
    seed: int = 1,
    count: int = 1000,
) -> tuple[Posterior, Decision]:
    """Return what is believed, and what is decided by that."""
    posterior = sample_posterior(machine, field, boots, seed=seed, count=count)
    decision = decide(
        priced(posterior.parameters, machine, field),
        field,
        baseline=0,
        thresholds=Thresholds(),
        source="a test",
        booted=bool(boots),
    )
    return posterior, decision


def plan_for(
    machine: Machine,
    *field: CandidateFacts,
    own: Sequence[int] | None = None,
    noise: Noise = SOME_NOISE,
    limits: BootLimits = BootLimits(),  # noqa: B008 - frozen
    most_boots: int = MOST_BOOTS,
) -> BootPlan | None:
    """Return what to boot, where by default today's image (the first) booted once."""
    posterior, decision = known_of(machine, field)
    return next_boots(
        replace(posterior, noise=noise),
        machine,
        field,
        decision=decision,
        own_boots=own or (1, *(0 for _ in field[1:])),
        baseline=0,
        thresholds=Thresholds(),
        limits=limits,
        most_boots=most_boots,
    )


def learnt_by(plan: BootPlan | None) -> BootPlan:
    """Return a plan that is one to learn by."""
    assert plan is not None
    assert plan.purpose is Purpose.LEARN
    assert plan.first == plan.boots[0][0]
    assert plan.count == sum(count for _, count in plan.boots)
    return plan


def test_who_may_boot_nothing_gets_no_plan() -> None:
    field = (TODAY, candidate("lz4", 48, 40))
    assert plan_for(UNKNOWN_LOADER, *field, own=(0, 0), most_boots=0) is None
    assert plan_for(UNKNOWN_LOADER, *field, most_boots=0) is None
    assert learnt_by(plan_for(UNKNOWN_LOADER, *field, most_boots=1)).count == 1


@pytest.mark.parametrize("own", [(0, 0), (0, 5)])
@pytest.mark.parametrize("rival", [candidate("lz4", 41, 40), candidate("lz4", 40, 119)])
def test_today_s_image_boots_first_however_certain_all_is(
    own: tuple[int, ...], rival: CandidateFacts
) -> None:
    plan = plan_for(CERTAIN, TODAY, rival, own=own)
    assert plan is not None
    assert (plan.first, plan.purpose, plan.boots) == (0, Purpose.TODAY, ((0, 1),))


def test_what_is_chosen_has_to_boot_once() -> None:
    lz4 = candidate("lz4", 41, 40)
    plan = plan_for(CERTAIN, TODAY, candidate("xz", 38, 900), lz4, own=(1, 0, 0))
    assert plan is not None
    assert (plan.first, plan.purpose, plan.boots, plan.chance) == (2, Purpose.PROVE, ((2, 1),), 1.0)
    assert plan_for(CERTAIN, TODAY, candidate("xz", 38, 900), lz4, own=(1, 0, 1)) is None


def test_a_certain_keep_takes_two_boots_of_which_one_may_have_been_disturbed() -> None:
    larger = candidate("lz4", 60, 110)
    plan = plan_for(CERTAIN, TODAY, larger, own=(1, 0))
    assert plan is not None
    assert (plan.first, plan.purpose) == (0, Purpose.PROVE)
    assert plan_for(CERTAIN, TODAY, larger, own=(2, 0)) is None
    assert plan_for(CERTAIN, TODAY, larger, own=(1, 1)) is None


def test_a_switch_beside_which_something_may_be_better_is_not_the_end() -> None:
    # Both save much; which of them saves more hangs on a time nobody knows well.
    quick, doubtful = candidate("lz4", 41, 100), candidate("zstd -1", 40, 100, log_sd=0.9)
    slow = candidate("zstd -19", 40, 900)
    _, decision = known_of(CERTAIN, (slow, quick, doubtful))
    assert (decision.outcome, decision.settled) == (Outcome.SWITCH, False)
    plan = learnt_by(plan_for(CERTAIN, slow, quick, doubtful, own=(1, 3, 0)))
    assert {plan.leader, plan.rival} == {1, 2}
    assert plan.first == 2


def test_where_the_loader_is_unknown_another_size_boots() -> None:
    # With one size, reading and what is paid for every image cannot be told apart.
    field = (TODAY, candidate("lz4", 75, 40), candidate("gzip", 40, 121))
    plan = learnt_by(plan_for(UNKNOWN_LOADER, *field, own=(5, 0, 0)))
    assert plan.first == 1


def test_where_a_time_to_unpack_is_unknown_the_candidate_in_question_boots() -> None:
    field = (TODAY, candidate("xz", 30, 400), candidate("lz4", 47, 60, log_sd=0.5))
    plan = learnt_by(plan_for(machine(mb_s=100), *field))
    assert plan.first == 2
    assert {plan.leader, plan.rival} == {0, 2}


def test_what_may_not_be_used_teaches_nothing() -> None:
    field = (TODAY, candidate("lz4", 75, 40), candidate("cat", 150, 0, eligible=False))
    for everything in (False, True):
        limits = BootLimits(everything=everything)
        plan = learnt_by(plan_for(UNKNOWN_LOADER, *field, limits=limits))
        assert {column for column, _ in plan.boots} <= {0, 1}


def columns(plan: BootPlan | None) -> set[int]:
    """Return which candidates a plan boots."""
    return {column for column, _ in learnt_by(plan).boots}


def test_what_costs_more_than_the_limit_boots_only_if_everything_may() -> None:
    # The loader's speed shows nowhere as well as in the largest image.
    field = (TODAY, candidate("lz4", 48, 40), candidate("cat", 1500, 0))
    assert 2 not in columns(plan_for(UNKNOWN_LOADER, *field))
    assert 2 in columns(plan_for(UNKNOWN_LOADER, *field, limits=BootLimits(everything=True)))
    assert 2 in columns(plan_for(UNKNOWN_LOADER, *field, limits=BootLimits(excess_ms=1e6)))


def test_what_is_dominated_boots_only_if_everything_may() -> None:
    # gzip is larger and slower than lz4 -9 whatever the loader does, and furthest from today's.
    field = (TODAY, candidate("lz4 -9", 48, 40), candidate("gzip", 150, 90))
    assert 2 not in columns(plan_for(UNKNOWN_LOADER, *field))
    assert 2 in columns(plan_for(UNKNOWN_LOADER, *field, limits=BootLimits(everything=True)))


NAMES = ("zstd -19", "lz4", "lz4 -9", "zstd -3", "xz")
FIELDS = st.lists(
    st.tuples(st.floats(5, 120), st.floats(1, 1500), st.booleans()), min_size=2, max_size=5
)


@given(figures=FIELDS, mb_s=st.floats(8, 1000), everything=st.booleans(), data=st.data())
def test_nothing_hopeless_boots_and_nothing_is_the_end_that_is_not(
    figures: list[tuple[float, float, bool]], mb_s: float, everything: bool, data: st.DataObject
) -> None:
    figures[0] = (*figures[0][:2], True)  # today's image boots every day
    field = tuple(
        candidate(name, size_mb, decompress_ms, eligible=eligible)
        for name, (size_mb, decompress_ms, eligible) in zip(NAMES, figures, strict=False)
    )
    unknown = replace(machine(mb_s=mb_s, read_log_sd=0.6), fixed_ms=known(100, 1.0))
    own = data.draw(
        st.lists(st.integers(0, 2), min_size=len(field), max_size=len(field)), label="own boots"
    )
    _, decision = known_of(unknown, field)
    plan = plan_for(unknown, *field, own=own, limits=BootLimits(everything=everything))
    chosen = [one.setting for one in field].index(decision.setting)
    done = decision.outcome is not Outcome.UNDECIDED and decision.settled
    proven = own[0] > 0 and own[chosen] > 0 and sum(own) > 1
    assert (plan is None) == (done and proven)
    if plan is None or plan.purpose is not Purpose.LEARN:
        return
    assert 1 <= plan.count <= 40
    assert 0 <= plan.chance <= 1
    # Sizes and times are certain, the mean of the loader's seconds per MB is known.
    s_per_mb = float(np.mean(known_of(unknown, field)[0].parameters.read_s_per_mb))
    costs_ms = [size_mb * s_per_mb * 1000 + unpack_ms for size_mb, unpack_ms, _ in figures]
    within = [
        eligible and cost_ms - costs_ms[0] <= 2999
        for cost_ms, (_, _, eligible) in zip(costs_ms, figures, strict=True)
    ]
    for column in columns(plan) - {0}:
        assert figures[column][2]
        assert everything or costs_ms[column] - costs_ms[0] <= 3001
        assert everything or not _beaten(column, figures, within)


def _beaten(column: int, figures: list[tuple[float, float, bool]], among: Sequence[bool]) -> bool:
    """Tell whether another one of those is smaller and quicker to unpack."""
    size_mb, decompress_ms, _ = figures[column]
    return any(
        other[0] < size_mb and other[1] < decompress_ms
        for other in (figure for figure, possible in zip(figures, among, strict=True) if possible)
    )


@pytest.mark.parametrize("log_sd", [0.5, 0.8])
def test_the_less_noise_the_fewer_boots(log_sd: float) -> None:
    field = (TODAY, candidate("lz4", 47, 60, log_sd=log_sd), candidate("xz", 30, 400))
    plans = [
        learnt_by(plan_for(CERTAIN, *field, noise=Noise(unpack_log_sd=noise, read_log_sd=noise)))
        for noise in (0.01, 0.1, 0.2, 0.4)
    ]
    counts = [plan.count for plan in plans]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_what_boots_can_hardly_tell_is_said_to_be_so() -> None:
    # Whether it saves some ms, among 180 of which no boot shows more than a half.
    field = (TODAY, candidate("lz4", 40, 110, log_sd=0.1))
    plan = learnt_by(plan_for(CERTAIN, *field, noise=Noise(unpack_log_sd=1.0, read_log_sd=1.0)))
    assert plan.count == 40
    assert plan.chance < 0.5


@pytest.mark.parametrize("field", [FIELD, WITH_LAB], ids=["bench", "lab"])
def test_as_many_plans_settle_the_decision_as_they_say(field: tuple[CandidateFacts, ...]) -> None:
    """They speak of one question only, and of boots not yet seen: some less are enough."""
    unknown, machines = unknown_machine(), simulate(field, count=60, seed=7)
    chances, settled = [], []
    for row in range(60):
        boots = machines.boot(row, 0)
        posterior, decision = known_of(unknown, field, boots, seed=row, count=600)
        plan = next_boots(
            posterior,
            unknown,
            field,
            decision=decision,
            own_boots=(1, 0, 0, 0, 0),
            baseline=0,
            thresholds=Thresholds(),
            limits=BootLimits(),
        )
        if plan is None or plan.purpose is not Purpose.LEARN:
            continue
        for column, count in plan.boots:
            boots += machines.boot(row, column, boots=count)
        _, after = known_of(unknown, field, boots, seed=1000 + row, count=600)
        chances.append(plan.chance)
        settled.append(after.outcome is not Outcome.UNDECIDED and after.settled)
    assert len(chances) >= 25
    assert np.mean(settled) >= np.mean(chances) - 0.15, (np.mean(settled), np.mean(chances))
