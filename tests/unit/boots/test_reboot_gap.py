"""The time between two boots: when it says something, and when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from initadvisor.boots.journal import BootEnd, BootEnding, BootSpan, JournalBoot, Moment
from initadvisor.boots.record import Journalled, reboot_gap
from initadvisor.records.boot import RebootGapTime
from initadvisor.records.marks import KernelBoot, KernelTimestamps, ShadowObservation, Waiting

S = 1_000_000
NOON = 1_795_000_000 * S
KERNEL = KernelBoot(
    timestamps=KernelTimestamps(), shadow=ShadowObservation(waiting=Waiting.UNKNOWN)
)
NOW = Moment(realtime_us=NOON + 75 * S, monotonic_us=60 * S)
END = BootEnd(synchronised=True)
BEFORE_END = BootEnd(ending=BootEnding.REBOOT, synchronised=True)


def journalled(
    *, now: Moment = NOW, end: BootEnd = END, before_end: BootEnd = BEFORE_END
) -> Journalled:
    """Return two boots of which the former ended at noon and the latter was last seen ``now``."""
    start = Moment(realtime_us=0, monotonic_us=0)
    before = Moment(realtime_us=NOON, monotonic_us=900 * S)
    return Journalled(
        boot=JournalBoot(
            span=BootSpan(boot_id="b" * 32, machine_id=None, first=start, last=now), kernel=KERNEL
        ),
        end=end,
        before=BootSpan(boot_id="a" * 32, machine_id=None, first=start, last=before),
        before_end=before_end,
    )


def test_the_gap_ends_where_the_kernel_started_not_where_the_clock_was_read() -> None:
    assert reboot_gap(journalled()) == RebootGapTime(duration_us=15 * S)
    later = Moment(realtime_us=NOW.realtime_us + 5, monotonic_us=NOW.monotonic_us + 5)
    assert reboot_gap(journalled(now=later)) == RebootGapTime(duration_us=15 * S)


def ended(after_noon_s: int) -> Journalled:
    """Return boots of which the latter was last seen so long after noon."""
    return journalled(now=replace(NOW, realtime_us=NOON + after_noon_s * S))


@pytest.mark.parametrize(
    ("boots", "reason"),
    [
        (None, "no boot before this one"),
        (journalled(end=replace(END, slept=True)), "the machine slept in this boot"),
        (
            journalled(before_end=replace(BEFORE_END, ending=BootEnding.KEXEC)),
            "did not end by a reboot",
        ),
        (
            journalled(before_end=replace(BEFORE_END, ending=None)),
            "is not known to have ended by a reboot",
        ),
        (
            journalled(before_end=replace(BEFORE_END, synchronised=False)),
            "the boot before was not synchronised",
        ),
        (journalled(end=replace(END, synchronised=False)), "this boot is not synchronised"),
        (ended(60), "before the boot before it ended"),
        (ended(59), "before the boot before it ended"),
        (ended(661), "601 s lie between the boots"),
    ],
)
def test_a_gap_that_says_nothing_says_why(boots: Journalled | None, reason: str) -> None:
    found = reboot_gap(boots)
    assert found.duration_us is None
    assert reason in found.reason


@pytest.mark.parametrize("gap_us", [1, 600 * S])
def test_the_bounds_are_gaps(gap_us: int) -> None:
    now = replace(NOW, realtime_us=NOON + NOW.monotonic_us + gap_us)
    assert reboot_gap(journalled(now=now)) == RebootGapTime(duration_us=gap_us)
