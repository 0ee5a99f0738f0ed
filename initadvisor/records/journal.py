"""What a journal tells of one boot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.records.marks import KernelBoot


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When the journal received an entry, in microseconds.

    ``realtime_us``: since 1970, by a clock that may be set at any time, so early in a boot it is
    the real-time clock's. ``monotonic_us``: of CLOCK_MONOTONIC, which stands still while suspended
    and is not the clock of the kernel's own stamps (observed: milliseconds apart).
    """

    realtime_us: int
    monotonic_us: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSpan:
    """A boot in a journal, and its first and last entries there."""

    boot_id: str
    machine_id: str | None
    first: Moment
    last: Moment


class BootEnding(StrEnum):
    """How a boot ended."""

    REBOOT = "reboot"
    KEXEC = "kexec"
    POWER_OFF = "power-off"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEnd:
    """How a boot ended, and what its clocks were like.

    ``ending``: None where the journal does not say, as after a crash. ``synchronised``: the wall
    clock was set by NTP at some time, so that its last entries have the right time. ``slept``: the
    machine was suspended or hibernated, which CLOCK_MONOTONIC does not count.
    """

    ending: BootEnding | None = None
    synchronised: bool = False
    slept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBoot:
    """All that a journal tells of one boot.

    ``emergency``: emergency.target was reached. ``hibernations`` and ``soft_reboots``: how often
    the kernel came back from hibernation and user space was restarted, all in this boot.
    ``on_battery``: the kernel found the mains adapter unplugged; None where it says nothing of one.
    ``damaged``: so many of its entries could not be read.
    """

    span: BootSpan
    kernel: KernelBoot
    startup: StartupTimes | None = None
    emergency: bool = False
    hibernations: int = 0
    soft_reboots: int = 0
    on_battery: bool | None = None
    damaged: int = 0
