"""What firmware, loader and systemd tell of the times of a boot.

systemd tells them as properties of its manager, and in its message "Startup finished in ...". Not
everything that starts a kernel, or wakes one up, writes the loader's and the firmware's readings
anew.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.records.boot_start import LoaderTimes, ManagerTimes
from initadvisor.records.marks import BootStep, longest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from initadvisor.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupTimes:
    """systemd's "Startup finished": how long each phase took by its own account, in microseconds.

    ``firmware_us`` and ``loader_us`` stand in its text only, rounded to milliseconds; which clocks
    they are from it does not say. None for what it does not tell.
    """

    firmware_us: int | None = None
    loader_us: int | None = None
    kernel_us: int | None = None
    initrd_us: int | None = None
    userspace_us: int | None = None


def loader_times(host: Host) -> LoaderTimes:
    """Read every source of the running system, each for itself.

    To be read soon after the boot and once per boot: see ``same_loader_run`` and ``slept`` for
    what may change the readings later.
    """
    from initadvisor.firmware.efi_variables import efi_times  # the manager's alone need neither
    from initadvisor.firmware.fpdt import fpdt_times

    efi, efi_wrong = efi_times(host)
    fpdt, fpdt_wrong = fpdt_times(host)
    return LoaderTimes(
        efi=efi, fpdt=fpdt, manager=manager_times(host), unreadable=(*efi_wrong, *fpdt_wrong)
    )


_PROPERTIES = {
    "FirmwareTimestampMonotonic": "firmware_us",
    "LoaderTimestampMonotonic": "loader_us",
    "InitRDTimestampMonotonic": "initrd_us",
    "UserspaceTimestampMonotonic": "userspace_us",
    "FinishTimestampMonotonic": "finish_us",
    "SoftRebootsCount": "soft_reboots",
}
_DECIMAL = re.compile(r"[0-9]{1,18}", re.ASCII)
_TIMEOUT_S = 5


def manager_times(host: Host) -> ManagerTimes:
    """Ask systemd's manager; nothing is known where systemd does not run or does not answer.

    SoftRebootsCount exists since systemd 256. A moment that has not come yet, or that systemd does
    not know, is 0 on the bus.
    """
    if not host.path("/run/systemd/system").is_dir():  # sd_booted(3)
        return ManagerTimes()
    try:
        said = host.runner.run(
            ["systemctl", "show", f"--property={','.join(_PROPERTIES)}"], timeout_s=_TIMEOUT_S
        ).stdout.decode(errors="replace")
    except ProgramError:
        return ManagerTimes()
    values = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    found = {
        name: int(values[key])
        for key, name in _PROPERTIES.items()
        if _DECIMAL.fullmatch(values.get(key, ""))
    }
    soft_reboots = found.pop("soft_reboots", None)
    moments = {name: value for name, value in found.items() if value}
    return ManagerTimes(soft_reboots=soft_reboots, **moments)


_MOST_CHAIN = 50
_ON_CHAIN = re.compile(
    r"(?:[| ] )*(?:[|`]-)?(?P<unit>[A-Za-z0-9:_.@\\-]{1,255}) @(?P<start>[^@+]+) \+(?P<took>.+)",
    re.ASCII,
)
"""A unit below others in a tree that is drawn in ASCII, with what it took to start."""


def critical_chain(host: Host, manager: ManagerTimes) -> tuple[BootStep, ...]:
    """Return what user space waited for, one unit after the other, as systemd-analyze(1) finds it.

    Nothing while the boot goes on and where systemd does not tell.
    """
    if manager.finish_us is None or manager.userspace_us is None:
        return ()
    if host.runner.which("systemd-analyze") is None:
        return ()
    try:
        said = host.runner.run(
            ["systemd-analyze", "--no-pager", "critical-chain"], timeout_s=_TIMEOUT_S
        ).stdout.decode(errors="replace")
    except ProgramError:
        return ()
    return longest(set(_chain(said, manager.userspace_us)), most=_MOST_CHAIN)


def _chain(said: str, userspace_us: int) -> Iterator[BootStep]:
    for line in said.splitlines():
        if (found := _ON_CHAIN.fullmatch(line)) is None:
            continue
        start_us, took_us = timespan_us(found["start"]), timespan_us(found["took"])
        if start_us is not None and took_us is not None:
            yield BootStep(
                name=found["unit"], start_us=userspace_us + start_us, duration_us=took_us
            )


_UNITS_US = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
    "month": 2_629_800_000_000,
    "y": 31_557_600_000_000,
}
_AMOUNT = re.compile(r"(\d{1,9})(?:\.(\d{1,6}))?(us|ms|s|min|h|d|w|month|y)", re.ASCII)
_SPAN = rf"{_AMOUNT.pattern}(?: {_AMOUNT.pattern}){{0,8}}"
_PHASE = re.compile(rf"(?P<span>{_SPAN}) \((?P<phase>firmware|loader)\)", re.ASCII)
_FIELD = re.compile(r"\d{1,15}", re.ASCII)


def startup_times(text: str, fields: Mapping[str, str]) -> StartupTimes:
    """Read the message's text and its fields KERNEL_USEC, INITRD_USEC and USERSPACE_USEC."""
    spans = {found["phase"]: timespan_us(found["span"]) for found in _PHASE.finditer(text)}
    return StartupTimes(
        firmware_us=spans.get("firmware"),
        loader_us=spans.get("loader"),
        kernel_us=_microseconds(fields.get("KERNEL_USEC")),
        initrd_us=_microseconds(fields.get("INITRD_USEC")),
        userspace_us=_microseconds(fields.get("USERSPACE_USEC")),
    )


def timespan_us(text: str) -> int | None:
    """Read ``1min 33.440s`` as systemd's format_timespan() writes it, None for anything else.

    Also for more than a year, which no boot takes.
    """
    total_us = 0
    for word in text.split(" "):
        if (found := _AMOUNT.fullmatch(word)) is None:
            return None
        unit_us = _UNITS_US[found[3]]
        fraction = found[2] or ""
        total_us += int(found[1]) * unit_us
        total_us += int(fraction or 0) * unit_us // 10 ** len(fraction)
    return total_us if total_us <= _UNITS_US["y"] else None


def _microseconds(value: str | None) -> int | None:
    if value is None or not _FIELD.fullmatch(value) or int(value) > _UNITS_US["y"]:
        return None
    return int(value)


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
