"""A boot's phases, each by the account closest to it."""

from __future__ import annotations

from dataclasses import replace

from initadvisor.records.boot_start import (
    BootMethod,
    EfiTimes,
    FpdtTimes,
    LoaderTimes,
    ManagerTimes,
    Phase,
    PhaseSource,
    boot_phases,
)
from tests.fixtures.boots import boot_record

EFI = EfiTimes(init_us=9_000_000, exec_us=9_700_000)
FPDT = FpdtTimes(bootloader_launch_ns=8_200_000_000, exitbootservice_end_ns=10_600_000_000)
MANAGER = ManagerTimes(
    firmware_us=10_600_000,
    loader_us=2_400_000,
    initrd_us=1_500_000,
    userspace_us=4_000_000,
    finish_us=9_000_000,
    soft_reboots=0,
)


def found(
    times: LoaderTimes, way: BootMethod = BootMethod.SYSTEMD_BOOT
) -> dict[Phase, tuple[int, PhaseSource]]:
    return {each.phase: (each.duration_us, each.source) for each in boot_phases(way, times)}


def test_the_firmwares_own_record_comes_first_and_systemd_agrees() -> None:
    times = LoaderTimes(efi=EFI, fpdt=FPDT, manager=MANAGER)
    before = {
        Phase.FIRMWARE: (8_200_000, PhaseSource.FPDT),
        Phase.LOADER: (2_400_000, PhaseSource.FPDT),
    }
    since = {
        Phase.KERNEL: (1_500_000, PhaseSource.MANAGER),
        Phase.INITRD: (2_500_000, PhaseSource.MANAGER),
        Phase.USERSPACE: (5_000_000, PhaseSource.MANAGER),
    }
    assert found(times) == before | since
    by_systemd = found(LoaderTimes(manager=MANAGER))
    assert by_systemd[Phase.FIRMWARE] == (8_200_000, PhaseSource.MANAGER)
    assert by_systemd[Phase.LOADER] == (2_400_000, PhaseSource.MANAGER)


def test_the_loaders_variables_come_second() -> None:
    phases = found(LoaderTimes(efi=EFI, manager=MANAGER))
    assert phases[Phase.FIRMWARE] == (9_000_000, PhaseSource.EFI)
    assert phases[Phase.LOADER] == (700_000, PhaseSource.EFI)


def test_without_systemd_in_the_initramfs_the_kernel_lasts_until_user_space() -> None:
    phases = found(LoaderTimes(manager=replace(MANAGER, initrd_us=None)))
    assert phases[Phase.KERNEL] == (4_000_000, PhaseSource.MANAGER)
    assert Phase.INITRD not in phases


def test_after_a_soft_reboot_the_kernels_phases_are_of_no_boot() -> None:
    phases = found(LoaderTimes(efi=EFI, manager=replace(MANAGER, soft_reboots=1)))
    assert set(phases) == {Phase.FIRMWARE, Phase.LOADER}


def test_after_a_kexec_firmware_and_loader_are_those_of_another_boot() -> None:
    times = LoaderTimes(efi=EFI, fpdt=FPDT, manager=MANAGER)
    assert set(found(times, BootMethod.KEXEC)) == {Phase.KERNEL, Phase.INITRD, Phase.USERSPACE}


def test_a_boot_that_is_not_complete_has_no_user_space_yet() -> None:
    phases = found(LoaderTimes(manager=replace(MANAGER, finish_us=None)))
    assert Phase.USERSPACE not in phases
    assert Phase.INITRD in phases


def test_a_counter_that_was_not_reset_is_no_firmware_time() -> None:
    efi = EfiTimes(init_us=7_200_000_000, exec_us=7_200_500_000)
    assert found(LoaderTimes(efi=efi)) == {Phase.LOADER: (500_000, PhaseSource.EFI)}


def test_moments_in_the_wrong_order_are_no_phase() -> None:
    phases = found(LoaderTimes(manager=replace(MANAGER, userspace_us=1_000_000)))
    assert Phase.INITRD not in phases


def test_nothing_known_is_no_phase() -> None:
    assert found(LoaderTimes()) == {}
    assert found(LoaderTimes(manager=ManagerTimes(initrd_us=1, finish_us=3))) == {}


def test_the_initramfs_lasts_from_init_to_the_root_file_system_s_systemd() -> None:
    record = boot_record()
    run_init_us = record.timestamps.run_init_us or 0

    def lasted(times: LoaderTimes) -> int | None:
        phases = boot_phases(BootMethod.SYSTEMD_BOOT, times)
        return replace(record, phases=phases).initramfs_us

    assert lasted(LoaderTimes(fpdt=FPDT, manager=MANAGER)) == 4_000_000 - run_init_us
    busybox = replace(MANAGER, initrd_us=None)
    assert lasted(LoaderTimes(manager=busybox)) == 4_000_000 - run_init_us
    for unknown in (
        replace(MANAGER, soft_reboots=1),
        replace(MANAGER, userspace_us=None),
        replace(busybox, userspace_us=run_init_us - 1),
    ):
        assert lasted(LoaderTimes(manager=unknown)) is None
    unseen = replace(record, timestamps=replace(record.timestamps, run_init_us=None))
    assert unseen.initramfs_us is None
