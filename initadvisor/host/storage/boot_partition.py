"""The file system that images are on (ESP, XBOOTLDR, /boot or root), and the name of its disk.

The name stays the same from boot to boot.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.host.storage.mounts import (
    Lookup,
    Mount,
    block_node,
    device_of_mount,
    machine_path,
    mount_of,
    mounts_of_host,
    node_of_mount,
)
from initadvisor.records.storage import BootPartition, BootRole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host


_ESP_POINTS = ("/efi", "/boot/efi")
_PARTITION_ROLES = {
    "c12a7328-f81f-11d2-ba4b-00a0c93ec93b": BootRole.ESP,
    "bc13c2ff-59e6-4262-a352-b275fd6f7172": BootRole.XBOOTLDR,
}
"""Partition types of the UEFI and the boot loader specification."""

_BOOTCTL_TIMEOUT_S = 5


def boot_partition(
    host: Host, image: Path | None = None, *, lookup: Lookup = block_node
) -> BootPartition:
    """Return the file system that holds ``image``, or that would hold images if there were any.

    Raises ``InitadvisorError`` where that cannot be told at all.
    """
    directory = machine_path(host, image.parent if image else _image_directory(host))
    _trigger_automount(host, directory)
    mounts = mounts_of_host(host)
    mount = mount_of(mounts, directory)
    if mount is None:
        msg = f"/proc/self/mountinfo does not tell what {directory} is on"
        raise InitadvisorError(msg)
    size_bytes, free_bytes = _room(host, directory)
    return BootPartition(
        role=_role(host, mount, mounts, lookup),
        mount_point=mount.mount_point,
        directory=str(directory),
        fs_type=mount.fs_type,
        device=device_of_mount(host, mount, lookup=lookup),
        size_bytes=size_bytes,
        free_bytes=free_bytes,
    )


def _image_directory(host: Host) -> Path:
    """Return where kernel-install puts images: on the ESP where it has a directory, else /boot."""
    token = host.read_text("/etc/kernel/entry-token") or host.read_text("/etc/machine-id") or ""
    for point in ("/boot", *_ESP_POINTS):
        with contextlib.suppress(OSError):
            if token.strip() and host.path(f"{point}/{token.strip()}").is_dir():
                return host.path(point)
            if any(host.path(f"{point}/EFI/Linux").glob("*.efi")):
                return host.path(point)
    return host.path("/boot")


def _trigger_automount(host: Host, directory: PurePosixPath) -> None:
    """Have an automount point mounted: opening a directory does, looking at it does not."""
    with contextlib.suppress(OSError):
        os.close(os.open(host.path(str(directory)), os.O_RDONLY | os.O_DIRECTORY))


def _role(host: Host, mount: Mount, mounts: Sequence[Mount], lookup: Lookup) -> BootRole:
    """Return what the partition table says, and where it says nothing, what the mount looks like.

    Without udev's data base (and on disks that have no GPT) partition types are not known.
    """
    if mount.mount_point == "/":
        return BootRole.ROOT
    with contextlib.suppress(InitadvisorError):
        node = node_of_mount(host, mount, lookup=lookup)
        if role := _PARTITION_ROLES.get(node.partition_type or ""):
            return role
    if mount.fs_type != "vfat":
        holds_boot = PurePosixPath(mount.mount_point).is_relative_to("/boot")
        return BootRole.BOOT if holds_boot else BootRole.ELSEWHERE
    if mount.mount_point in _ESP_POINTS or mount.mount_point == _esp_by_bootctl(host):
        return BootRole.ESP
    other_esp = any(other.mount_point in _ESP_POINTS for other in mounts)
    return BootRole.XBOOTLDR if other_esp else BootRole.ESP


def _esp_by_bootctl(host: Host) -> str | None:
    """Ask bootctl(1), which finds an ESP that is mounted elsewhere, but may not know it either."""
    with contextlib.suppress(InitadvisorError):
        completed = host.runner.run(
            ["bootctl", "--print-esp-path"], timeout_s=_BOOTCTL_TIMEOUT_S, check=False
        )
        return completed.stdout.decode(errors="replace").strip() or None
    return None


def _room(host: Host, directory: PurePosixPath) -> tuple[int | None, int | None]:
    """Return the size of the file system and what is free for this user, in bytes."""
    try:
        room = os.statvfs(host.path(str(directory)))
    except OSError:
        return None, None
    return room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize


_SECTOR_BYTES = 512
"""The unit of sizes below /sys, whatever the disk's own sectors are."""


def boot_disk(host: Host, file: Path) -> str | None:
    """Return model and size of the disk, None where it has no such description below /sys.

    That is so for device mapper, arrays, and file systems with device numbers of their own
    (btrfs). Names like sda are no help: they change.
    """
    try:
        device = file.stat().st_dev
        node = host.path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    except OSError:
        return None
    disk = node.parent if (node / "partition").exists() else node
    model, sectors = (_line(disk / name) for name in ("device/model", "size"))
    if model is None or sectors is None or not sectors.isdecimal():
        return None
    return f"{model}, {int(sectors) * _SECTOR_BYTES / 1e9:.1f} GB"


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
