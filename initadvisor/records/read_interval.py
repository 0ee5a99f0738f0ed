"""Which interval of a boot contains the reading of the image, by the way the boot was started.

No interval is the reading alone: each names what else is in it. Two boots can be compared where the
rest is the same: same source, same kernel, same entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from initadvisor.records.boot_start import BootStart, LoaderTimes


_LOADS_IMAGES_SINCE = 252
"""systemd-boot reads a Type #1 entry's images itself since this version; before, it only named them
to the kernel's EFI stub (src/boot/efi/boot.c, initrd_prepare)."""

_LOADER_VERSION = re.compile(r"(?P<name>systemd-boot|gummiboot) v?(?P<version>\d{1,9})")


class IntervalSource(StrEnum):
    """Which two clock readings enclose the interval."""

    EXEC_MINUS_INIT = "LoaderTimeExecUSec - LoaderTimeInitUSec"
    LAUNCH_TO_EXIT = "FPDT exitbootservice_start - bootloader_launch"
    LOAD_TO_LAUNCH = "FPDT bootloader_launch - bootloader_load"


class Beside(StrEnum):
    """What else an interval contains, or may contain."""

    KERNEL = "reading the kernel"
    STUB = "the EFI stub: copying and hashing the image, setting up memory"
    LOADER = "the loader itself: its configuration, entries and drivers"
    MENU = "waiting in the menu"
    MENU_IF_ANY = "waiting in a menu, if there was one"


_OWN = (Beside.LOADER, Beside.KERNEL)
_ALL = (Beside.LOADER, Beside.KERNEL, Beside.STUB)
_BESIDE = {
    (BootMethod.SYSTEMD_BOOT, IntervalSource.EXEC_MINUS_INIT): _OWN,
    (BootMethod.SYSTEMD_BOOT, IntervalSource.LAUNCH_TO_EXIT): _ALL,
    (BootMethod.SYSTEMD_BOOT_UKI, IntervalSource.EXEC_MINUS_INIT): _OWN,
    (BootMethod.SYSTEMD_BOOT_UKI, IntervalSource.LAUNCH_TO_EXIT): _ALL,
    (BootMethod.FIRMWARE_UKI, IntervalSource.LOAD_TO_LAUNCH): (Beside.KERNEL,),
    (BootMethod.LOADER_UKI, IntervalSource.LAUNCH_TO_EXIT): _ALL,
    (BootMethod.GRUB_EFI, IntervalSource.LAUNCH_TO_EXIT): _ALL,
    (BootMethod.EFI_STUB, IntervalSource.LAUNCH_TO_EXIT): (Beside.STUB,),
}
"""For each way of booting the intervals that contain the reading, the tightest first.

The firmware launches the first loader before that one runs, and the kernel leaves the boot services
after all is read, so LAUNCH_TO_EXIT contains everything but what the firmware itself reads.
"""

_SAYS_OF_MENU = {BootMethod.SYSTEMD_BOOT, BootMethod.SYSTEMD_BOOT_UKI}

_WITHOUT = {
    BootMethod.GRUB_BIOS: "GRUB on BIOS firmware records no times",
    BootMethod.KEXEC: (
        "kexec starts a kernel without a loader; its times are those of an earlier boot"
    ),
    BootMethod.UNKNOWN: "it is not known how this boot was started",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInterval:
    """An interval that contains the reading of the image, and what else is in it."""

    source: IntervalSource
    duration_us: int
    beside: tuple[Beside, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoInterval:
    """That no interval is known to contain the reading, and why, in words."""

    reason: str


def read_interval(start: BootStart, times: LoaderTimes) -> ReadInterval | NoInterval:
    """Return the tightest interval that contains the reading of this boot's image."""
    sources = [source for way, source in _BESIDE if way is start.method]
    if not sources:
        return NoInterval(reason=_WITHOUT[start.method])
    if start.method is BootMethod.SYSTEMD_BOOT and not _loads_images(start.loader):
        sources.remove(IntervalSource.EXEC_MINUS_INIT)
    for source in sources:
        if (duration_us := _duration_us(source, times)) is not None:
            beside = _beside(start, source, times)
            return ReadInterval(source=source, duration_us=duration_us, beside=beside)
    needed = " or ".join(sources)
    return NoInterval(reason=f"{start.method.description}: needs {needed}, which this boot lacks")


def _beside(start: BootStart, source: IntervalSource, times: LoaderTimes) -> tuple[Beside, ...]:
    """Return what is beside the reading, a menu included where there was or may have been one.

    systemd-boot says when it shows its menu, on machines where it tells the time at all.
    """
    beside = _BESIDE[start.method, source]
    if start.method is BootMethod.EFI_STUB and start.loader is not None:
        beside = _ALL  # a loader that leaves the reading to the kernel's stub: rEFInd
    if Beside.LOADER not in beside:
        return beside
    if times.efi.menu_us is not None:
        return (*beside, Beside.MENU)
    if start.method in _SAYS_OF_MENU and times.efi.init_us is not None:
        return beside
    return (*beside, Beside.MENU_IF_ANY)


def _loads_images(loader: str | None) -> bool:
    """Tell whether a systemd-boot of this name and version reads the images of its entries.

    One whose version cannot be told does: those that do not are from before October 2022.
    """
    match = _LOADER_VERSION.match(loader or "")
    if match is None:
        return True
    return match["name"] == "systemd-boot" and int(match["version"]) >= _LOADS_IMAGES_SINCE


def _duration_us(source: IntervalSource, times: LoaderTimes) -> int | None:
    efi, fpdt = times.efi, times.fpdt
    match source:
        case IntervalSource.EXEC_MINUS_INIT:
            return _difference(efi.init_us, efi.exec_us, per_us=1)
        case IntervalSource.LAUNCH_TO_EXIT:
            return _difference(
                fpdt.bootloader_launch_ns, fpdt.exitbootservice_start_ns, per_us=1000
            )
        case IntervalSource.LOAD_TO_LAUNCH:
            return _difference(fpdt.bootloader_load_ns, fpdt.bootloader_launch_ns, per_us=1000)


def _difference(begin: int | None, end: int | None, *, per_us: int) -> int | None:
    if begin is None or end is None or end < begin:
        return None
    return (end - begin) // per_us
