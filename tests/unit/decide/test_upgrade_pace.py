"""What divides the builds is said with where it is from."""

from __future__ import annotations

from initadvisor.decide.upgrades import ASSUMED_BOOTS, PaceSource, UpgradePace, upgrade_pace

COUNTED = UpgradePace(boots=23, source=PaceSource.COUNTED, recorded_boots=140, upgrades=6)


def test_what_the_user_says_goes_before_what_was_counted() -> None:
    assert upgrade_pace(30, COUNTED).words == "30 boots per kernel upgrade, as configured"


def test_what_was_counted_goes_before_what_is_assumed() -> None:
    assert upgrade_pace(None, COUNTED).words == (
        "23 boots per kernel upgrade, counted from 140 recorded boots"
    )


def test_otherwise_it_is_assumed_and_called_so() -> None:
    pace = upgrade_pace(None, None)
    assert (pace.boots, pace.words) == (
        ASSUMED_BOOTS,
        "14 boots per kernel upgrade, assumed",
    )


def test_one_boot_is_one() -> None:
    assert upgrade_pace(1, None).words == "1 boot per kernel upgrade, as configured"
