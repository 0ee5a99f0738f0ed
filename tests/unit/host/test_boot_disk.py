"""The disk behind a file, as /sys describes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.host.storage.boot_partition import boot_disk
from tests.fixtures.trees import host_at, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file whose device number is that of the test's own file system."""
    write(tmp_path, "/boot/initrd.img", "")
    return tmp_path / "boot/initrd.img"


def device(root: Path, image: Path, place: str) -> None:
    """Make /sys say that the file's device is at ``place``."""
    number = image.stat().st_dev
    link = root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(root / place)


def test_a_partition_s_disk_is_told_by_model_and_size(tmp_path: Path, image: Path) -> None:
    disk = "sys/devices/pci0000:00/nvme/nvme0/nvme0n1"
    write(tmp_path, f"{disk}/device/model", "Samsung SSD 980 1TB                     \n")
    write(tmp_path, f"{disk}/size", "1953525168\n")
    write(tmp_path, f"{disk}/nvme0n1p1/partition", "1\n")
    write(tmp_path, f"{disk}/nvme0n1p1/size", "1000\n")
    device(tmp_path, image, f"{disk}/nvme0n1p1")
    assert boot_disk(host_at(tmp_path), image) == "Samsung SSD 980 1TB, 1000.2 GB"


def test_a_whole_disk_is_one_too(tmp_path: Path, image: Path) -> None:
    write(tmp_path, "sys/devices/vda/device/model", "QEMU\n")
    write(tmp_path, "sys/devices/vda/size", "2048\n")
    device(tmp_path, image, "sys/devices/vda")
    assert boot_disk(host_at(tmp_path), image) == "QEMU, 0.0 GB"


@pytest.mark.parametrize("size", ["", "many", None])
def test_what_does_not_describe_itself_is_not_known(
    tmp_path: Path, image: Path, size: str | None
) -> None:
    write(tmp_path, "sys/devices/virtual/block/dm-0/dm/name", "luks\n")
    if size is not None:
        write(tmp_path, "sys/devices/virtual/block/dm-0/device/model", "A\n")
        write(tmp_path, "sys/devices/virtual/block/dm-0/size", size)
    device(tmp_path, image, "sys/devices/virtual/block/dm-0")
    assert boot_disk(host_at(tmp_path), image) is None


def test_without_sys_or_the_file_nothing_is_known(tmp_path: Path, image: Path) -> None:
    assert boot_disk(host_at(tmp_path), image) is None
    assert boot_disk(host_at(tmp_path), image.with_name("none")) is None
