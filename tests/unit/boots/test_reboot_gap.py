"""The time between two boots: when it says something, and when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from initadvisor.boots.loader_times import ClockPoint, LastSign, NoGap, RebootGap, reboot_gap

S = 1_000_000
NOON = 1_795_000_000 * S
BEFORE = LastSign(realtime_us=NOON, synchronised=True, rebooted=True)
NOW = ClockPoint(realtime_us=NOON + 75 * S, since_start_us=60 * S, synchronised=True)


def test_the_gap_ends_where_the_kernel_started_not_where_the_clock_was_read() -> None:
    assert reboot_gap(BEFORE, NOW) == RebootGap(duration_us=15 * S)
    later = replace(NOW, realtime_us=NOW.realtime_us + 5, since_start_us=NOW.since_start_us + 5)
    assert reboot_gap(BEFORE, later) == RebootGap(duration_us=15 * S)


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (replace(BEFORE, rebooted=False), NOW, "did not end by a reboot"),
        (replace(BEFORE, rebooted=None), NOW, "is not known to have ended by a reboot"),
        (replace(BEFORE, synchronised=False), NOW, "the boot before was not synchronised"),
        (BEFORE, replace(NOW, synchronised=False), "this boot is not synchronised"),
        (BEFORE, replace(NOW, realtime_us=NOON + 60 * S), "before the boot before it ended"),
        (BEFORE, replace(NOW, realtime_us=NOON + 59 * S), "before the boot before it ended"),
        (BEFORE, replace(NOW, realtime_us=NOON + 661 * S), "601 s lie between the boots"),
    ],
)
def test_a_gap_that_says_nothing_says_why(before: LastSign, now: ClockPoint, reason: str) -> None:
    found = reboot_gap(before, now)
    assert isinstance(found, NoGap)
    assert reason in found.reason


@pytest.mark.parametrize("gap_us", [1, 600 * S])
def test_the_bounds_are_gaps(gap_us: int) -> None:
    now = replace(NOW, realtime_us=NOON + NOW.since_start_us + gap_us)
    assert reboot_gap(BEFORE, now) == RebootGap(duration_us=gap_us)
