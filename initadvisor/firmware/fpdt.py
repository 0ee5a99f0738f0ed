"""The firmware's record of its own times (ACPI FPDT), as the kernel shows it below /sys.

The kernel prints what the firmware wrote, unchecked (drivers/acpi/acpi_fpdt.c), and firmware exists
that counts in other units than nanoseconds, leaves fields at zero or writes nonsense.
"""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import TYPE_CHECKING

from initadvisor.records.boot_start import FpdtTimes, Unreadable

if TYPE_CHECKING:
    from initadvisor.host import Host


_DIRECTORY = "/sys/firmware/acpi/fpdt/boot"
_DECIMAL = re.compile(r"[0-9]{1,20}\n?", re.ASCII)
_LONGEST_BYTES = 64
_HOUR_NS = 3_600_000_000_000
_SOONEST_NS = 100_000_000
"""No firmware is done with the machine 0.1 s after reset; what is smaller is in larger units."""


def fpdt_times(host: Host) -> tuple[FpdtTimes, tuple[Unreadable, ...]]:
    """Return the times the firmware recorded, and why what was there of them is not used.

    A field that is absent or zero was not recorded. Where the times contradict each other or cannot
    be nanoseconds, all are left out: a record that is wrong in one field is not to be trusted in
    another.
    """
    unreadable: list[Unreadable] = []
    times = FpdtTimes(
        firmware_start_ns=_field(host, "firmware_start_ns", unreadable),
        bootloader_load_ns=_field(host, "bootloader_load_ns", unreadable),
        bootloader_launch_ns=_field(host, "bootloader_launch_ns", unreadable),
        exitbootservice_start_ns=_field(host, "exitbootservice_start_ns", unreadable),
        exitbootservice_end_ns=_field(host, "exitbootservice_end_ns", unreadable),
    )
    if reason := _contradiction(times):
        unreadable.append(Unreadable(source=_DIRECTORY, reason=reason))
        return FpdtTimes(), tuple(unreadable)
    return times, tuple(unreadable)


def _field(host: Host, name: str, unreadable: list[Unreadable]) -> int | None:
    try:
        with host.path(f"{_DIRECTORY}/{name}").open("rb") as file:
            data = file.read(_LONGEST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as err:
        reason = f"cannot be read: {err.strerror}"
        unreadable.append(Unreadable(source=name, reason=reason))
        return None
    text = data.decode("ascii", errors="replace")
    if not _DECIMAL.fullmatch(text):
        reason = f"is no time in nanoseconds: {text[:40]!r}"
        unreadable.append(Unreadable(source=name, reason=reason))
        return None
    return int(text) or None


def _contradiction(times: FpdtTimes) -> str | None:
    """Return why the record cannot be right; the fields are in the order of the events."""
    known: list[int] = [time for time in astuple(times) if time is not None]
    if known != sorted(known):
        return f"the times are not in order: {', '.join(map(str, known))}"
    if known and known[-1] > _HOUR_NS:
        return f"the last time, {known[-1]}, would be over an hour after reset: not nanoseconds"
    if known and known[-1] != times.firmware_start_ns and known[-1] < _SOONEST_NS:
        unit = "microseconds" if known[-1] * 1000 > _SOONEST_NS else "milliseconds"
        return f"the last time, {known[-1]}, would be too soon after reset: probably {unit}"
    return None
