"""How a boot was started, by the traces that each way leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.estimates import Certainty
from initadvisor.firmware.boot_method import BootTraces, boot_method, boot_start
from initadvisor.firmware.efi_variables import DEFAULT_LOADER
from initadvisor.records.boot_start import BootMethod, LoaderVariables, Unreadable
from tests.fixtures.trees import host_at, write

if TYPE_CHECKING:
    from pathlib import Path

STUB_TYPE, GRUB_TYPE, KEXEC_TYPE, SYSLINUX_TYPE, QEMU_TYPE = 0x2, 0x7, 0xD, 0x3, 0xB
GRUB_LINE = "BOOT_IMAGE=/vmlinuz-6.12.0 root=/dev/sda2 ro quiet"
STUB_LINE = r"initrd=\arch\initramfs.img root=/dev/sda2 rw"
PLAIN_LINE = "root=/dev/sda2 rw"
UKI = r"\EFI\Linux\arch.efi"
OTHER_SPELLING = "HD(1,GPT,0001)/EFI/LINUX/ARCH.EFI"
DEFAULT = r"\EFI\BOOT\BOOTX64.EFI"
SHIM = r"\EFI\debian\shimx64.efi"
HIDDEN = LoaderVariables(
    readable=True,
    unreadable=(Unreadable(source="LoaderInfo", reason="cannot be read: Input/output error"),),
)


SILENT = LoaderVariables(readable=True)
SD_BOOT = replace(
    SILENT, loader="systemd-boot 257.5-2", loader_file=r"\EFI\systemd\systemd-bootx64.efi"
)
STUB = replace(SILENT, stub="systemd-stub 257.5-2")


def named(loader: str) -> LoaderVariables:
    return replace(SILENT, loader=loader)


def seen(
    command_line: str,
    variables: LoaderVariables = SILENT,
    *,
    loader_type: int | None = STUB_TYPE,
    efi: bool = True,
) -> BootTraces:
    return BootTraces(
        efi=efi, loader_type=loader_type, command_line=command_line, variables=variables
    )


TABLE = [
    # systemd-boot
    (seen(STUB_LINE, SD_BOOT), BootMethod.SYSTEMD_BOOT, Certainty.CERTAIN),
    (seen(STUB_LINE, named("systemd-boot 251.4-1")), BootMethod.SYSTEMD_BOOT, Certainty.CERTAIN),
    (seen(STUB_LINE, named("gummiboot 48")), BootMethod.SYSTEMD_BOOT, Certainty.CERTAIN),
    (seen(STUB_LINE, SD_BOOT, loader_type=None), BootMethod.SYSTEMD_BOOT, Certainty.CERTAIN),
    (seen(PLAIN_LINE, SD_BOOT), BootMethod.SYSTEMD_BOOT, Certainty.LIKELY),
    (seen(GRUB_LINE, SD_BOOT), BootMethod.GRUB_EFI, Certainty.LIKELY),
    # unified kernel images
    (
        seen(PLAIN_LINE, replace(SD_BOOT, stub=STUB.stub)),
        BootMethod.SYSTEMD_BOOT_UKI,
        Certainty.CERTAIN,
    ),
    (
        seen(PLAIN_LINE, replace(STUB, loader_file=UKI, boot_option_file=UKI)),
        BootMethod.FIRMWARE_UKI,
        Certainty.CERTAIN,
    ),
    (
        seen(PLAIN_LINE, replace(STUB, stub_file=OTHER_SPELLING, boot_option_file=UKI)),
        BootMethod.FIRMWARE_UKI,
        Certainty.CERTAIN,
    ),
    (
        seen(PLAIN_LINE, replace(STUB, stub_file=DEFAULT, boot_option_file=DEFAULT_LOADER)),
        BootMethod.FIRMWARE_UKI,
        Certainty.CERTAIN,
    ),
    (
        seen(PLAIN_LINE, replace(STUB, stub_file=UKI, boot_option_file=DEFAULT_LOADER)),
        BootMethod.LOADER_UKI,
        Certainty.CERTAIN,
    ),
    (
        seen(PLAIN_LINE, replace(STUB, stub_file=UKI, loader_file=UKI, boot_option_file=SHIM)),
        BootMethod.LOADER_UKI,
        Certainty.CERTAIN,
    ),
    (seen(PLAIN_LINE, replace(STUB, stub_file=UKI)), BootMethod.FIRMWARE_UKI, Certainty.LIKELY),
    (
        seen(PLAIN_LINE, replace(STUB, boot_option_file=UKI)),
        BootMethod.FIRMWARE_UKI,
        Certainty.LIKELY,
    ),
    (seen(PLAIN_LINE, replace(STUB, loader="GRUB 2.12")), BootMethod.LOADER_UKI, Certainty.CERTAIN),
    # GRUB on EFI: with its handover protocol it gives its own number, else the EFI stub's is there
    (seen(GRUB_LINE, loader_type=GRUB_TYPE), BootMethod.GRUB_EFI, Certainty.CERTAIN),
    (seen(PLAIN_LINE, SD_BOOT, loader_type=GRUB_TYPE), BootMethod.GRUB_EFI, Certainty.CERTAIN),
    (seen(GRUB_LINE), BootMethod.GRUB_EFI, Certainty.CERTAIN),
    (seen(GRUB_LINE, LoaderVariables()), BootMethod.GRUB_EFI, Certainty.CERTAIN),
    (seen(GRUB_LINE, loader_type=None), BootMethod.GRUB_EFI, Certainty.CERTAIN),
    (seen(GRUB_LINE, named("GRUB 2.12")), BootMethod.GRUB_EFI, Certainty.CERTAIN),
    (seen(PLAIN_LINE, named("GRUB 2.12")), BootMethod.GRUB_EFI, Certainty.LIKELY),
    # GRUB on BIOS
    (seen(GRUB_LINE, efi=False, loader_type=GRUB_TYPE), BootMethod.GRUB_BIOS, Certainty.CERTAIN),
    (seen(GRUB_LINE, efi=False, loader_type=None), BootMethod.GRUB_BIOS, Certainty.LIKELY),
    # the EFI stub by itself
    (seen(STUB_LINE), BootMethod.EFI_STUB, Certainty.CERTAIN),
    (seen(STUB_LINE, loader_type=None), BootMethod.EFI_STUB, Certainty.CERTAIN),
    (seen(STUB_LINE, named("rEFInd 0.14.0")), BootMethod.EFI_STUB, Certainty.LIKELY),
    (seen(f"{STUB_LINE} BOOT_IMAGE=x"), BootMethod.EFI_STUB, Certainty.LIKELY),
    # kexec leaves everything of the boot before it in place
    (seen(STUB_LINE, SD_BOOT, loader_type=KEXEC_TYPE), BootMethod.KEXEC, Certainty.CERTAIN),
    (seen(PLAIN_LINE, STUB, loader_type=KEXEC_TYPE), BootMethod.KEXEC, Certainty.CERTAIN),
    (seen(GRUB_LINE, loader_type=KEXEC_TYPE, efi=False), BootMethod.KEXEC, Certainty.CERTAIN),
    # nothing to tell by
    (seen(STUB_LINE, LoaderVariables()), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen(STUB_LINE, HIDDEN), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen(PLAIN_LINE), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen(PLAIN_LINE, named("Limine 9.2.0")), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen(GRUB_LINE, efi=False, loader_type=SYSLINUX_TYPE), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen(PLAIN_LINE, efi=False, loader_type=QEMU_TYPE), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen(PLAIN_LINE, efi=False, loader_type=None), BootMethod.UNKNOWN, Certainty.UNKNOWN),
    (seen("", efi=False, loader_type=0x99), BootMethod.UNKNOWN, Certainty.UNKNOWN),
]


@pytest.mark.parametrize(("traces", "way", "certainty"), TABLE)
def test_traces_tell_the_way_and_how_certain_it_is(
    traces: BootTraces, way: BootMethod, certainty: Certainty
) -> None:
    start = boot_method(traces)
    assert (start.method, start.certainty) == (way, certainty)
    assert start.clues


def test_every_way_is_told_by_some_traces() -> None:
    assert {way for _, way, _ in TABLE} == set(BootMethod)


def test_kexec_keeps_no_name_of_a_loader_that_did_not_start_it() -> None:
    before = replace(SD_BOOT, entry="arch.conf")
    start = boot_method(seen(STUB_LINE, before, loader_type=KEXEC_TYPE))
    assert (start.loader, start.entry) == (None, None)


def test_a_boot_image_inside_quotes_is_not_grubs() -> None:
    start = boot_method(seen(rf'foo="a BOOT_IMAGE=b" {STUB_LINE}'))
    assert start.method is BootMethod.EFI_STUB


@pytest.mark.parametrize(
    ("number", "way"),
    [
        ("114\n", BootMethod.GRUB_BIOS),  # 0x72
        ("208\n", BootMethod.KEXEC),  # 0xd0
        ("176\n", BootMethod.UNKNOWN),  # 0xb0, seen under Firecracker
        ("garbage\n", BootMethod.GRUB_BIOS),  # as without the file: BOOT_IMAGE= tells
        ("", BootMethod.GRUB_BIOS),
    ],
)
def test_the_kernels_number_is_read_from_proc(tmp_path: Path, number: str, way: BootMethod) -> None:
    write(tmp_path, "/proc/sys/kernel/bootloader_type", number)
    write(tmp_path, "/proc/cmdline", GRUB_LINE + "\n")
    assert boot_start(host_at(tmp_path), LoaderVariables()).method is way


def test_efi_is_told_by_sysfs_or_by_the_stub_that_has_run(tmp_path: Path) -> None:
    write(tmp_path, "/proc/cmdline", GRUB_LINE)
    write(tmp_path, "/proc/sys/kernel/bootloader_type", "33\n")  # 0x21, and the kernel got noefi
    assert boot_start(host_at(tmp_path), LoaderVariables()).method is BootMethod.GRUB_EFI
    write(tmp_path, "/proc/sys/kernel/bootloader_type", "")
    (tmp_path / "sys/firmware/efi").mkdir(parents=True)
    assert boot_start(host_at(tmp_path), LoaderVariables()).method is BootMethod.GRUB_EFI


def test_nothing_to_read_is_an_unknown_way(tmp_path: Path) -> None:
    assert boot_start(host_at(tmp_path), LoaderVariables()).method is BootMethod.UNKNOWN


TEXTS = st.none() | st.text(max_size=20) | st.sampled_from(["systemd-boot 257", "GRUB 2.12", UKI])


@given(
    efi=st.booleans(),
    loader_type=st.none() | st.integers(0, 0x20),
    command_line=st.text(max_size=60) | st.sampled_from([GRUB_LINE, STUB_LINE]),
    names=st.lists(TEXTS, min_size=5, max_size=5),
)
def test_no_traces_are_too_strange(
    *, efi: bool, loader_type: int | None, command_line: str, names: list[str | None]
) -> None:
    loader, loader_file, stub, stub_file, boot_option_file = names
    variables = LoaderVariables(
        readable=True,
        loader=loader,
        loader_file=loader_file,
        stub=stub,
        stub_file=stub_file,
        boot_option_file=boot_option_file,
    )
    traces = seen(command_line, variables, efi=efi, loader_type=loader_type)
    start = boot_method(traces)
    assert (start.method is BootMethod.UNKNOWN) == (start.certainty is Certainty.UNKNOWN)
