"""Which file system a path is on, the block device behind it down to its disk, of which kind.

What is mounted is in /proc/self/mountinfo (proc_pid_mountinfo(5)). Only here pyudev is used to
tell of disks. Without /run/udev (in containers) there are no properties; the kernel's attributes
below /sys suffice for all but the type of a partition.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from initadvisor.core.errors import LOADING_FAILURES, InitadvisorError, LibraryError
from initadvisor.host.files import failing_as
from initadvisor.records.storage import Device, DeviceKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyudev

    from initadvisor.host import Host


_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")
_FIELDS_BEFORE_DASH = 6
_FIELDS_AFTER_DASH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted file system; ``major`` is 0 where no block device is directly behind it."""

    mount_point: str
    fs_type: str
    source: str
    major: int
    minor: int


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Read the lines of mountinfo, later mounts last; lines of another form are skipped."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not dash or len(left) < _FIELDS_BEFORE_DASH or len(right) < _FIELDS_AFTER_DASH:
            continue
        major, _, minor = left[2].partition(":")
        if major.isdecimal() and minor.isdecimal():
            mounts.append(
                Mount(
                    mount_point=_unescaped(left[4]),
                    fs_type=right[0],
                    source=_unescaped(right[1]),
                    major=int(major),
                    minor=int(minor),
                )
            )
    return tuple(mounts)


def mount_of(mounts: Sequence[Mount], path: PurePosixPath) -> Mount | None:
    """Return the mount an absolute path without symbolic links is on; the latest of the deepest."""
    latest_first = [m for m in reversed(mounts) if path.is_relative_to(m.mount_point)]
    return max(latest_first, key=lambda m: len(PurePosixPath(m.mount_point).parts), default=None)


def mounts_of_host(host: Host) -> tuple[Mount, ...]:
    """Return what is mounted; nothing where /proc is not."""
    return parse_mountinfo(host.read_text(_MOUNTINFO) or "")


def resolved_path(path: Path) -> Path:
    """Return the path without links, but for those that lead to themselves.

    ``Path.resolve`` raises ``RuntimeError`` for these before Python 3.13.
    """
    return Path(os.path.realpath(path))


def machine_path(host: Host, path: Path) -> PurePosixPath:
    """Return the path as the machine sees it: absolute, resolved, without the host's root.

    A link that leads to itself stays as it is.
    """
    resolved, root = resolved_path(path), resolved_path(host.root)
    if resolved.is_relative_to(root):
        return PurePosixPath("/") / resolved.relative_to(root)
    return PurePosixPath(resolved)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


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


def block_node(major: int, minor: int) -> BlockNode:
    """Return the block device with this number.

    Raises ``InitadvisorError`` where libudev or /sys is missing or does not know the device.
    """
    try:
        import pyudev
    except LOADING_FAILURES as err:
        raise LibraryError(err, "look at disks") from err
    try:
        context = pyudev.Context()
        device = pyudev.Devices.from_device_number(context, "block", os.makedev(major, minor))
        return _node(context, device, depth=0)
    except (ImportError, OSError) as err:
        msg = f"libudev cannot be used: {err}"
        raise InitadvisorError(msg) from err
    except pyudev.DeviceNotFoundError as err:
        msg = f"/sys does not know the block device {major}:{minor}"
        raise InitadvisorError(msg) from err


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
    with failing_as(f"cannot look at {mount.source}"):
        status = host.path(mount.source).stat()
    if not stat.S_ISBLK(status.st_mode):
        msg = f"{mount.source} is no block device"
        raise InitadvisorError(msg)
    return lookup(os.major(status.st_rdev), os.minor(status.st_rdev))


_BUSES = (
    ("nvme", DeviceKind.NVME),
    ("nvme-subsystem", DeviceKind.NVME),
    ("mmc", DeviceKind.SD_EMMC),
    ("usb", DeviceKind.USB),
    ("virtio", DeviceKind.VIRTIO),
)
"""Subsystems of the kernel that settle the kind. ``usb`` and ``virtio`` come before rotation: many
sticks and virtual disks claim to rotate."""

_MOST_LAYERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockNode:
    """A block device as the kernel describes it.

    ``subsystems`` are those of the devices it is attached to, nearest first. ``disk`` is the whole
    disk of a partition. ``parts`` are the devices it is made of (a mapping, an array), ``layer`` in
    one word how. ``partition_type`` is the GUID of its partition table entry, in lower case.
    """

    name: str
    subsystems: tuple[str, ...] = ()
    rotational: bool = False
    model: str | None = None
    disk: BlockNode | None = None
    parts: tuple[BlockNode, ...] = ()
    layer: str | None = None
    partition_type: str | None = None


