"""Which file of this machine a loader's path means, and the other way round.

A loader knows no mount points: its paths begin at the root of a file system. Both ways are
refused where the file is not there, so that a bind mount or a subvolume cannot mislead.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.host.files import failing_as, open_regular, os_failure
from initadvisor.host.storage.mounts import Mount, machine_path, mount_of, mounts_of_host

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host


_PLAIN = re.compile(r"/[A-Za-z0-9._/+@-]+", re.ASCII)
"""What every loader reads as it is written, and vfat takes as a name."""

_LARGEST_BYTES = 4 << 20
"""A menu of a thousand entries is 1 MiB."""


def file_named(host: Host, named: str, mount_point: str) -> str | None:
    """Return the path of the file that a loader's path means on a file system.

    None where there is no such file. Case does not count on vfat, and a backslash is a slash to
    EFI: the kernel's own vfat sees to the one, this to the other.
    """
    tail = named.replace("\\", "/").lstrip("/")
    path = str(PurePosixPath(mount_point) / tail)
    there = is_file(host, path) and file_system_of(host, path).mount_point == mount_point
    return path if there else None


def loader_path(host: Host, path: str, mount_point: str) -> str:
    """Return a path of this machine as a loader is told it, which begins at ``mount_point``.

    Raises ``UnsafeError`` where the file is not there, is on another file system, or has a name
    that not every loader reads as it is.
    """
    if not is_file(host, path):
        msg = f"cannot have a loader read {path}: no such file"
        raise UnsafeError(msg)
    if file_system_of(host, path).mount_point != mount_point:
        msg = f"cannot have the loader read {path}: it looks for images in {mount_point} only"
        raise UnsafeError(msg, hint=f"put the image below {mount_point}")
    named = "/" + str(machine_path(host, host.path(path)).relative_to(mount_point))
    if not _PLAIN.fullmatch(named):
        msg = f"cannot have a loader read {path}: only letters, digits and ._+@- may be in its name"
        raise UnsafeError(msg)
    return named


def is_file(host: Host, path: str) -> bool:
    """Tell whether an ordinary file is there; raises ``NeedsRootError`` where only root may.

    What no file can be called (an entry may hold a NUL) is not there.
    """
    try:
        return stat.S_ISREG(host.path(path).stat().st_mode)
    except PermissionError as err:
        raise os_failure(err, f"cannot look at {host.path(path)}", only_root=True) from err
    except (OSError, ValueError):
        return False


def read_bytes(path: Path) -> bytes | None:
    """Return a small file's content, None where there is none.

    Raises ``NeedsRootError`` where only root may read it, else ``InitadvisorError``, also for what
    is larger than 4 MiB or would never end (``open_regular``).
    """
    try:
        path.stat()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise os_failure(err, f"cannot read {path}", only_root=True) from err
    with open_regular(path) as file, failing_as(f"cannot read {path}", only_root=True):
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        msg = f"cannot read {path}: larger than {_LARGEST_BYTES} bytes"
        raise InitadvisorError(msg, hint="no boot loader needs so much: restore or remove it")
    return content


def require_writable(host: Host, directory: str) -> None:
    """Raise ``RefusedError`` where a directory is not there or on a read-only file system."""
    try:
        read_only = os.statvfs(host.path(directory)).f_flag & os.ST_RDONLY
    except OSError as err:
        reason = f"{directory} cannot be looked at: {err.strerror}"
        raise refused(RefusalKind.READ_ONLY, reason, "is the boot partition mounted?") from err
    if read_only:
        reason = f"{directory} is on a file system that is mounted read-only"
        raise refused(RefusalKind.READ_ONLY, reason, "mount it read-write")


def mount_of_partition(host: Host, partition_uuid: str) -> Mount | None:
    """Return where a GPT partition is mounted, None where it is not or udev does not know it."""
    name = device_of_partition(host, partition_uuid)
    found = [
        mount
        for mount in mounts_of_host(host)
        if name and mount.source.rpartition("/")[2] == name and mount.fs_type != "autofs"
    ]
    return found[-1] if found else None


def device_of_partition(host: Host, partition_uuid: str) -> str | None:
    """Return the name of a GPT partition's device (``nvme0n1p1``)."""
    link = host.path(f"/dev/disk/by-partuuid/{partition_uuid.lower()}")
    try:
        return link.readlink().name
    except OSError:
        return None


def file_system_of(host: Host, path: str) -> Mount:
    """Return the file system that a path of this machine is on.

    Raises ``InitadvisorError`` where /proc/self/mountinfo does not tell.
    """
    mount = mount_of(mounts_of_host(host), machine_path(host, host.path(path)))
    if mount is None:
        msg = f"/proc/self/mountinfo does not tell what {path} is on"
        raise InitadvisorError(msg)
    return mount


def disk_and_part(host: Host, device: str) -> tuple[str, int]:
    """Return the disk and the number of a partition, as the kernel lists them below /sys.

    Raises ``InitadvisorError`` where it does not.
    """
    partition = host.path(f"/sys/class/block/{device}")
    number = host.read_text(f"/sys/class/block/{device}/partition")
    if number is None or not number.strip().isdecimal():
        msg = f"cannot tell which disk /dev/{device} is on: {partition} is no partition"
        raise InitadvisorError(msg)
    return f"/dev/{partition.resolve().parent.name}", int(number)
