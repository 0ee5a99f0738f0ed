"""Medians of groups, what scatters within them, and how well a middle is known."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.decide.posterior.groups import combined, grouped, location, scatter

VALUES = st.lists(
    st.tuples(st.integers(0, 5), st.floats(-20, 20, allow_nan=False)), min_size=0, max_size=60
)


@given(VALUES)
def test_each_group_has_its_median_and_count(pairs: list[tuple[int, float]]) -> None:
    groups = grouped(
        np.array([value for _, value in pairs], dtype=float),
        np.array([key for key, _ in pairs], dtype=np.int64),
    )
    expected: dict[int, list[float]] = {}
    for key, value in pairs:
        expected.setdefault(key, []).append(value)
    assert groups.keys.tolist() == sorted(expected)
    assert groups.count.tolist() == [len(expected[key]) for key in sorted(expected)]
    assert groups.median.tolist() == pytest.approx([median(expected[k]) for k in sorted(expected)])
    assert groups.repeats == len(pairs) - len(expected)


def test_what_scatters_is_learnt_from_repeats_of_many_things() -> None:
    rng = np.random.default_rng(1)
    keys = np.repeat(np.arange(200), 3)
    values = rng.normal(0, 1, 200)[keys] + rng.normal(0, 0.2, 600)
    assert scatter(grouped(values, keys), 0.05) == pytest.approx(0.2, rel=0.15)


def test_a_few_disturbed_values_do_not_count_as_scatter() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.05, 300)
    values[::20] += 2.3
    assert scatter(grouped(values, np.zeros(300, dtype=np.int64)), 0.05) < 0.07


def test_without_repeats_the_scatter_is_as_stated() -> None:
    groups = grouped(np.array([1.0, 5.0]), np.array([0, 1]))
    assert scatter(groups, 0.05) == 0.05


def test_two_alike_by_chance_do_not_make_a_precise_clock() -> None:
    assert scatter(grouped(np.array([1.0, 1.0]), np.array([0, 0])), 0.05) > 0.04


def test_a_middle_is_known_the_better_the_more_there_are_but_not_beyond_the_floor() -> None:
    errors = [location(1.0, count, sd=0.1, floor=0.02).sd for count in (1, 2, 3, 10, 10**6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == pytest.approx(0.102, abs=0.001)
    assert errors[-1] == pytest.approx(0.02, abs=1e-4)


def test_accounts_that_agree_are_worth_more_and_those_that_do_not_less() -> None:
    one = location(5.0, 4, sd=0.1, floor=0.02)
    agreeing = combined([one, location(5.0, 4, sd=0.1, floor=0.02)])
    contradicting = combined([one, location(6.0, 4, sd=0.1, floor=0.02)])
    assert agreeing.sd < one.sd < contradicting.sd
    assert agreeing.count == 8
