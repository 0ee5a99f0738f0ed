"""The disk that the image is read from: its free room, and how fast it is read cold.

The speed is measured once for each file and boot of this machine; what was measured beside other
work, once more when the machine is quiet.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import side_fact
from initadvisor.core.estimates import Estimate
from initadvisor.core.text import shown
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.files import failing_as, free_bytes
from initadvisor.host.load import is_quiet
from initadvisor.host.storage.boot_partition import boot_partition
from initadvisor.host.storage.cold_read import cold_read
from initadvisor.host.storage.link import link_mb_s
from initadvisor.host.storage.mounts import device_of
from initadvisor.records.storage import ColdRead, ReadWarning

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.records.storage import BootPartition


_ASSUMED_MB_S = 300.0
_ASSUMED_FACTOR = 5.0
_NO_SPEED = {ReadWarning.CACHED, ReadWarning.IMPLAUSIBLE, ReadWarning.SHORT}
"""With these, what was measured is not how fast the device reads."""

_DISKLESS_MB_S = 3000.0
"""A file system without a disk that is read faster than this is in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Where the image is: the device, its speed under Linux, the room, and what is doubtful.

    ``link_mb_s``: what the link to the device carries, where the kernel tells. ``free_bytes`` and
    ``room_on`` are None where the room for images cannot be found out. ``speed_warnings``: what
    makes ``read_mb_s`` doubtful; ``warnings``: the rest.
    """

    device: str
    kind: str
    read_mb_s: Estimate
    free_bytes: int | None
    room_on: str | None
    link_mb_s: float | None = None
    speed_warnings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def examine_disk(host: Host, image: Path, *, sample: bool) -> Disk:
    """Measure how fast ``image`` is read cold, and find the room images have on this machine.

    For a sample, which stands in for an image on the boot partition, the room is that of the
    latter. Where no honest cold read is possible, a speed is assumed and called so.
    """
    gaps: list[str] = []
    speed_gaps: list[str] = []
    room = "the room for images"
    partition = side_fact(lambda: boot_partition(host, None if sample else image), room, gaps)
    read = side_fact(lambda: known_cold_read(host, image), "the disk's speed", speed_gaps)
    device = read.device if read else device_of(host, image)
    speed, warnings = _speed(read) if read else (_assumed(speed_gaps[-1]), ())
    return Disk(
        device=device.name or "unknown",
        kind=device.kind,
        read_mb_s=speed,
        free_bytes=side_fact(lambda: _free(partition, image), room, gaps) if partition else None,
        room_on=partition.mount_point if partition else None,
        link_mb_s=link_mb_s(host, device.name) if device.name else None,
        speed_warnings=(*speed_gaps, *warnings),
        warnings=tuple(gaps),
    )


def _speed(read: ColdRead) -> tuple[Estimate, tuple[str, ...]]:
    diskless = ReadWarning.NO_DEVICE in read.warnings
    in_memory = diskless and read.speed_mb_s.mean > _DISKLESS_MB_S
    if not in_memory and _NO_SPEED.isdisjoint(read.warnings):
        doubts = tuple(f"the read speed: {warning}" for warning in read.warnings)
        return read.speed_mb_s, doubts
    why = "; ".join(read.warnings)
    return _assumed(why), (f"the disk's speed could not be measured: {why}",)


def _assumed(why: str) -> Estimate:
    return Estimate(
        mean=_ASSUMED_MB_S,
        low=_ASSUMED_MB_S / _ASSUMED_FACTOR,
        high=_ASSUMED_MB_S * _ASSUMED_FACTOR,
        source=f"assumed, not measured: {why}",
    )


def _free(partition: BootPartition, image: Path) -> int:
    if partition.free_bytes is not None:
        return partition.free_bytes
    with failing_as(f"cannot find out how much room {image.parent} has"):
        return free_bytes(image.parent)


_LEAST_MB_S, _MOST_MB_S = 1e-4, 1e6
"""No device is slower or faster."""


def known_cold_read(host: Host, image: Path) -> ColdRead:
    """Return what cold reads of this file gave since the machine was booted, or read it now.

    Raises what ``cold_read`` does.
    """
    record = _record(host, image)
    known = _load(host, image, record) if record else None
    if known and not (ReadWarning.BUSY in known.warnings and is_quiet(host)):
        return known
    read = cold_read(host, image)
    if record:
        kept = _KeptRead(
            speed_mb_s=read.speed_mb_s, samples_mb_s=read.samples_mb_s, warnings=read.warnings
        )
        keep(record, kept, what="the read speed")
    return read


def _record(host: Host, image: Path) -> Path | None:
    """Return where the figures of the file as it is now are kept, None where that cannot be."""
    boot_id = host.read_text("/proc/sys/kernel/random/boot_id")
    try:
        stat = image.stat()
    except OSError:
        return None
    if boot_id is None:
        return None
    made_of = (boot_id, str(image), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]
    return host.cache_dir() / "read" / f"{key}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptRead:
    speed_mb_s: Estimate
    samples_mb_s: tuple[float, ...]
    warnings: tuple[ReadWarning, ...]


def _load(host: Host, image: Path, record: Path) -> ColdRead | None:
    kept = read_cached(record, _KeptRead)
    if kept is None:
        return None
    speed, samples = kept.speed_mb_s, kept.samples_mb_s
    in_order = _LEAST_MB_S <= speed.low <= speed.mean <= speed.high <= _MOST_MB_S
    if not in_order or min(samples, default=1.0) <= 0:
        return None
    return ColdRead(
        speed_mb_s=replace(speed, source=shown(speed.source)),
        samples_mb_s=samples,
        device=device_of(host, image),
        warnings=kept.warnings,
    )
