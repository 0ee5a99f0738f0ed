"""How a boot was started, and what firmware and loader say of the time they took.

Each clock reading keeps its own name, because they mean different things: "the loader's time" is
``exec_us - init_us`` to systemd-boot and ``exitbootservice_end_ns - bootloader_launch_ns`` to the
firmware, and systemd shows whichever of the two it found. Which of them contains the reading of the
image is said by ``records.read_interval``. The phases of a whole boot are for context: they are
what is around the part that an image can change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.estimates import Certainty


TRIAL_TAG = "initadvisor.trial"
"""The word of the kernel's command line that says which trial a boot belongs to."""


class BootMethod(StrEnum):
    """Who read the image from the disk, and how."""

    SYSTEMD_BOOT = "systemd-boot"
    SYSTEMD_BOOT_UKI = "systemd-boot-uki"
    FIRMWARE_UKI = "firmware-uki"
    LOADER_UKI = "loader-uki"
    GRUB_EFI = "grub-efi"
    GRUB_BIOS = "grub-bios"
    EFI_STUB = "efi-stub"
    KEXEC = "kexec"
    UNKNOWN = "unknown"

    @property
    def description(self) -> str:
        """What it is, in words."""
        return _DESCRIPTIONS[self]

    @property
    def is_uki(self) -> bool:
        """Whether the image is part of a unified kernel image, whose stub adds files to it."""
        return self in {BootMethod.SYSTEMD_BOOT_UKI, BootMethod.FIRMWARE_UKI, BootMethod.LOADER_UKI}


