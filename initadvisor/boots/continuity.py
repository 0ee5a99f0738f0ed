"""Whether the loader's and firmware's readings belong to this boot, and the time between two boots.

Not everything that starts a kernel, or wakes one up, writes those readings anew. The time between
two boots is for loaders that record none themselves.

From the last message of one boot to the start of the next kernel lie the end of the shutdown, the
firmware and the loader. It is no time of the loader's, but as the rest stays the same, differences
between images show in it over several reboots.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.records.boot_start import LoaderTimes


_LEAST_READINGS = 2
_SLEPT_S = 1.0


def same_loader_run(before: LoaderTimes, now: LoaderTimes) -> bool | None:
    """Tell whether two boots show the readings of one and the same run of the loader.

    Then the later one was started by kexec: EFI variables and ACPI tables survive that, and no two
    starts agree to the microsecond. None where there are too few readings to tell.
    """
    pairs = zip(
        (*astuple(before.efi), *astuple(before.fpdt)),
        (*astuple(now.efi), *astuple(now.fpdt)),
        strict=True,
    )
    shown = [pair for pair in pairs if pair != (None, None)]
    if len(shown) < _LEAST_READINGS:
        return None
    return all(earlier == later for earlier, later in shown)


def slept(host: Host) -> bool | None:
    """Tell whether the machine was suspended or hibernated since it booted, None without /proc.

    The loader's variables are then those of the latest start of the machine, which after a
    hibernation is not the one that this boot began with. /proc/uptime counts the time asleep,
    CLOCK_MONOTONIC does not.
    """
    words = (host.read_text("/proc/uptime") or "").split()
    try:
        uptime_s = float(words[0])
    except (IndexError, ValueError):
        return None
    return uptime_s - host.clock.monotonic_ns() / 1e9 > _SLEPT_S


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
