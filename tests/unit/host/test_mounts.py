"""The file system a path is on is found as the kernel would find it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from initadvisor.host import Host
from initadvisor.host.storage.mounts import Mount, machine_path, mount_of, parse_mountinfo

ARCH = r"""
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 0:5 / /dev rw - devtmpfs udev rw
25 22 0:44 / /boot rw shared:9 - autofs systemd-1 rw,fd=44
26 25 259:1 / /boot rw,relatime shared:10 - vfat /dev/nvme0n1p1 rw,fmask=0077
27 22 0:50 /@home /home rw - btrfs /dev/mapper/home rw,subvol=/@home
28 22 8:1 / /mnt/my\040disk rw - ext4 /dev/sda1 rw
"""


def at(path: str, text: str = ARCH) -> Mount | None:
    return mount_of(parse_mountinfo(text), PurePosixPath(path))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/usr/lib", "/dev/nvme0n1p2"),
        ("/", "/dev/nvme0n1p2"),
        ("/boot", "/dev/nvme0n1p1"),
        ("/boot/initramfs-linux.img", "/dev/nvme0n1p1"),
        ("/bootleg", "/dev/nvme0n1p2"),
        ("/home/me/x", "/dev/mapper/home"),
        ("/mnt/my disk/image", "/dev/sda1"),
    ],
)
def test_the_deepest_and_latest_mount_holds_a_path(path: str, source: str) -> None:
    mount = at(path)
    assert mount is not None
    assert mount.source == source


def test_a_mount_over_another_hides_it() -> None:
    hidden = ARCH + "30 22 0:60 / / rw - overlay overlay rw\n"
    mount = at("/usr", hidden)
    assert mount is not None
    assert mount.fs_type == "overlay"


def test_optional_fields_do_not_matter() -> None:
    mount = at("/", "1 0 8:2 / / rw - xfs /dev/sda2 rw\n")
    assert mount == Mount(mount_point="/", fs_type="xfs", source="/dev/sda2", major=8, minor=2)


@pytest.mark.parametrize(
    "text", ["", "garbage", "1 0 8:2 / /", "1 0 x:y / / rw - ext4 /dev/sda rw"]
)
def test_what_is_no_mountinfo_mounts_nothing(text: str) -> None:
    assert at("/", text) is None


def test_a_path_is_resolved_and_loses_the_hosts_root(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "image").write_bytes(b"")
    (tmp_path / "link").symlink_to("boot/image")
    host = Host(root=tmp_path)
    assert machine_path(host, tmp_path / "link") == PurePosixPath("/boot/image")
    assert machine_path(host, Path("/elsewhere/image")) == PurePosixPath("/elsewhere/image")


def test_a_link_to_itself_stays(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert machine_path(Host(root=tmp_path), tmp_path / "loop") == PurePosixPath("/loop")