_DESCRIPTIONS = {
    BootMethod.SYSTEMD_BOOT: "systemd-boot, with kernel and image in files of their own (Type #1)",
    BootMethod.SYSTEMD_BOOT_UKI: "a unified kernel image, started by systemd-boot",
    BootMethod.FIRMWARE_UKI: "a unified kernel image, started by the firmware",
    BootMethod.LOADER_UKI: "a unified kernel image, started by another loader (shim, GRUB)",
    BootMethod.GRUB_EFI: "GRUB on UEFI firmware",
    BootMethod.GRUB_BIOS: "GRUB on BIOS firmware",
    BootMethod.EFI_STUB: "the kernel's own EFI stub, which reads what initrd= names",
    BootMethod.KEXEC: "kexec, without firmware or loader",
    BootMethod.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Something that is there but cannot be used: where it stands, and why in words."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderVariables:
    """What loader and stub leave in EFI variables (https://systemd.io/BOOT_LOADER_INTERFACE).

    ``loader`` and ``stub``: what they call themselves (LoaderInfo, StubInfo). ``entry`` and
    ``oneshot_entry``: the identifier of the entry that was selected, and of one that is still to be
    booted once. ``loader_file`` and ``stub_file``: the files they were started from, on the
    partition ``partition_uuid``; systemd-stub names its own file as the loader's where no loader
    named itself. ``boot_option_file``: what the firmware started (BootCurrent and its Boot####).
    ``readable``: whether this machine shows its EFI variables; where it does not, that none was
    found means nothing.
    """

    readable: bool = False
    loader: str | None = None
    loader_file: str | None = None
    partition_uuid: str | None = None
    entry: str | None = None
    oneshot_entry: str | None = None
    stub: str | None = None
    stub_file: str | None = None
    boot_option_file: str | None = None
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BootStart:
    """How a boot was started, as far as its traces tell.

    ``loader`` and ``stub``: what the loader and systemd-stub call themselves, with their version
    (``systemd-boot 257.5-2``). ``entry``: the identifier of the entry that was selected. ``clues``:
    in words, what the conclusion rests on.
    """

    method: BootMethod
    certainty: Certainty
    loader: str | None = None
    stub: str | None = None
    entry: str | None = None
    clues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EfiTimes:
    """The boot loader interface's times, in microseconds of the processor's own counter.

    ``init_us``: systemd-boot was entered. ``menu_us``: it was about to show its menu; None where it
    showed none. ``exec_us``: it was about to start what was selected (systemd-boot(7), "EFI
    variables"). The counter starts with the processor and goes on through a warm reset of some
    machines, so that only differences count for certain.
    """

    init_us: int | None = None
    menu_us: int | None = None
    exec_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FpdtTimes:
    """The firmware's own times, in nanoseconds since reset (ACPI 6.4, section 5.2.24).

    ``firmware_start_ns``: the first instruction that can take the time. ``bootloader_load_ns``: it
    begins to load the file of the boot option; ``bootloader_launch_ns``: it starts that file.
    ``exitbootservice_start_ns`` and ``exitbootservice_end_ns``: around ExitBootServices, which the
    kernel's EFI stub calls. None where the firmware recorded none.
    """

    firmware_start_ns: int | None = None
    bootloader_load_ns: int | None = None
    bootloader_launch_ns: int | None = None
    exitbootservice_start_ns: int | None = None
    exitbootservice_end_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerTimes:
    """systemd's own account of a boot, in microseconds (org.freedesktop.systemd1(5)).

    ``firmware_us`` and ``loader_us`` say how long before the kernel's clock started firmware and
    loader began, from FPDT where systemd could read it, else from the loader's variables.
    ``initrd_us``, ``userspace_us`` and ``finish_us`` are moments of the kernel's clock: systemd
    began in the initrd, on the root file system, and was done. ``soft_reboots``: how often user
    space was started anew since; the three moments are then those of the latest start.
    None where systemd does not tell.
    """

    firmware_us: int | None = None
    loader_us: int | None = None
    initrd_us: int | None = None
    userspace_us: int | None = None
    finish_us: int | None = None
    soft_reboots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderTimes:
    """Every source's readings of one boot, and what was there but could not be used."""

    efi: EfiTimes = field(default_factory=EfiTimes)
    fpdt: FpdtTimes = field(default_factory=FpdtTimes)
    manager: ManagerTimes = field(default_factory=ManagerTimes)
    unreadable: tuple[Unreadable, ...] = ()


_LONGEST_US = 3_600_000_000
"""What lasts longer is not a phase but a clock that was not reset (systemd has the same bound)."""


class Phase(StrEnum):
    """The parts of a boot, in their order.

    An initramfs without systemd in it belongs to the kernel's part.
    """

    FIRMWARE = "firmware"
    LOADER = "loader"
    KERNEL = "kernel"
    INITRD = "initrd"
    USERSPACE = "userspace"


class PhaseSource(StrEnum):
    """Whose account of a phase it is."""

    FPDT = "ACPI FPDT"
    EFI = "the loader's EFI variables"
    MANAGER = "systemd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """How long a phase took, in microseconds, by one account."""

    phase: Phase
    duration_us: int
    source: PhaseSource


def boot_phases(way: BootMethod, times: LoaderTimes) -> tuple[PhaseTime, ...]:
    """Return the phases that are known, each by the account closest to the event.

    Firmware and loader come from the firmware's own record, else from the loader's variables, else
    from systemd, which has them from one of the two; after a kexec all three tell of the boot
    before it. There is no kernel, initrd and user space to tell of after a soft reboot: systemd's
    moments are then those of the latest start.
    """
    before = () if way is BootMethod.KEXEC else _before_kernel(times)
    return (*before, *_since_kernel(times))


def _before_kernel(times: LoaderTimes) -> tuple[PhaseTime, ...]:
    """The three accounts, as systemd-analyze(1) would split them: firmware ends with the loader."""
    fpdt, efi, manager = times.fpdt, times.efi, times.manager
    launch_ns, exit_ns = fpdt.bootloader_launch_ns, fpdt.exitbootservice_end_ns
    if launch_ns is not None and exit_ns is not None:
        return _pair(launch_ns // 1000, (exit_ns - launch_ns) // 1000, PhaseSource.FPDT)
    if efi.init_us is not None and efi.exec_us is not None:
        return _pair(efi.init_us, efi.exec_us - efi.init_us, PhaseSource.EFI)
    if manager.firmware_us is not None and manager.loader_us is not None:
        firmware_us = manager.firmware_us - manager.loader_us
        return _pair(firmware_us, manager.loader_us, PhaseSource.MANAGER)
    return ()


def _pair(firmware_us: int, loader_us: int, source: PhaseSource) -> tuple[PhaseTime, ...]:
    return _plausible((Phase.FIRMWARE, firmware_us), (Phase.LOADER, loader_us), source=source)


def _since_kernel(times: LoaderTimes) -> tuple[PhaseTime, ...]:
    manager = times.manager
    if manager.soft_reboots or manager.userspace_us is None:
        return ()
    kernel_end_us = manager.userspace_us if manager.initrd_us is None else manager.initrd_us
    found = [(Phase.KERNEL, kernel_end_us)]
    if manager.initrd_us is not None:
        found.append((Phase.INITRD, manager.userspace_us - manager.initrd_us))
    if manager.finish_us is not None:
        found.append((Phase.USERSPACE, manager.finish_us - manager.userspace_us))
    return _plausible(*found, source=PhaseSource.MANAGER)


def _plausible(*found: tuple[Phase, int], source: PhaseSource) -> tuple[PhaseTime, ...]:
    return tuple(
        PhaseTime(phase=phase, duration_us=duration_us, source=source)
        for phase, duration_us in found
        if 0 <= duration_us <= _LONGEST_US
    )
