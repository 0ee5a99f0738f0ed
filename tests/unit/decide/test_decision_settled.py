"""When a decision is made, and when it is settled besides: reckoned from a few draws by hand."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from initadvisor.decide.cost import Advice, Outcome
from initadvisor.decide.costs import Draws
from initadvisor.decide.decision import (
    Thresholds,
    compare_candidates,
    decide,
    settling_means,
)
from tests.fixtures.known_machines import candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.decide.cost import Decision
    from initadvisor.decide.decision import CandidateComparison

    Floats = NDArray[np.float64]

NAMES = ("zstd", "lz4", "xz", "gzip")
TODAY_MS = 1000.0
"""All of it is waiting for the unpacking: 2 % of it, 20 ms, do not matter."""


def drawn(total_ms: Floats, extra_ms: Sequence[float] | None = None) -> Draws:
    """Return draws of which only the totals matter."""
    return Draws(
        size_mb=np.ones_like(total_ms),
        read_ms=np.zeros_like(total_ms),
        unpack_ms=np.zeros_like(total_ms),
        shadow_ms=total_ms[:, 0],
        waited_ms=total_ms,
        total_ms=total_ms,
        extra_ms=np.array(extra_ms or [0.0] * total_ms.shape[1]),
    )


def saving(*of_each: Sequence[float]) -> Floats:
    """Return totals of today's, 1000 ms, and of others that save so much in each draw."""
    saved = np.array(of_each, dtype=float)
    return np.column_stack([np.full(saved.shape[1], TODAY_MS), *(TODAY_MS - saved)])


def decided(
    total_ms: Floats,
    *,
    ineligible: Sequence[int] = (),
    baseline: int = 0,
    booted: bool = False,
) -> Decision:
    candidates = [
        candidate(name, 40, 100, eligible=number not in ineligible)
        for number, name in enumerate(NAMES[: total_ms.shape[1]])
    ]
    return decide(
        drawn(total_ms),
        candidates,
        baseline=baseline,
        thresholds=Thresholds(),
        source="a test",
        booted=booted,
    )


def stands(total_ms: Floats, extra_ms: Sequence[float] | None = None) -> CandidateComparison:
    candidates = [candidate(name, 40, 100) for name in NAMES[: total_ms.shape[1]]]
    return compare_candidates(
        drawn(total_ms, extra_ms), candidates, baseline=0, thresholds=Thresholds()
    )


def test_how_candidates_stand_is_counted_over_the_draws() -> None:
    # lz4 saves 30, 10, -5, 50 ms, xz 0, 40, 25, 20.
    found = stands(saving([30, 10, -5, 50], [0, 40, 25, 20]))
    assert found.tolerance_ms == pytest.approx(np.full(4, 20))
    assert found.typical_tolerance_ms == pytest.approx(20)
    assert found.expected_ms == pytest.approx([-20, 1.25, 1.25])
    assert found.loss_ms == pytest.approx([36.25, 15, 15])
    assert found.harms == pytest.approx([0, 0, 0])
    assert found.helps == pytest.approx([0, 0.5, 0.5])
    # Better than today's by more than 20 ms is something in each draw; than lz4, xz in two of them
    # (by 30, twice); than xz, lz4 in two (by 30, twice).
    assert found.within == pytest.approx([0, 0.5, 0.5])


def test_what_the_objective_adds_counts_in_all_of_it_but_the_tolerance() -> None:
    found = stands(saving([30, 30]), extra_ms=[0, 25])
    assert found.saving_ms[:, 1] == pytest.approx([5, 5])
    assert (found.harms[1], found.helps[1], found.within[0]) == (0, 0, 1)
    assert found.tolerance_ms == pytest.approx([20, 20])