def device_behind(node: BlockNode) -> Device:
    """Follow mappings and arrays down to the disk; of several disks, the first one is told of."""
    layers: list[str] = []
    names = {disk.name for disk in _disks(node, depth=0)}
    current = node
    while current.parts and len(layers) < _MOST_LAYERS:
        layers.append(current.layer or current.name)
        current = current.parts[0]
    partition = current.name if current.disk else None
    disk = current.disk or current
    kind, reason = _kind(disk)
    if len(names) > 1:
        reason = f"one of several disks: {', '.join(sorted(names))}"
    return Device(
        kind=kind,
        name=disk.name,
        model=disk.model,
        partition=partition,
        layers=tuple(layers),
        reason=reason,
    )


def _kind(disk: BlockNode) -> tuple[DeviceKind, str | None]:
    for bus, kind in _BUSES:
        if bus in disk.subsystems:
            return kind, None
    if disk.rotational and disk.layer is None:
        return DeviceKind.ROTATIONAL, None
    if "ata" in disk.subsystems:
        return DeviceKind.SATA, None
    attached = disk.layer or " on ".join(disk.subsystems) or "no bus"
    return DeviceKind.OTHER, f"attached to {attached}"


def _disks(node: BlockNode, *, depth: int) -> list[BlockNode]:
    if node.parts and depth < _MOST_LAYERS:
        return [disk for part in node.parts for disk in _disks(part, depth=depth + 1)]
    return [node.disk or node]


_MAPPINGS = {"CRYPT": "crypt", "LVM": "lvm", "mpath": "multipath"}
_ATA_PORT = re.compile(r"/ata\d+/")


def _node(context: pyudev.Context, device: pyudev.Device, *, depth: int) -> BlockNode:
    parent = device.parent
    is_partition = device.device_type == "partition" and parent is not None
    subsystems = [ancestor.subsystem for ancestor in device.ancestors if ancestor.subsystem]
    if _ATA_PORT.search(device.sys_path):
        subsystems.append("ata")  # a port is a directory below /sys/devices, but of no subsystem
    return BlockNode(
        name=device.sys_name,
        subsystems=tuple(dict.fromkeys(subsystems)),
        rotational=_attribute(device, "queue/rotational") == "1",
        model=_model(device),
        disk=_node(context, parent, depth=depth + 1) if is_partition else None,
        parts=_parts(context, device, depth=depth),
        layer=_layer(device),
        partition_type=device.properties.get("ID_PART_ENTRY_TYPE"),
    )


def _parts(context: pyudev.Context, device: pyudev.Device, *, depth: int) -> tuple[BlockNode, ...]:
    """Return what a mapping or an array lies on (the directory ``slaves`` of its own in /sys)."""
    import pyudev

    directory = Path(device.sys_path) / "slaves"
    if depth >= _MOST_LAYERS or not directory.is_dir():
        return ()
    return tuple(
        _node(context, pyudev.Devices.from_name(context, "block", part.name), depth=depth + 1)
        for part in sorted(directory.iterdir())
    )


def _layer(device: pyudev.Device) -> str | None:
    """Say in one word what kind of virtual device this is; None for one of hardware.

    The uuid of a mapping starts with the name of who made it (drivers/md/dm-ioctl.c leaves it to
    user space: cryptsetup, lvm2 and multipath-tools do so).
    """
    if uuid := _attribute(device, "dm/uuid"):
        owner = uuid.partition("-")[0]
        return _MAPPINGS.get(owner, owner.lower())
    if level := _attribute(device, "md/level"):
        return level
    if "/virtual/block/" in device.sys_path:
        return str(device.sys_name).rstrip("0123456789")
    return None


def _model(device: pyudev.Device) -> str | None:
    """Return what the disk calls itself; udev knows more of an ATA disk's name than the kernel."""
    if model := device.properties.get("ID_MODEL"):
        return str(model).replace("_", " ").strip()
    return _attribute(device, "device/model") or _attribute(device, "device/name")


def _attribute(device: pyudev.Device, name: str) -> str | None:
    value: bytes = device.attributes.get(name, b"")
    text = value.decode(errors="replace").strip()
    return text or None
