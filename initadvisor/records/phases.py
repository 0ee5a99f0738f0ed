"""A whole boot in phases: what is around the part that an image can change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from initadvisor.records.boot_start import LoaderTimes


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
