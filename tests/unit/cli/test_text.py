"""Figures in sentences are short and claim no certainty."""

from __future__ import annotations

import pytest

from initadvisor.cli.rendering.text import boots, listed, more_or_less, percent, rounded, short
from tests.fixtures.answers import figure


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.4, "0"), (-0.4, "0"), (9_999.4, "9999"), (12_345, "12k"), (-12_345, "-12k")],
)
def test_numbers_are_short(value: float, expected: str) -> None:
    assert short(value) == expected


def test_a_negative_difference_is_less_with_its_bounds_turned_round() -> None:
    assert more_or_less(figure(3, -5, 12)) == "3 (-5..12) ms more"
    assert more_or_less(figure(-3, -12, 5)) == "3 (-5..12) ms less"


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(1.0, "over 99 %"), (0.0, "under 1 %"), (0.5, "50 %"), (0.99, "99 %"), (0.01, "1 %")],
)
def test_no_probability_is_certain(probability: float, expected: str) -> None:
    assert percent(probability) == expected


def test_two_digits_are_enough() -> None:
    assert [rounded(value) for value in (152.3, 1234.5, 0.0123)] == ["150", "1200", "0.012"]


def test_lists_end_with_an_and() -> None:
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


def test_one_boot_is_one() -> None:
    assert (boots(1), boots(2)) == ("1 boot", "2 boots")