@pytest.mark.parametrize(
    ("losing", "by_ms", "outcome"),
    [
        (4, 21, Outcome.SWITCH),
        (6, 21, Outcome.UNDECIDED),
        (60, 19, Outcome.SWITCH),  # it loses nothing that matters
    ],
)
def test_a_switch_hardly_ever_loses_what_matters(
    losing: int, by_ms: float, outcome: Outcome
) -> None:
    found = decided(saving([-by_ms] * losing + [90.0] * (100 - losing)))
    assert found.outcome is outcome
    if outcome is Outcome.SWITCH:
        assert found.probability == pytest.approx(1 - losing / 100 if by_ms > 20 else 1)
        assert found.action is Advice.SWITCH


@pytest.mark.parametrize(
    ("enough", "outcome"),
    [(25, Outcome.SWITCH), (24, Outcome.UNDECIDED), (6, Outcome.UNDECIDED), (5, Outcome.KEEP)],
)
def test_a_switch_is_expected_to_save_what_matters(enough: int, outcome: Outcome) -> None:
    # 81 ms in so many of 100 draws, 0.1 ms in the others; 20 ms on average matter.
    found = decided(saving([81.0] * enough + [0.1] * (100 - enough)))
    assert found.outcome is outcome
    assert str(found.setting) == ("lz4" if outcome is Outcome.SWITCH else "zstd")
    assert found.settled == (outcome is not Outcome.UNDECIDED)
    assert str(found.guess) == ("zstd" if outcome is Outcome.KEEP else "lz4")


@pytest.mark.parametrize(("better", "outcome"), [(8, Outcome.EVEN), (9, Outcome.UNDECIDED)])
def test_after_a_boot_little_to_lose_is_no_difference_worth_having(
    better: int, outcome: Outcome
) -> None:
    # lz4 saves 80 ms in so many of 100 draws: 7 ms on average are little, where 20 matter.
    total_ms = saving([80.0] * better + [-80.0] * (100 - better))
    assert decided(total_ms).outcome is Outcome.UNDECIDED
    found = decided(total_ms, booted=True)
    assert (found.outcome, str(found.setting)) == (outcome, "zstd")
    assert found.loss_ms == pytest.approx(0.8 * better)
    assert found.settled == (outcome is Outcome.EVEN)
    assert str(found.guess) == "zstd"


def normal(mean_ms: float, sd_ms: float) -> list[float]:
    """Return draws that are spread as a normal distribution's."""
    return NormalDist(mean_ms, sd_ms).quantiles(20_001)


@pytest.mark.parametrize("sd_ms", [1, 10, 20, 40, 200])
def test_what_is_planned_as_settled_is_what_is_then_decided(sd_ms: float) -> None:
    off_ms = 0.02 * (sd_ms + 20)
    below, above = settling_means(sd_ms, 20, 0.95, today=True)
    for mean_ms, outcomes in (
        (below - off_ms, {Outcome.KEEP, Outcome.EVEN}),
        (below + off_ms, {Outcome.UNDECIDED}),
        (above - off_ms, {Outcome.UNDECIDED}),
        (above + off_ms, {Outcome.SWITCH}),
    ):
        found = decided(saving(normal(mean_ms, sd_ms)), booted=True)
        assert found.outcome in outcomes, mean_ms
        assert found.settled == (found.outcome is not Outcome.UNDECIDED)


@pytest.mark.parametrize("sd_ms", [1, 10, 20, 40, 200])
def test_of_two_that_are_better_either_is_planned_to_be_settled(sd_ms: float) -> None:
    off_ms = 0.02 * (sd_ms + 20)
    below, above = settling_means(sd_ms, 20, 0.95, today=False)
    for mean_ms in np.array(
        [-300, *(at + off for at in (below, above) for off in (-off_ms, off_ms))]
    ):
        apart = np.array(normal(mean_ms, sd_ms))
        found = decided(
            1000 - np.column_stack([0 * apart, 0 * apart + 900, 900 + apart]), booted=True
        )
        assert found.outcome is Outcome.SWITCH
        assert found.settled == (mean_ms <= below or mean_ms >= above), mean_ms


