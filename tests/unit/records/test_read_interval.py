"""The interval that contains the reading of the image: every way of booting, every source."""

from __future__ import annotations

import pytest

from initadvisor.core.estimates import Certainty
from initadvisor.records.boot_start import BootMethod, BootStart, EfiTimes, FpdtTimes, LoaderTimes
from initadvisor.records.read_interval import (
    Beside,
    IntervalSource,
    NoInterval,
    ReadInterval,
    read_interval,
)

EFI = EfiTimes(init_us=9_000_000, exec_us=9_700_000)
FPDT = FpdtTimes(
    firmware_start_ns=50_000_000,
    bootloader_load_ns=8_000_000_000,
    bootloader_launch_ns=8_200_000_999,
    exitbootservice_start_ns=10_500_000_999,
    exitbootservice_end_ns=10_600_000_000,
)
BOTH = LoaderTimes(efi=EFI, fpdt=FPDT)
EXEC = (IntervalSource.EXEC_MINUS_INIT, 700_000)
LAUNCH_TO_EXIT = (IntervalSource.LAUNCH_TO_EXIT, 2_300_000)
LOAD_TO_LAUNCH = (IntervalSource.LOAD_TO_LAUNCH, 200_000)


def started(way: BootMethod, loader: str | None = None) -> BootStart:
    return BootStart(method=way, certainty=Certainty.CERTAIN, loader=loader)


@pytest.mark.parametrize(
    ("way", "loader", "expected"),
    [
        (BootMethod.SYSTEMD_BOOT, "systemd-boot 252.39-1~deb12u1", EXEC),
        (BootMethod.SYSTEMD_BOOT, "systemd-boot 252~rc1-1", EXEC),
        (BootMethod.SYSTEMD_BOOT, "systemd-boot v257-5", EXEC),
        (BootMethod.SYSTEMD_BOOT, "systemd-boot of my own", EXEC),
        (BootMethod.SYSTEMD_BOOT, None, EXEC),
        (BootMethod.SYSTEMD_BOOT, "systemd-boot 251.4-1", LAUNCH_TO_EXIT),
        (BootMethod.SYSTEMD_BOOT, "systemd-boot 247.3-7+deb11u6", LAUNCH_TO_EXIT),
        (BootMethod.SYSTEMD_BOOT, "gummiboot 48", LAUNCH_TO_EXIT),
        (BootMethod.SYSTEMD_BOOT_UKI, "systemd-boot 257.5-2", EXEC),
        (BootMethod.SYSTEMD_BOOT_UKI, "systemd-boot 249", EXEC),  # LoadImage reads the whole file
        (BootMethod.FIRMWARE_UKI, None, LOAD_TO_LAUNCH),
        (BootMethod.LOADER_UKI, "GRUB 2.12", LAUNCH_TO_EXIT),
        (BootMethod.GRUB_EFI, None, LAUNCH_TO_EXIT),
        (BootMethod.GRUB_EFI, "GRUB 2.12", LAUNCH_TO_EXIT),
        (BootMethod.EFI_STUB, None, LAUNCH_TO_EXIT),
        (BootMethod.GRUB_BIOS, None, None),
        (BootMethod.KEXEC, None, None),
        (BootMethod.UNKNOWN, None, None),
    ],
)
def test_each_way_of_booting_has_its_interval(
    way: BootMethod, loader: str | None, expected: tuple[IntervalSource, int] | None
) -> None:
    interval = read_interval(started(way, loader), BOTH)
    if expected is None:
        assert isinstance(interval, NoInterval)
        assert interval.reason
    else:
        assert isinstance(interval, ReadInterval)
        assert (interval.source, interval.duration_us) == expected


