"""Block devices as udev and the kernel describe them: the only place that knows pyudev.

Without /run/udev (in containers) there are no properties, but the kernel's attributes below /sys
suffice for everything except the type of a partition.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.model.errors import InitadvisorError
from initadvisor.storage.block import BlockNode

if TYPE_CHECKING:
    import pyudev

_DEEPEST = 8
_MAPPINGS = {"CRYPT": "crypt", "LVM": "lvm", "mpath": "multipath"}
_ATA_PORT = re.compile(r"/ata\d+/")


def block_node(major: int, minor: int) -> BlockNode:
    """Return the block device with this number.

    Raises ``InitadvisorError`` where libudev or /sys is missing or does not know the device.
    """
    import pyudev

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
    if depth >= _DEEPEST or not directory.is_dir():
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
