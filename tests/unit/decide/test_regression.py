"""Slower boots are found soon, and boots that are not slower hardly ever are."""

from __future__ import annotations

import random

import pytest

from initadvisor.decide.regression import _beyond, median_saving, regression
from tests.fixtures.slower_boots import BOOTS, boots, first_alarm


@pytest.mark.parametrize(
    ("freedom", "t", "tail"),
    [  # tables of Student's distribution, one-sided
        (1, 1.000, 0.25),
        (1, 31.821, 0.01),
        (2, 2.920, 0.05),
        (5, 2.015, 0.05),
        (5, 5.893, 0.001),
        (10, 1.812, 0.05),
        (30, 3.385, 0.001),
        (120, 1.658, 0.05),
        (1e7, 1.645, 0.05),
    ],
)
def test_the_tail_is_what_tables_say(freedom: float, t: float, tail: float) -> None:
    assert _beyond(t, freedom) == pytest.approx(tail, rel=2e-3)
    assert _beyond(-t, freedom) == pytest.approx(1 - tail, rel=2e-3)


def test_boots_that_are_much_slower_are_found_soon() -> None:
    source = random.Random(7)
    found = [first_alarm(boots(source, 1000, 10), boots(source, 1200, BOOTS)) for _ in range(100)]
    assert None not in found
    assert sorted(count or 0 for count in found)[90] <= 6


def test_what_does_not_matter_is_no_worsening() -> None:
    source = random.Random(8)
    wrong = [
        first_alarm(boots(source, 1000, 20), boots(source, 1010, BOOTS), tolerance_ms=20)
        for _ in range(100)
    ]
    assert wrong.count(None) >= 95


def test_faster_boots_are_none_either() -> None:
    source = random.Random(9)
    assert first_alarm(boots(source, 1000, 20), boots(source, 800, BOOTS)) is None


@pytest.mark.parametrize(("before", "after"), [(0, 9), (1, 9), (9, 0), (9, 1)])
def test_of_single_boots_nothing_is_known(before: int, after: int) -> None:
    found = regression([100.0] * before, [900.0] * after, tolerance_ms=0, certainty=0.95)
    assert not found.certain
    assert (found.boots_before, found.boots_after, found.doubt) == (before, after, 1.0)


def test_equal_values_are_no_reason_for_certainty_about_a_trifle() -> None:
    found = regression([100.0] * 2, [100.5] * 2, tolerance_ms=0, certainty=0.95)
    assert not found.certain
    assert found.slower_ms == pytest.approx(0.5)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3), (5, 5)])
def test_what_is_saved_lies_in_its_interval(before: int, after: int) -> None:
    source = random.Random(10)
    missed = 0
    for _ in range(100):
        saved, low, high = _needed(boots(source, 1000, before), boots(source, 900, after))
        assert low < saved < high
        missed += not low < 100 < high
    assert missed <= 11


def test_the_more_boots_the_narrower_and_of_two_there_is_no_interval() -> None:
    few = _needed([500.0, 510], [450.0])
    assert few[0] == 55
    assert few[1] == pytest.approx(55 - 12.706 * 7.0711 * 1.5**0.5, rel=1e-3)
    many = _needed([500.0, 510] * 8, [450.0, 440] * 8)
    assert many[0] == 60
    assert many[2] - many[1] < (few[2] - few[1]) / 10
    equal = _needed([500.0] * 50, [500.0] * 50)
    assert equal[1] < -0.2 < 0.2 < equal[2]
    for before, after in (([1.0], [2.0]), ([1.0, 2.0, 3.0], []), ([], [1.0, 2.0, 3.0])):
        assert median_saving(before, after) is None


def _needed(before: list[float], after: list[float]) -> tuple[float, float, float]:
    found = median_saving(before, after)
    assert found is not None
    return found
