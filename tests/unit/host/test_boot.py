"""The file system that holds the images, on each kind of layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.host import Host
from initadvisor.host.storage.boot_partition import boot_partition
from initadvisor.host.storage.mounts import BlockNode
from initadvisor.records.storage import BootRole
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host.storage.mounts import Lookup

ROOT = "1 0 8:2 / / rw - ext4 /dev/sda2 rw"
ESP_TYPE = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
XBOOTLDR_TYPE = "bc13c2ff-59e6-4262-a352-b275fd6f7172"


def host_with(root: Path, *mounts: str, esp: str | None = None) -> Host:
    """Return a host with these mounts, whose bootctl knows the ESP or is missing."""
    (root / "proc/self").mkdir(parents=True)
    text = "\n".join(mounts) + "\n"
    (root / "proc/self/mountinfo").write_text(text, encoding="ascii")
    for directory in ("boot/efi", "efi"):
        (root / directory).mkdir(parents=True)
    runner = FakeRunner(programs=["bootctl"])
    if esp:
        runner.answer("bootctl --print-esp-path", f"{esp}\n")
    else:
        runner.answer("bootctl", error=ProgramError("cannot run bootctl: not installed"))
    return Host(root=root, runner=runner)


def plain(major: int, minor: int) -> BlockNode:
    """Return a disk whose partition types are not known."""
    return BlockNode(name=f"sd{major}-{minor}", subsystems=("scsi", "ata"))


def typed(partition_type: str) -> Lookup:
    """Return a look-up that knows the type of every partition."""

    def lookup(major: int, minor: int) -> BlockNode:
        return BlockNode(name=f"sd{major}-{minor}", partition_type=partition_type)

    return lookup


@pytest.mark.parametrize(
    ("mounts", "role", "mount_point"),
    [
        ((ROOT,), BootRole.ROOT, "/"),
        ((ROOT, "2 1 8:1 / /boot rw - ext4 /dev/sda1 rw"), BootRole.BOOT, "/boot"),
        ((ROOT, "2 1 8:1 / /boot rw - vfat /dev/sda1 rw"), BootRole.ESP, "/boot"),
        (
            (ROOT, "2 1 8:1 / /efi rw - vfat /dev/sda1 rw", "3 1 8:3 / /boot rw - vfat x rw"),
            BootRole.XBOOTLDR,
            "/boot",
        ),
        (
            (ROOT, "2 1 8:1 / /efi rw - autofs systemd-1 rw", "3 1 8:3 / /boot rw - vfat x rw"),
            BootRole.XBOOTLDR,
            "/boot",
        ),
        (
            (
                ROOT,
                "2 1 8:1 / /boot rw - ext4 /dev/sda1 rw",
                "3 2 8:3 / /boot/efi rw - vfat /dev/sda3 rw",
            ),
            BootRole.BOOT,
            "/boot",
        ),
    ],
)
def test_the_role_is_guessed_where_partition_types_are_unknown(
    tmp_path: Path, mounts: tuple[str, ...], role: BootRole, mount_point: str
) -> None:
    partition = boot_partition(host_with(tmp_path, *mounts), lookup=plain)
    assert (partition.role, partition.mount_point) == (role, mount_point)
    assert partition.free_bytes is not None
    assert partition.size_bytes is not None


@pytest.mark.parametrize(
    ("partition_type", "role"), [(ESP_TYPE, BootRole.ESP), (XBOOTLDR_TYPE, BootRole.XBOOTLDR)]
)
def test_the_partition_table_decides_where_it_is_known(
    tmp_path: Path, partition_type: str, role: BootRole
) -> None:
    host = host_with(tmp_path, ROOT, "2 1 8:1 / /boot rw - vfat /dev/sda1 rw")
    assert boot_partition(host, lookup=typed(partition_type)).role is role


def test_bootctl_is_only_a_hint(tmp_path: Path) -> None:
    mount = "2 1 8:1 / /mnt/esp rw - vfat /dev/sda1 rw"
    other = "3 1 8:3 / /efi rw - vfat /dev/sda3 rw"
    host = host_with(tmp_path, ROOT, mount, other, esp="/mnt/esp")
    (tmp_path / "mnt/esp").mkdir(parents=True)
    image = tmp_path / "mnt/esp/image"
    image.write_bytes(b"x")
    assert boot_partition(host, image, lookup=plain).role is BootRole.ESP


def test_an_image_elsewhere_is_on_no_boot_partition(tmp_path: Path) -> None:
    host = host_with(tmp_path, ROOT, "2 1 8:1 / /home rw - ext4 /dev/sda1 rw")
    image = tmp_path / "home/me/image"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"x")
    assert boot_partition(host, image, lookup=plain).role is BootRole.ELSEWHERE


def test_the_images_own_directory_counts(tmp_path: Path) -> None:
    host = host_with(tmp_path, ROOT, "2 1 8:1 / /efi rw - vfat /dev/sda1 rw")
    image = tmp_path / "efi/token/6.1/initrd"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"x")
    partition = boot_partition(host, image, lookup=plain)
    assert (partition.role, partition.directory) == (BootRole.ESP, "/efi/token/6.1")
    assert partition.mount_point == "/efi"


@pytest.mark.parametrize("layout", ["entry token", "machine id", "unified images"])
def test_without_an_image_kernel_install_tells_where_they_go(tmp_path: Path, layout: str) -> None:
    host = host_with(tmp_path, ROOT, "2 1 8:1 / /efi rw - vfat /dev/sda1 rw")
    (tmp_path / "etc/kernel").mkdir(parents=True)
    match layout:
        case "entry token":
            (tmp_path / "etc/kernel/entry-token").write_text("arch\n", encoding="ascii")
            (tmp_path / "efi/arch").mkdir()
        case "machine id":
            (tmp_path / "etc/machine-id").write_text("0123\n", encoding="ascii")
            (tmp_path / "efi/0123").mkdir()
        case _:
            (tmp_path / "efi/EFI/Linux").mkdir(parents=True)
            (tmp_path / "efi/EFI/Linux/arch.efi").write_bytes(b"MZ")
    assert boot_partition(host, lookup=plain).mount_point == "/efi"


def test_without_proc_it_cannot_be_told(tmp_path: Path) -> None:
    with pytest.raises(InitadvisorError, match="mountinfo"):
        boot_partition(Host(root=tmp_path, runner=FakeRunner()), lookup=plain)
