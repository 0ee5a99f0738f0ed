"""Whether the readings of loader and firmware belong to this boot at all.

They are not written anew by everything that starts a kernel or wakes one up.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.model.loader import LoaderTimes

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
