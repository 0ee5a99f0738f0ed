"""The disk the image is read from, and the room on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.host.files import free_bytes
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.estimate import Estimate
from initadvisor.model.storage import ReadWarning
from initadvisor.storage.boot import boot_partition
from initadvisor.workflow.read_speed import known_cold_read

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.storage import BootPartition, ColdRead

_ASSUMED_MB_S = 300.0
_ASSUMED_FACTOR = 5.0
_NO_SPEED = {ReadWarning.CACHED, ReadWarning.IMPLAUSIBLE, ReadWarning.SHORT}
"""With these, what was measured is not how fast the device reads."""

_DISKLESS_MB_S = 3000.0
"""A file system without a disk that is read faster than this is in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Where the image is: the device, its speed under Linux, the room, and what is doubtful."""

    device: str
    kind: str
    read_mb_s: Estimate
    free_bytes: int
    room_on: str
    warnings: tuple[str, ...] = ()


def examine_disk(host: Host, image: Path, *, sample: bool) -> Disk:
    """Measure how fast ``image`` is read cold, and find the room images have on this machine.

    For a sample, which stands in for an image on the boot partition, the room is that of the
    latter. Where no honest cold read is possible, a speed is assumed and called so.
    """
    partition = boot_partition(host, None if sample else image)
    read = known_cold_read(host, image)
    speed, warnings = _speed(read)
    return Disk(
        device=read.device.name or "unknown",
        kind=read.device.kind,
        read_mb_s=speed,
        free_bytes=_free(partition, image),
        room_on=partition.mount_point,
        warnings=warnings,
    )


def _speed(read: ColdRead) -> tuple[Estimate, tuple[str, ...]]:
    diskless = ReadWarning.NO_DEVICE in read.warnings
    in_memory = diskless and read.speed_mb_s.mean > _DISKLESS_MB_S
    if not in_memory and _NO_SPEED.isdisjoint(read.warnings):
        doubts = tuple(f"the read speed: {warning}" for warning in read.warnings)
        return read.speed_mb_s, doubts
    why = "; ".join(read.warnings)
    assumed = Estimate(
        mean=_ASSUMED_MB_S,
        low=_ASSUMED_MB_S / _ASSUMED_FACTOR,
        high=_ASSUMED_MB_S * _ASSUMED_FACTOR,
        source=f"assumed, not measured: {why}",
    )
    return assumed, (f"the disk's speed could not be measured: {why}",)


def _free(partition: BootPartition, image: Path) -> int:
    if partition.free_bytes is not None:
        return partition.free_bytes
    try:
        return free_bytes(image.parent)
    except OSError as err:
        msg = f"cannot find out how much room {image.parent} has: {err.strerror}"
        raise InitadvisorError(msg) from err