def test_a_near_tie_of_two_that_are_better_is_a_switch_that_is_not_settled() -> None:
    # Each is better than the other by 40 ms half of the time, and than today's always.
    found = decided(saving([100.0, 140.0] * 50, [140.0, 100.0] * 50))
    assert (found.outcome, found.settled) == (Outcome.SWITCH, False)
    assert (found.probability, found.best_probability) == (1, 0.5)


def test_a_tie_of_two_that_are_better_within_the_tolerance_is_settled() -> None:
    found = decided(saving([100.0, 115.0] * 50, [115.0, 100.0] * 50))
    assert (found.outcome, found.settled, found.best_probability) == (Outcome.SWITCH, True, 1)


@pytest.mark.parametrize(("better", "settled"), [(5, True), (6, False)])
def test_a_switch_is_settled_where_it_is_certain_that_nothing_is_much_better(
    better: int, settled: bool
) -> None:
    # xz may lose very much, and so is no choice, but it may be much better as well.
    risky = [170.0] * better + [-300.0] * (100 - better)
    found = decided(saving([100.0] * 100, risky))
    assert (found.outcome, str(found.setting)) == (Outcome.SWITCH, "lz4")
    assert found.best_probability == pytest.approx(1 - better / 100)
    assert found.settled == settled


def test_of_two_switches_the_one_that_is_certainly_the_best_is_chosen() -> None:
    # xz saves more on average, by a few draws in which it saves very much.
    found = decided(saving([100.0] * 100, [1000.0] * 4 + [70.0] * 96))
    assert (str(found.setting), found.settled) == ("lz4", True)
    assert str(found.leader) == "xz"


def test_what_may_not_be_chosen_counts_neither_as_a_choice_nor_as_better() -> None:
    found = decided(saving([100.0] * 100, [400.0] * 100), ineligible=[2])
    assert (str(found.setting), found.settled, found.best_probability) == ("lz4", True, 1)
    assert decided(saving([100.0] * 100), ineligible=[1]).outcome is Outcome.KEEP


def test_today_s_setting_may_stand_anywhere_and_be_ineligible() -> None:
    total = saving([100.0] * 100)[:, ::-1]
    found = decided(total, baseline=1, ineligible=[1])
    assert (found.outcome, str(found.setting)) == (Outcome.SWITCH, "zstd")


TOTALS = st.tuples(st.integers(1, 30), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(1, 5000))
)


@given(total_ms=TOTALS, data=st.data(), certainty=st.floats(0.5, 0.99))
def test_whatever_is_believed_a_decision_keeps_its_promises(
    total_ms: Floats, data: st.DataObject, certainty: float
) -> None:
    count = total_ms.shape[1]
    baseline = data.draw(st.integers(0, count - 1))
    eligible = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    candidates = [
        candidate(name, 40, 100, eligible=fit) for name, fit in zip(NAMES, eligible, strict=False)
    ]
    found = decide(
        drawn(total_ms),
        candidates,
        baseline=baseline,
        thresholds=Thresholds(certainty=certainty),
        source="a test",
    )
    chosen = [one.setting for one in candidates].index(found.setting)
    saved = total_ms[:, baseline] - total_ms[:, chosen]
    tolerance = np.maximum(5, 0.02 * total_ms[:, baseline])
    best = total_ms[:, [n for n in range(count) if eligible[n] or n == baseline]].min(axis=1)
    within = float((total_ms[:, chosen] <= best + tolerance).mean())
    assert found.best_probability == pytest.approx(within)
    assert found.best == (within >= certainty)
    assert found.settled == (found.outcome is not Outcome.UNDECIDED and found.best)
    if found.outcome is Outcome.SWITCH:
        assert chosen != baseline
        assert eligible[chosen]
        assert (saved >= -tolerance).mean() == pytest.approx(found.probability)
        assert found.probability > certainty - 1e-9
        assert saved.mean() > tolerance.mean()
    else:
        assert chosen == baseline
        assert found.action is Advice.KEEP
        if found.outcome is Outcome.KEEP:
            assert found.settled
