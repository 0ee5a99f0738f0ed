"""How many more kernels fit follows from the files of one that is there, on whichever partition."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.generators import InstalledImage
from initadvisor.target import kernel_room as module
from initadvisor.target.kernel_room import KernelRoom, kernel_room
from tests.fixtures.hosts import Machine

if TYPE_CHECKING:
    from pathlib import Path

NEW, OLD = "6.12.2-amd64", "6.12.2"
ROOT = "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
BOOT = "23 22 8:1 / /boot rw - ext4 /dev/sda1 rw\n"
ESP = "24 22 8:3 / /boot/efi rw - vfat /dev/sda3 rw\n"
AGAIN = "25 22 8:2 /boot /boot rw - ext4 /dev/sda2 rw\n"
"""What a unit's sandbox mounts of a root file system to write there."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a boot partition, of which 300 bytes are free."""
    monkeypatch.setattr(module, "free_bytes", lambda _path: 300)
    machine = Machine(root=tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True)
    mounted(machine, ROOT + BOOT)
    return machine


def mounted(machine: Machine, text: str) -> None:
    machine.path("/proc/self/mountinfo").write_text(text)


def write(machine: Machine, files: dict[str, int]) -> None:
    for name, size in files.items():
        machine.path(name).parent.mkdir(parents=True, exist_ok=True)
        machine.path(name).write_bytes(bytes(size))


def image(machine: Machine, name: str, release: str = NEW, *, uki: bool = False) -> InstalledImage:
    return InstalledImage(path=machine.path(name), kernel_release=release, uki=uki)


DEBIAN = {
    f"/boot/vmlinuz-{NEW}": 9,
    f"/boot/initrd.img-{NEW}": 37,
    f"/boot/config-{NEW}": 1,
    f"/boot/System.map-{NEW}": 3,
    f"/boot/vmlinuz-{OLD}": 1000,
    f"/boot/initrd.img-{OLD}": 1000,
    "/boot/.initadvisor-0-1-0.old": 1000,
    "/boot/grub/x86_64-efi/linux.mod": 1000,
}


def debian(machine: Machine) -> KernelRoom:
    write(machine, DEBIAN)
    images = [image(machine, f"/boot/initrd.img-{each}", each) for each in (NEW, OLD)]
    found = kernel_room(machine, images)
    assert found is not None
    return found


def test_a_kernel_takes_all_files_of_its_release_and_no_others(machine: Machine) -> None:
    found = debian(machine)
    assert (found.images_bytes, found.others_bytes) == (37, 9 + 1 + 3)
    assert (found.mount_point, found.release, found.in_place) == ("/boot", NEW, False)
    assert (found.kernel_bytes, found.today, found.is_full) == (50, 6, False)


def test_a_release_that_is_the_beginning_of_another_has_its_own_files(machine: Machine) -> None:
    write(machine, DEBIAN)
    images = [image(machine, f"/boot/initrd.img-{each}", each) for each in (OLD, NEW)]
    found = kernel_room(machine, images)
    assert found is not None
    assert (found.images_bytes, found.others_bytes) == (1000, 1000)


def test_after_a_switch_today_s_image_is_kept_beside_the_new_one(machine: Machine) -> None:
    found = debian(machine)
    assert found.after_switch(37, 74) == (300 - 74) // (74 + 13) == 2
    assert found.after_switch(37, 17) == (300 - 17) // (17 + 13) == 9
    assert found.after_switch(37, 3000) == 0


def test_a_hard_link_is_no_second_file(machine: Machine) -> None:
    write(machine, DEBIAN)
    os.link(machine.path(f"/boot/vmlinuz-{NEW}"), machine.path(f"/boot/vmlinuz-{NEW}.old"))
    assert debian(machine).others_bytes == 13


