"""Loaders that can boot an entry once are found; the others are named and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fakes.boot_programs import load_option
from tests.fixtures.loader_machines import PARTITION
from tests.fixtures.trees import GLOBAL, host_at, write, write_texts, write_variable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("variables", "option", "name"),
    [
        ({"LoaderInfo": "rEFInd 0.14.0.2"}, r"\EFI\refind\refind_x64.efi", "rEFInd"),
        ({}, r"\EFI\refind\refind_x64.efi", "rEFInd"),
        ({"LoaderInfo": "Limine 8.0.1"}, r"\EFI\BOOT\BOOTX64.EFI", "Limine"),
        ({}, r"\EFI\limine\limine.efi", "Limine"),
        ({}, r"\EFI\OC\OpenCore.efi", "OpenCore"),
        ({}, r"\EFI\CLOVER\CLOVERX64.efi", "CloverEFI"),
        ({}, r"\EFI\ZBM\VMLINUZ-ZBM.EFI", "ZFSBootMenu"),
        ({"StubInfo": "systemd-stub 257"}, r"\EFI\debian\shimx64.efi", "keeps silent"),
    ],
)
def test_other_loaders_on_efi_are_named(
    tmp_path: Path, variables: dict[str, str], option: str, name: str
) -> None:
    write(tmp_path, "/proc/cmdline", r"root=x initrd=\initramfs.img")
    image = {"StubImageIdentifier": r"\EFI\Linux\a.efi"} if "StubInfo" in variables else {}
    write_texts(tmp_path, variables | image)
    write_variable(tmp_path, "BootCurrent", b"\1\0", GLOBAL)
    write_variable(tmp_path, "Boot0001", load_option("x", PARTITION, option, ""), GLOBAL)
    with pytest.raises(RefusedError, match=name) as caught:
        detect_boot_loader(host_at(tmp_path))
    assert caught.value.refusal.kind is RefusalKind.UNSUPPORTED_LOADER
    assert caught.value.exit_code == 3
    assert "initadvisor apply SETTING --immediate --without-entry" in caught.value.refusal.remedy


@pytest.mark.parametrize("command_line", ["root=x", "BOOT_IMAGE=0 root=x"])
@pytest.mark.parametrize(
    ("file", "name", "by_hand"),
    [
        ("/boot/refind_linux.conf", "rEFInd", "a line in /boot/refind_linux.conf"),
        ("/boot/limine.conf", "Limine", "module_path in limine.conf"),
        ("/boot/syslinux/syslinux.cfg", "Syslinux", "a LABEL of its own"),
        ("/boot/extlinux/extlinux.conf", "extlinux", "a LABEL of its own"),
        ("/boot/firmware/config.txt", "Raspberry", "reboot '0 tryboot'"),
        ("/boot/boot.scr", "U-Boot", "at U-Boot's prompt"),
        ("/etc/zipl.conf", "zipl", "run zipl"),
        ("/proc/device-tree/ibm,firmware-versions/petitboot", "petitboot", "that it reads"),
    ],
)
def test_other_loaders_are_named_by_their_configuration(
    tmp_path: Path, file: str, name: str, by_hand: str, command_line: str
) -> None:
    write(tmp_path, "/proc/cmdline", command_line)
    write(tmp_path, file, "")
    with pytest.raises(RefusedError, match=name) as caught:
        detect_boot_loader(host_at(tmp_path))
    assert caught.value.refusal.kind is RefusalKind.UNSUPPORTED_LOADER
    assert by_hand in caught.value.refusal.remedy


def test_a_grub_that_names_itself_is_none_of_them(tmp_path: Path) -> None:
    write(tmp_path, "/proc/cmdline", "BOOT_IMAGE=/x root=x")
    write(tmp_path, "/proc/sys/kernel/bootloader_type", "114")
    write(tmp_path, "/boot/boot.scr", "")
    assert detect_boot_loader(host_at(tmp_path)).NAME == "grub"


@pytest.mark.parametrize(
    ("loader_type", "words"), [("208", "kexec"), ("49", "Syslinux"), ("176", "QEMU")]
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, loader_type: str, words: str) -> None:
    write(tmp_path, "/proc/cmdline", "BOOT_IMAGE=/x root=x")
    write(tmp_path, "/proc/sys/kernel/bootloader_type", loader_type)
    with pytest.raises(RefusedError, match=words) as caught:
        detect_boot_loader(host_at(tmp_path))
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_LOADER