@pytest.mark.parametrize("way", [BootMethod.SYSTEMD_BOOT, BootMethod.SYSTEMD_BOOT_UKI])
def test_systemd_boot_without_its_times_is_enclosed_by_the_firmwares(way: BootMethod) -> None:
    interval = read_interval(started(way, "systemd-boot 257"), LoaderTimes(fpdt=FPDT))
    assert isinstance(interval, ReadInterval)
    assert (interval.source, interval.duration_us) == LAUNCH_TO_EXIT
    assert Beside.STUB in interval.beside


@pytest.mark.parametrize("way", BootMethod)
def test_no_times_are_no_interval_and_a_reason(way: BootMethod) -> None:
    interval = read_interval(started(way), LoaderTimes())
    assert isinstance(interval, NoInterval)
    assert interval.reason


@pytest.mark.parametrize("way", [BootMethod.FIRMWARE_UKI, BootMethod.GRUB_EFI, BootMethod.EFI_STUB])
def test_the_loaders_times_are_not_taken_for_what_they_do_not_enclose(way: BootMethod) -> None:
    assert isinstance(read_interval(started(way), LoaderTimes(efi=EFI)), NoInterval)


def test_an_old_systemd_boot_has_no_interval_of_its_own() -> None:
    start = started(BootMethod.SYSTEMD_BOOT, "systemd-boot 251")
    interval = read_interval(start, LoaderTimes(efi=EFI))
    assert isinstance(interval, NoInterval)
    assert IntervalSource.LAUNCH_TO_EXIT in interval.reason
    assert IntervalSource.EXEC_MINUS_INIT not in interval.reason


ALL = (Beside.LOADER, Beside.KERNEL, Beside.STUB)
FIRMWARE_ONLY = LoaderTimes(fpdt=FPDT)


@pytest.mark.parametrize(
    ("start", "times", "beside"),
    [
        (
            started(BootMethod.SYSTEMD_BOOT, "systemd-boot 257"),
            BOTH,
            (Beside.LOADER, Beside.KERNEL),
        ),
        (started(BootMethod.SYSTEMD_BOOT, "systemd-boot 251"), BOTH, ALL),
        (
            started(BootMethod.SYSTEMD_BOOT, "systemd-boot 257"),
            FIRMWARE_ONLY,
            (*ALL, Beside.MENU_IF_ANY),
        ),
        (started(BootMethod.FIRMWARE_UKI), BOTH, (Beside.KERNEL,)),
        (started(BootMethod.LOADER_UKI), BOTH, (*ALL, Beside.MENU_IF_ANY)),
        # systemd-boot may have started GRUB, and showed no menu; GRUB may have
        (started(BootMethod.GRUB_EFI), BOTH, (*ALL, Beside.MENU_IF_ANY)),
        (started(BootMethod.EFI_STUB), BOTH, (Beside.STUB,)),
        (started(BootMethod.EFI_STUB, "rEFInd 0.14.0"), FIRMWARE_ONLY, (*ALL, Beside.MENU_IF_ANY)),
    ],
)
def test_what_is_beside_the_reading_is_told(
    start: BootStart, times: LoaderTimes, beside: tuple[Beside, ...]
) -> None:
    interval = read_interval(start, times)
    assert isinstance(interval, ReadInterval)
    assert interval.beside == beside


@pytest.mark.parametrize("loader", ["systemd-boot 257", "systemd-boot 251"])
def test_a_menu_that_was_shown_is_beside_whatever_contains_the_loader(loader: str) -> None:
    efi = EfiTimes(init_us=9_000_000, menu_us=9_100_000, exec_us=9_700_000)
    times = LoaderTimes(efi=efi, fpdt=FPDT)
    interval = read_interval(started(BootMethod.SYSTEMD_BOOT, loader), times)
    assert isinstance(interval, ReadInterval)
    assert Beside.MENU in interval.beside


def test_readings_in_the_wrong_order_are_no_interval() -> None:
    times = LoaderTimes(efi=EfiTimes(init_us=2, exec_us=1))
    start = started(BootMethod.SYSTEMD_BOOT_UKI, "systemd-boot 257")
    assert isinstance(read_interval(start, times), NoInterval)