@pytest.mark.parametrize("mounts", [ROOT, ROOT + AGAIN])
def test_without_a_boot_partition_nothing_is_said(machine: Machine, mounts: str) -> None:
    write(machine, DEBIAN)
    mounted(machine, mounts)
    assert kernel_room(machine, [image(machine, f"/boot/initrd.img-{NEW}")]) is None
    assert kernel_room(machine, []) is None


def test_the_partition_with_room_for_the_fewest_counts(machine: Machine) -> None:
    mounted(machine, ROOT + BOOT + ESP)
    entry = f"/boot/efi/0123456789abcdef/{NEW}"
    write(machine, {f"{entry}/linux": 20, f"{entry}/initrd.img-{NEW}": 80})
    found = debian(machine)
    assert (found.mount_point, found.images_bytes, found.others_bytes) == ("/boot/efi", 80, 20)
    assert found.today == 3


@pytest.mark.parametrize("closed", ["/boot/efi", "/boot/loader"])
def test_nothing_is_said_of_a_partition_with_a_closed_directory(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    mounted(machine, ROOT + BOOT + ESP)
    write(machine, {**DEBIAN, f"/boot/efi/{NEW}/linux": 200, "/boot/loader/entries": 1})
    real = type(machine.root).iterdir

    def iterdir(path: Path) -> object:
        if path == machine.path(closed):
            raise PermissionError(13, "closed")
        return real(path)

    monkeypatch.setattr(type(machine.root), "iterdir", iterdir)
    found = kernel_room(machine, [image(machine, f"/boot/initrd.img-{NEW}")])
    assert found is not None
    assert found.mount_point == ("/boot" if closed == "/boot/efi" else "/boot/efi")


def test_what_a_package_names_is_written_over_by_its_upgrade(machine: Machine) -> None:
    names = ("initramfs-linux.img", "initramfs-linux-fallback.img")
    write(
        machine,
        {
            **{f"/boot/{name}": 100 for name in names},
            "/boot/vmlinuz-linux": 150,
            "/boot/vmlinuz-linux-lts": 1000,
            "/boot/intel-ucode.img": 1000,
        },
    )
    write(machine, {f"/usr/lib/modules/{NEW}/pkgbase": 0})
    machine.path(f"/usr/lib/modules/{NEW}/pkgbase").write_text("linux\n")
    found = kernel_room(machine, [image(machine, f"/boot/{name}") for name in names])
    assert found is not None
    assert (found.images_bytes, found.others_bytes, found.in_place) == (200, 150, True)
    assert (found.today, found.is_full) == (0, False)


def test_of_a_unified_image_the_initramfs_alone_changes(machine: Machine) -> None:
    path = f"/boot/EFI/Linux/debian-{NEW}.efi"
    write(machine, {path: 60})
    found = kernel_room(machine, [image(machine, path, uki=True)])
    assert found is not None
    assert (found.kernel_bytes, found.today) == (60, 5)
    assert found.after_switch(40, 80) == (300 - 100) // 100


def test_a_full_partition_says_so_before_the_next_kernel(machine: Machine) -> None:
    write(machine, {**DEBIAN, f"/boot/vmlinuz-{NEW}": 300_000_000})
    found = kernel_room(machine, [image(machine, f"/boot/initrd.img-{NEW}")])
    assert found is not None
    assert found.is_full
    assert found.words({"lz4": 2, "xz": 1}) == (
        f"/boot: 0 MB are free, another kernel like Linux {NEW} takes 300 MB: none fits, "
        "2 with lz4, 1 with xz"
    )


def test_a_boot_partition_that_cannot_be_read_is_an_error(machine: Machine) -> None:
    machine.path("/efi").symlink_to("efi")
    with pytest.raises(InitadvisorError, match=r"cannot look into .*/efi: Too many levels"):
        kernel_room(machine, [image(machine, "/boot/initrd.img")])


def test_a_partition_full_of_files_is_not_walked_through(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 5)
    with pytest.raises(InitadvisorError, match="more than 5 files"):
        debian(machine)
