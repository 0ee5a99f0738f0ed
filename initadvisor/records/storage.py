"""What images are kept on: the partition, the device, how fast it is read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.estimates import Estimate


class DeviceKind(StrEnum):
    """How a disk is attached, or that it rotates: what its speed depends on most."""

    NVME = "nvme"
    SATA = "sata"
    USB = "usb"
    SD_EMMC = "sd/emmc"
    ROTATIONAL = "rotational"
    VIRTIO = "virtio"
    OTHER = "other"
    """A disk of none of these kinds (SAS, another hypervisor's, a RAM disk)."""
    NONE = "none"
    """No block device: overlay, tmpfs, a network file system."""
    UNKNOWN = "unknown"
    """There may be one, but it cannot be found out."""

    @property
    def plausible_mb_s(self) -> float | None:
        """Above this many MB/s a read of such a device was not cold; None: no bound is known.

        Bounds of the interfaces: four lanes of PCIe 5.0 15.8 GB/s, SATA 6 Gbit/s, USB 3.2 Gen 2x2
        20 Gbit/s, UHS-III 624 MB/s; disks that rotate are not faster than SATA.
        """
        return _PLAUSIBLE_MB_S.get(self)


_PLAUSIBLE_MB_S = {
    DeviceKind.NVME: 16_000.0,
    DeviceKind.SATA: 600.0,
    DeviceKind.USB: 2_500.0,
    DeviceKind.SD_EMMC: 650.0,
    DeviceKind.ROTATIONAL: 600.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The disk behind a path.

    ``name`` is that of the disk, ``partition`` that of the partition the path is on (``nvme0n1p2``;
    None where the disk has none). ``layers`` are what lies between the two, nearest to the file
    first: ``crypt``, ``lvm``, ``raid1``. ``reason`` says why the kind is ``none``, ``unknown`` or
    not the whole truth.
    """

    kind: DeviceKind
    name: str | None = None
    model: str | None = None
    partition: str | None = None
    layers: tuple[str, ...] = ()
    reason: str | None = None

    def describe(self) -> str:
        """Return it in words: ``Samsung SSD 980 (nvme, through crypt and lvm)``."""
        through = f", through {' and '.join(self.layers)}" if self.layers else ""
        if self.name is None:
            return f"{self.kind} ({self.reason})" if self.reason else self.kind.value
        return f"{self.model or self.name} ({self.kind}{through})"


class BootRole(StrEnum):
    """What the file system is that the images are on."""

    ESP = "ESP"
    XBOOTLDR = "XBOOTLDR"
    BOOT = "/boot"
    """A file system of its own, of no type that firmware or the boot loader specification knows."""
    ROOT = "root"
    """A directory of the root file system."""
    ELSEWHERE = "elsewhere"
    """Another file system, which no image of this machine is booted from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootPartition:
    """The file system that holds the images.

    ``mount_point`` is where it is mounted, ``directory`` where in it the images are.
    ``free_bytes`` is the room that is left, None where it cannot be found out; ``size_bytes`` the
    size of the file system.
    """

    role: BootRole
    mount_point: str
    directory: str
    fs_type: str
    device: Device
    size_bytes: int | None
    free_bytes: int | None


class ReadWarning(StrEnum):
    """Why a read speed may not be that of the device."""

    CACHED = "part of the file stayed in memory, so the reads were not cold"
    IMPLAUSIBLE = "faster than such a device can be: something between it and the file caches"
    FIRST_SLOWER = "the first read was much slower: the disk or what is behind it caches, too"
    VIRTUAL = "a virtual disk: what the hypervisor keeps in memory is read from there"
    NO_DEVICE = "no disk is behind this file system"
    BUSY = "other programs used the disk or all processors meanwhile"
    SHORT = "the file is short: its speed is mostly the time of a single access"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdRead:
    """How fast a file was read cold.

    ``speed_mb_s`` in 10^6 bytes/s, with the 95 % interval of a single such read;
    ``samples_mb_s`` the reads it rests on.
    """

    speed_mb_s: Estimate
    samples_mb_s: tuple[float, ...]
    device: Device
    warnings: tuple[ReadWarning, ...] = ()
