"""The device behind a path."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol

from initadvisor.model.errors import InitadvisorError
from initadvisor.model.storage import Device, DeviceKind
from initadvisor.storage.block import BlockNode, device_behind
from initadvisor.storage.mounts import machine_path, mount_of, mounts_of_host
from initadvisor.storage.udev import block_node

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.storage.mounts import Mount

_DISKLESS = frozenset(
    {"overlay", "tmpfs", "ramfs", "rootfs", "aufs"}  # in memory, or a view of other file systems
    | {"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs"}  # from another machine
)
"""File systems that are on no disk of this machine, or not on one that they would name."""


class Lookup(Protocol):
    """Finds a block device by its number; raises ``InitadvisorError`` where that cannot be."""

    def __call__(self, major: int, minor: int) -> BlockNode:
        """Return the device."""
        ...


def device_of(host: Host, path: Path, *, lookup: Lookup = block_node) -> Device:
    """Return the disk that ``path`` is on; where there is none or it stays hidden, the reason."""
    mount = mount_of(mounts_of_host(host), machine_path(host, path))
    if mount is None:
        reason = f"/proc/self/mountinfo does not tell what {path} is on"
        return Device(kind=DeviceKind.UNKNOWN, reason=reason)
    return device_of_mount(host, mount, lookup=lookup)


def device_of_mount(host: Host, mount: Mount, *, lookup: Lookup = block_node) -> Device:
    """Return the disk that a mounted file system is on."""
    if mount.fs_type in _DISKLESS or mount.fs_type.startswith("fuse."):
        return Device(kind=DeviceKind.NONE, reason=f"{mount.fs_type} is on no disk of its own")
    try:
        return device_behind(node_of_mount(host, mount, lookup=lookup))
    except InitadvisorError as err:
        return Device(kind=DeviceKind.UNKNOWN, reason=err.message)


def node_of_mount(host: Host, mount: Mount, *, lookup: Lookup = block_node) -> BlockNode:
    """Return the block device that a file system is mounted from.

    Raises ``InitadvisorError`` where that is unknown. btrfs has device numbers of its own: there
    the mount's source says where it is.
    """
    if mount.major:
        return lookup(mount.major, mount.minor)
    if not mount.source.startswith("/dev/"):
        msg = f"{mount.fs_type} does not tell which disk {mount.source} is on"
        raise InitadvisorError(msg)
    try:
        status = host.path(mount.source).stat()
    except OSError as err:
        msg = f"cannot look at {mount.source}: {err.strerror}"
        raise InitadvisorError(msg) from err
    if not stat.S_ISBLK(status.st_mode):
        msg = f"{mount.source} is no block device"
        raise InitadvisorError(msg)
    return lookup(os.major(status.st_rdev), os.minor(status.st_rdev))
