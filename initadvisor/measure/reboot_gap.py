"""The time between two boots, for loaders that record none themselves.

From the last message of one boot to the start of the next kernel lie the end of the shutdown, the
firmware and the loader. It is no time of the loader's, but as the rest stays the same, differences
between images show in it over several reboots.
"""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST_US = 600_000_000
"""What takes longer than ten minutes was no reboot that nobody waited in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSign:
    """The end of a boot, as its journal shows it.

    ``realtime_us``: the wall clock at its last entry; ``synchronised``: whether that clock was set
    by NTP then. ``rebooted``: whether it ended by a reboot, None where the journal does not say.
    """

    realtime_us: int
    synchronised: bool
    rebooted: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPoint:
    """Two clocks read together, in microseconds: since 1970, and since the kernel started.

    The latter has to count suspended time, too (CLOCK_BOOTTIME). ``synchronised``: whether the wall
    clock was set by NTP then; before, it is what the machine's own clock chip made of it.
    """

    realtime_us: int
    since_start_us: int
    synchronised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootGap:
    """The time from the last message of one boot to the start of the next kernel."""

    duration_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoGap:
    """That there is none that could be used, and why, in words."""

    reason: str


def reboot_gap(before: LastSign, now: ClockPoint) -> RebootGap | NoGap:
    """Return the gap between the boot before and this one.

    ``now`` may be read at any time of this boot, best when its clock has been synchronised.
    """
    if not before.rebooted:
        ended = "did not end" if before.rebooted is False else "is not known to have ended"
        return NoGap(reason=f"the boot before {ended} by a reboot")
    if not before.synchronised:
        return NoGap(reason="the clock of the boot before was not synchronised")
    if not now.synchronised:
        return NoGap(reason="the clock of this boot is not synchronised")
    duration_us = now.realtime_us - now.since_start_us - before.realtime_us
    if duration_us <= 0:
        return NoGap(reason="the kernel would have started before the boot before it ended")
    if duration_us > _LONGEST_US:
        return NoGap(
            reason=f"{duration_us / 1e6:.0f} s lie between the boots, more than ten minutes"
        )
    return RebootGap(duration_us=duration_us)
