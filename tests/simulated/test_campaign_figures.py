"""Every figure of a simulation says how far chance may have moved it, and is right about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.campaign_figures import (
    BootCount,
    Mean,
    boot_count,
    figures,
    mean,
    setting_uses,
    share,
)
from initadvisor.decide.cost import Outcome
from tests.fixtures.synthetic_machines import LZ4, XZ, ZSTD, campaign

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER = float("inf")


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (9, 10, 0.5958, 0.9821), (95, 100, 0.8882, 0.9785)],
)
def test_a_share_has_wilson_s_interval(count: int, of: int, low: float, high: float) -> None:
    found = share(count, of)
    assert (found.count, found.of, found.part) == (count, of, count / of)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 3000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_share_lies_within_its_interval(counted: tuple[int, int]) -> None:
    found = share(*counted)
    assert 0 <= found.low <= found.part <= found.high <= 1
    assert found.low < found.high


def test_a_number_of_boots_has_the_interval_of_tables_of_order_statistics() -> None:
    # Of ten values the second and the ninth hold the median with 97.9 %.
    assert boot_count(range(1, 11), 0.5) == BootCount(boots=5, low=2, high=9)
    # Of five no two do, so there is no upper bound but none.
    assert boot_count(range(1, 6), 0.5) == BootCount(boots=3, low=0, high=None)


def test_campaigns_that_never_end_are_longer_than_any() -> None:
    mostly = [*range(1, 92), *[NEVER] * 9]
    found = boot_count(mostly, 0.9)
    assert (found.boots, found.high) == (90, None)
    assert boot_count([NEVER] * 30, 0.5) == BootCount(boots=None, low=None, high=None)
    half = boot_count([*range(1, 17), *[NEVER] * 15], 0.5)
    assert (half.boots, half.high) == (16, None)


def coverage(holds: Callable[[np.random.Generator], bool]) -> float:
    return float(np.mean([holds(np.random.default_rng(seed)) for seed in range(600)]))


@pytest.mark.parametrize(("part", "count"), [(0.5, 15), (0.5, 200), (0.9, 60), (0.9, 500)])
def test_an_interval_of_boots_holds_the_quantile_as_often_as_it_says(
    part: float, count: int
) -> None:
    """Of a geometric distribution, whose quantiles can be reckoned."""
    true = int(np.ceil(np.log(1 - part) / np.log(1 - 0.05)))

    def holds(rng: np.random.Generator) -> bool:
        found = boot_count(rng.geometric(0.05, count).tolist(), part)
        high = NEVER if found.high is None else found.high
        return found.low is not None and found.low <= true <= high

    assert coverage(holds) >= 0.94


@pytest.mark.parametrize(("part", "count"), [(0.5, 20), (0.95, 200), (0.97, 1000)])
def test_an_interval_of_a_share_holds_it_as_often_as_it_says(part: float, count: int) -> None:
    def holds(rng: np.random.Generator) -> bool:
        found = share(int(rng.binomial(count, part)), count)
        return found.low <= part <= found.high

    assert 0.92 <= coverage(holds) <= 0.985


def test_an_interval_of_a_mean_holds_it_about_as_often_as_it_says() -> None:
    def holds(rng: np.random.Generator) -> bool:
        found = mean(rng.exponential(3.0, 100).tolist())
        return found.low is not None and found.high is not None and found.low <= 3 <= found.high

    assert 0.91 <= coverage(holds) <= 0.98


def test_a_mean_of_few_values_or_of_the_same_has_no_interval() -> None:
    assert mean([1.0, 3.0]) == Mean(mean=2.0, low=None, high=None)
    assert mean([2.0] * 50) == Mean(mean=2.0, low=None, high=None)
    assert mean([0.0, 1.0] * 10).low is not None
    assert mean([0.0] * 99 + [1.0]).low == 0  # no regret is below none


def test_figures_of_machines_reckoned_by_hand() -> None:
    runs = [
        campaign(2),
        campaign(4, regret_ms=8.0),
        campaign(6, outcome=Outcome.KEEP, right=False, regret_ms=30.0, stated=0.9),
        campaign(40, outcome=Outcome.UNDECIDED, right=True),
    ]
    found = figures(runs, certainty=0.9)
    assert (found.machines, found.settled.count, found.right.count) == (4, 3, 2)
    assert (found.boots_median.boots, found.boots_90.boots) == (4, None)
    assert (found.regret_ms.mean, found.beyond_ms.mean) == (38 / 4, 20 / 4)
    low, high = found.calibration
    assert (low.stated, low.right.count, low.right.of) == (0.9, 0, 1)
    assert (high.stated, high.right.count, high.right.of) == (0.99, 2, 2)


@pytest.mark.parametrize(
    ("settled", "undecided", "median", "most"),
    [
        (range(1, 11), 0, 5, 9),
        (range(1, 10), 1, 5, 9),
        (range(1, 9), 2, 5, None),
        (range(1, 5), 6, None, None),
        ([7], 0, 7, 7),
        ([], 3, None, None),
    ],
)
def test_boots_to_a_decision_count_those_that_never_come_to_one(
    settled: list[int], undecided: int, median: int | None, most: int | None
) -> None:
    runs = [campaign(boots) for boots in settled]
    runs += [campaign(40, outcome=Outcome.UNDECIDED)] * undecided
    found = figures(runs, certainty=0.95)
    assert (found.boots_median.boots, found.boots_90.boots) == (median, most)


def test_what_was_stated_is_held_against_what_was_right() -> None:
    runs = [
        campaign(1, stated=0.95),
        campaign(1, stated=0.96, right=False),
        campaign(1, stated=0.97),
        campaign(1, stated=0.99),
        campaign(1, stated=1.0),
        campaign(40, stated=0.999, right=False, outcome=Outcome.UNDECIDED),
    ]
    low, middle, high = figures(runs, certainty=0.95).calibration
    assert [one.stated for one in (low, middle, high)] == pytest.approx([0.955, 0.97, 0.995])
    assert [one.right.part for one in (low, middle, high)] == [0.5, 1, 1]
    assert [one.right.of for one in (low, middle, high)] == [2, 1, 2]


@given(st.floats(0.5, 0.999), st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_every_settled_decision_is_held_against_what_it_said(
    certainty: float, beyond: list[float]
) -> None:
    stated = [certainty + part * (1 - certainty) for part in beyond]
    runs = [campaign(1, stated=min(1.0, max(certainty, one))) for one in stated]
    found = figures(runs, certainty=certainty).calibration
    assert sum(one.right.of for one in found) == len(runs)


def test_of_every_setting_it_is_said_what_became_of_it() -> None:
    runs = [
        campaign(3, booted=(ZSTD, LZ4, LZ4)),
        campaign(1, setting=ZSTD, booted=(ZSTD,), best=XZ),
    ]
    uses = {use.setting: use for use in setting_uses(runs)}
    assert set(uses) == {ZSTD, LZ4, XZ}
    lz4, zstd = uses[LZ4], uses[ZSTD]
    assert (lz4.best.count, lz4.chosen.count, lz4.booted.count) == (1, 1, 1)
    assert lz4.boots.mean == 1.0
    assert (zstd.best.count, zstd.chosen.count, zstd.booted.count) == (0, 1, 2)
    assert (uses[XZ].best.count, uses[XZ].booted.count) == (1, 0)
    assert sum(use.best.count for use in uses.values()) == len(runs)
    assert setting_uses(runs)[0].setting == LZ4
