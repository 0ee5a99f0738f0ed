"""From a block device down to its disk, and what kind of disk that is."""

from __future__ import annotations

from dataclasses import dataclass

from initadvisor.model.storage import Device, DeviceKind

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
