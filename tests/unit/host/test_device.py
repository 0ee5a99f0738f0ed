"""The disk behind a path, or the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.host.storage.mounts import BlockNode, device_of
from initadvisor.records.storage import DeviceKind

if TYPE_CHECKING:
    from pathlib import Path

NVME = BlockNode(name="nvme0n1", subsystems=("nvme", "pci"), model="Samsung SSD 980")


def host_with(root: Path, mountinfo: str) -> Host:
    """Return a host that has these mounts."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mountinfo, encoding="ascii")
    (root / "boot").mkdir()
    return Host(root=root)


def nvme(major: int, minor: int) -> BlockNode:
    """Know one disk only."""
    assert (major, minor) == (259, 2)
    return NVME


def nothing(major: int, minor: int) -> BlockNode:
    """Know no device."""
    msg = f"/sys does not know the block device {major}:{minor}"
    raise InitadvisorError(msg)


def test_a_file_system_on_a_disk(tmp_path: Path) -> None:
    host = host_with(tmp_path, "1 0 259:2 / / rw - ext4 /dev/root rw\n")
    device = device_of(host, host.path("/boot"), lookup=nvme)
    assert (device.kind, device.name) == (DeviceKind.NVME, "nvme0n1")


@pytest.mark.parametrize(
    ("line", "kind", "reason"),
    [
        ("0:30 / / rw - overlay overlay rw", DeviceKind.NONE, "overlay"),
        ("0:30 / / rw - tmpfs tmpfs rw", DeviceKind.NONE, "tmpfs"),
        ("0:30 / / rw - nfs4 server:/export rw", DeviceKind.NONE, "nfs4"),
        ("0:30 / / rw - fuse.sshfs me@server: rw", DeviceKind.NONE, "fuse.sshfs"),
        ("0:30 / / rw - zfs rpool/ROOT rw", DeviceKind.UNKNOWN, "rpool/ROOT"),
        ("0:30 / / rw - btrfs /dev/nvme0n1p2 rw", DeviceKind.UNKNOWN, "/dev/nvme0n1p2"),
        ("8:1 / / rw - ext4 /dev/sda1 rw", DeviceKind.UNKNOWN, "8:1"),
        ("8:1 / /other rw - ext4 /dev/sda1 rw", DeviceKind.UNKNOWN, "mountinfo"),
    ],
)
def test_where_there_is_none_or_it_is_hidden_the_reason_is_given(
    tmp_path: Path, line: str, kind: DeviceKind, reason: str
) -> None:
    host = host_with(tmp_path, f"1 0 {line}\n")
    device = device_of(host, host.path("/boot/image"), lookup=nothing)
    assert device.kind is kind
    assert device.reason is not None
    assert reason in device.reason


def test_btrfs_is_found_by_its_source(tmp_path: Path) -> None:
    host = host_with(tmp_path, "1 0 0:30 /@ / rw - btrfs /dev/disk rw\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/disk").write_bytes(b"")
    device = device_of(host, host.path("/boot"), lookup=nvme)
    assert device.kind is DeviceKind.UNKNOWN
    assert device.reason == "/dev/disk is no block device"


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    device = device_of(Host(root=tmp_path), tmp_path, lookup=nvme)
    assert device.kind is DeviceKind.UNKNOWN
    assert device.reason is not None
