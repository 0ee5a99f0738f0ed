"""Upgrades are counted from boots: what boots the first time is one, and few boots tell nothing."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from initadvisor.decide.upgrades import PaceSource, UpgradePace, counted_pace

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


def boots(*runs: tuple[str | None, int], days: float = 1.0) -> list[tuple[datetime, str | None]]:
    """Return boots of kernels, so many of each after the other, each ``days`` after the last."""
    releases = [release for release, count in runs for _ in range(count)]
    return [(START + timedelta(days=days * n), release) for n, release in enumerate(releases)]


def test_three_upgrades_give_the_median_between_them() -> None:
    history = boots(("1", 5), ("2", 10), ("3", 20), ("4", 90), ("5", 3), days=0.1)
    assert counted_pace(history) == UpgradePace(
        boots=20, source=PaceSource.COUNTED, recorded_boots=128, upgrades=4
    )


def test_the_first_and_the_last_kernel_s_boots_are_not_complete_and_do_not_count() -> None:
    short, long = (
        counted_pace(boots(("1", ends), ("2", 10), ("3", 12), ("4", ends))) for ends in (1, 500)
    )
    assert short is not None
    assert long is not None
    assert short.boots == long.boots == 11


def test_one_long_rest_does_not_make_upgrades_rare() -> None:
    history = boots(("1", 9), ("2", 10), ("3", 11), ("4", 1000), ("5", 10), ("6", 1))
    found = counted_pace(history)
    assert found is not None
    assert found.boots == 10.5


def test_going_back_to_an_old_kernel_is_no_upgrade() -> None:
    history = boots(("1", 9), ("2", 5), ("1", 1), ("2", 4), ("3", 10), ("2", 2), ("4", 1), days=0.1)
    found = counted_pace(history)
    assert found is not None
    assert (found.upgrades, found.boots) == (3, 11)


def test_two_kernels_in_turn_are_no_upgrades() -> None:
    assert counted_pace(boots(*[("lts", 1), ("new", 1)] * 20)) is None


def test_the_order_in_which_boots_are_given_does_not_matter() -> None:
    history = boots(("1", 5), ("2", 10), ("3", 20), ("4", 9), ("5", 3))
    shuffled = random.Random(1).sample(history, len(history))
    assert counted_pace(shuffled) == counted_pace(history)


def test_boots_of_a_kernel_that_is_not_known_count_as_boots() -> None:
    history = boots(("1", 5), ("2", 6), (None, 4), ("3", 10), ("4", 1), days=0.1)
    found = counted_pace(history)
    assert found is not None
    assert (found.upgrades, found.boots) == (3, 10)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([("1", 30), ("2", 30)], 60),
        ([("1", 30), ("2", 30), ("3", 10)], 35),
        ([("1", 2), ("2", 1), ("3", 1)], None),
    ],
)
def test_of_few_upgrades_sixty_days_of_boots_are_needed(
    runs: list[tuple[str, int]], expected: float | None
) -> None:
    found = counted_pace(boots(*runs, days=1.05))
    assert (found.boots if found else None) == expected
    assert counted_pace(boots(*runs, days=0.5)) is None


def test_who_boots_only_for_upgrades_has_each_build_for_one_boot() -> None:
    found = counted_pace(boots(("1", 1), ("2", 1), ("3", 1), days=40))
    assert found is not None
    assert found.boots == 1.5


def test_no_upgrade_in_many_boots_is_the_least_it_can_be() -> None:
    found = counted_pace(boots(("1", 90)))
    assert found is not None
    assert found.upgrades == 0
    assert found.words == (
        "at least 90 boots per kernel upgrade, counted from as many recorded boots without an "
        "upgrade"
    )


def test_no_upgrade_in_few_boots_says_nothing_that_is_not_assumed_anyway() -> None:
    assert counted_pace(boots(("1", 14), days=30)) is None
    assert counted_pace(boots(("1", 15), days=30)) is not None


def test_nothing_recorded_tells_nothing() -> None:
    assert counted_pace([]) is None
    assert counted_pace(boots((None, 200))) is not None
