"""When a decision is made, and when it is settled besides: reckoned from a few draws by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from initadvisor.decide.cost import Advice, Outcome
from initadvisor.decide.costs import Draws
from initadvisor.decide.decision import Thresholds, compare_candidates, decide
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
        waited_ms=total_ms,
        total_ms=total_ms,
        extra_ms=np.array(extra_ms or [0.0] * total_ms.shape[1]),
    )


def saving(*of_each: Sequence[float]) -> Floats:
    """Return totals of today's, 1000 ms, and of others that save so much in each draw."""
    saved = np.array(of_each, dtype=float)
    return np.column_stack([np.full(saved.shape[1], TODAY_MS), *(TODAY_MS - saved)])


def decided(total_ms: Floats, *, ineligible: Sequence[int] = (), baseline: int = 0) -> Decision:
    candidates = [
        candidate(name, 40, 100, eligible=number not in ineligible)
        for number, name in enumerate(NAMES[: total_ms.shape[1]])
    ]
    return decide(
        drawn(total_ms), candidates, baseline=baseline, thresholds=Thresholds(), source="a test"
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
    assert found.faster == pytest.approx([0, 0.75, 0.75])
    assert found.helps == pytest.approx([0, 0.5, 0.5])
    # Better than today's by more than 20 ms is something in each draw; than lz4, xz in two of them
    # (by 30, twice); than xz, lz4 in two (by 30, twice).
    assert found.within == pytest.approx([0, 0.5, 0.5])


def test_what_the_objective_adds_counts_in_all_of_it_but_the_tolerance() -> None:
    found = stands(saving([30, 30]), extra_ms=[0, 25])
    assert found.saving_ms[:, 1] == pytest.approx([5, 5])
    assert (found.faster[1], found.helps[1], found.within[0]) == (1, 0, 1)
    assert found.tolerance_ms == pytest.approx([20, 20])


@pytest.mark.parametrize(
    ("losing", "outcome"), [(5, Outcome.SWITCH), (6, Outcome.UNDECIDED), (0, Outcome.SWITCH)]
)
def test_a_switch_needs_a_saving_that_is_certain(losing: int, outcome: Outcome) -> None:
    found = decided(saving([-1.0] * losing + [60.0] * (100 - losing)))
    assert found.outcome is outcome
    if outcome is Outcome.SWITCH:
        assert found.probability == pytest.approx(1 - losing / 100)
        assert found.action is Advice.SWITCH


@pytest.mark.parametrize(
    ("enough", "outcome"),
    [(51, Outcome.SWITCH), (50, Outcome.UNDECIDED), (6, Outcome.UNDECIDED), (5, Outcome.KEEP)],
)
def test_a_switch_needs_a_saving_that_is_likely_to_matter(enough: int, outcome: Outcome) -> None:
    # It saves something for certain; more than 20 ms in so many of 100 draws.
    found = decided(saving([21.0] * enough + [1.0] * (100 - enough)))
    assert found.outcome is outcome
    assert str(found.setting) == ("lz4" if outcome is Outcome.SWITCH else "zstd")
    assert found.settled == (outcome is not Outcome.UNDECIDED)


def test_a_saving_that_matters_by_far_but_seldom_is_no_switch() -> None:
    assert decided(saving([500.0] * 49 + [1.0] * 51)).outcome is Outcome.UNDECIDED


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
    assert found.settled == (found.outcome is not Outcome.UNDECIDED and within >= certainty)
    if found.outcome is Outcome.SWITCH:
        assert chosen != baseline
        assert eligible[chosen]
        assert (saved > 0).mean() == pytest.approx(found.probability)
        assert found.probability >= certainty
        assert (saved > tolerance).mean() > 0.5
    else:
        assert chosen == baseline
        assert found.action is Advice.KEEP
        if found.outcome is Outcome.KEEP:
            assert found.settled
