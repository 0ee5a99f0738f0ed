"""What a transaction does to one file, and how what goes wrong with it is told."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from enum import StrEnum
from typing import IO, TYPE_CHECKING, TypeAlias

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import (
    append_range,
    open_regular,
    remove_durably,
    sha256_of,
    sync_directory,
    sync_new,
)
from initadvisor.host.owner import owner_of_host, owner_of_name
from initadvisor.host.replace import copy_attributes, hint_for, require_plain
from initadvisor.host.storage.mounts import machine_path, mount_of, mounts_of_host
from initadvisor.transaction.transaction import Content, FileIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange, Transaction


NewContent: TypeAlias = "bytes | Callable[[Path], None]"
"""What a file is to hold, or who makes it: called with a path where nothing is yet."""

_HAVE_LINKS = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs"})
_RECORDS = "transactions/ in the state directory"
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


class Holding(StrEnum):
    """What is found under the name of a file."""

    OLD = "old"
    NEW = "new"
    OTHER = "other"


def has_links(host: Host, directory: Path) -> bool:
    """Tell whether a file system keeps inodes, so that hard links work and numbers stay."""
    mount = mount_of(mounts_of_host(host), machine_path(host, directory))
    return mount is not None and mount.fs_type in _HAVE_LINKS


def own_mount_point(host: Host, directory: Path) -> str:
    """Return where the file system of a directory is mounted, "" where it is the root's.

    Sandboxes mount parts of it again (ReadWritePaths= in systemd.exec(5)): the first one counts.
    """
    mounts = mounts_of_host(host)
    mount = mount_of(mounts, machine_path(host, directory))
    if mount is None:
        return ""
    device = (mount.major, mount.minor)
    points = [m.mount_point for m in mounts if (m.major, m.minor) == device]
    point = min(points, key=len)
    return "" if point == "/" else point


def require_mounted(host: Host, transaction: Transaction) -> None:
    """Raise ``UnsafeError`` where a file's file system is not mounted.

    What is seen without it is an empty directory, of which nothing can be told.
    """
    points = {mount.mount_point for mount in mounts_of_host(host)}
    for change in transaction.files:
        if not change.mount_point or change.mount_point in points:
            continue
        if not points:
            msg = "cannot find out what is mounted"
            raise InitadvisorError(msg, hint="look at /proc/self/mountinfo")
        msg = f"not touching {change.path}: nothing is mounted on {change.mount_point}"
        raise UnsafeError(msg, hint="mount it, then try again")


def require_own(host: Host, transaction: Transaction) -> None:
    """Raise ``UnsafeError`` where a record names files of another system than this one.

    Both may see those files: the record came here with a copy of the other system's disk, or of
    this one's from before it got another machine ID.
    """
    owner = owner_of_host(host)
    for change in transaction.files:
        if owner_of_name(change.staged) != owner:
            msg = f"not following the record of transaction {transaction.number}: {change.staged} "
            msg += f"belongs to another system than this one, which is {owner}"
            hint = f"move the record away ({_RECORDS}), or give this system its machine ID back"
            raise UnsafeError(msg, hint=hint)


def identity(path: Path, *, inodes: bool) -> FileIdentity | None:
    """Return what a file is, None where there is none; raises ``UnsafeError`` for links."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    require_plain(path, status)
    with open_regular(path) as file:
        held = Content(size_bytes=status.st_size, sha256=sha256_of(file))
    return FileIdentity(
        content=held,
        inode=status.st_ino if inodes else None,
        mtime_ns=status.st_mtime_ns if inodes else None,
    )


def content(path: Path) -> Content | None:
    """Return what an ordinary file holds, read from the device; None for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
    except FileNotFoundError:
        return None
    with open_regular(path) as file:
        # What the page cache holds is not yet what the disk holds.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return Content(
            size_bytes=os.fstat(file.fileno()).st_size, sha256=sha256_of(file, once=True)
        )


def holding(host: Host, change: FileChange) -> Holding:
    """Tell what the file holds now; new and old, where they are the same, count as old."""
    path = host.path(change.path)
    held, old = content(path), change.before and change.before.content
    if held == old and (held is not None or not is_there(path)):
        return Holding.OLD
    return Holding.NEW if held is not None and held == change.after else Holding.OTHER


def stage(host: Host, change: FileChange, new: NewContent) -> Content:
    """Have the new content on the disk under its staging name, and return what it is."""
    path = host.path(change.staged)
    if isinstance(new, bytes):
        with _created(path) as file:
            _write(file, new)
    else:
        new(path)
    with opened(path) as file:
        dress(host, change, file)
        sync_new(file, path.parent)
        size_bytes = os.fstat(file.fileno()).st_size
        digest = sha256_of(file)
    sync_directory(path.parent)
    return Content(size_bytes=size_bytes, sha256=digest)


def copy(source: Path, target: Path) -> None:
    """Have ``target``, where nothing is yet, hold what ``source`` holds; see ``NewContent``."""
    with open_regular(source) as old, _created(target) as new:
        append_range(new, old, offset=0, size_bytes=os.fstat(old.fileno()).st_size)


def dress(host: Host, change: FileChange, file: IO[bytes]) -> None:
    """Give a file owner, mode, ACLs and attributes of the one that it is to replace."""
    target = host.path(change.path)
    if change.before is None:
        os.fchmod(file.fileno(), change.mode)
        return
    _dress_like(target, file)


def _dress_like(model: Path, file: IO[bytes]) -> None:
    status = model.lstat()
    now = os.fstat(file.fileno())
    if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(file.fileno(), status.st_uid, status.st_gid)
    if stat.S_IMODE(now.st_mode) != stat.S_IMODE(status.st_mode):
        os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
    copy_attributes(model, file)


def require_staged(host: Host, change: FileChange) -> None:
    """Read the staged content from the device; raises ``UnsafeError`` where it is not whole."""
    if content(host.path(change.staged)) != change.after:
        msg = f"what the disk holds in {change.staged} is not what was written"
        raise UnsafeError(msg, hint="the disk or its file system may be failing")


def back_up(host: Host, change: FileChange) -> None:
    """Keep the old content under its own name: as a hard link, or where there are none as a copy.

    Whatever stands there already is of an earlier try and is made anew.
    """
    if change.backup is None or change.before is None:
        return
    target, backup = host.path(change.path), host.path(change.backup)
    with contextlib.suppress(FileNotFoundError):
        remove_durably(backup)
    try:
        os.link(target, backup, follow_symlinks=False)
    except OSError as err:
        if err.errno not in _NO_LINKS:
            raise
        copy_of(target, backup)
    sync_directory(backup.parent)
    if content(backup) != change.before.content:
        msg = f"the copy of {change.path} in {change.backup} is not what was copied"
        raise InitadvisorError(msg, hint="the disk or its file system may be failing")


def copy_of(source: Path, target: Path) -> None:
    """Have ``target``, where nothing is yet, be a synced copy with owner, mode and attributes."""
    with open_regular(source) as old, _created(target) as file:
        size_bytes = os.fstat(old.fileno()).st_size
        append_range(file, old, offset=0, size_bytes=size_bytes)
        _dress_like(source, file)
        sync_new(file, target.parent)


def is_kept(host: Host, change: FileChange) -> bool:
    """Tell whether what the file held before can be given back."""
    if change.before is None:
        return True
    return change.backup is not None and (
        content(host.path(change.backup)) == change.before.content
    )


def contents(change: FileChange) -> list[Content]:
    """Return what a file may hold while it is being replaced: old and new, as far as known."""
    old = [change.before.content] if change.before else []
    return [*old, *([change.after] if change.after else [])]


def is_emptied(host: Host, change: FileChange) -> bool:
    """Tell whether a file that is being replaced is empty, which neither content of it is.

    fsck.fat(8) does that where a power cut left it the same clusters as a name of ours; elsewhere
    somebody has emptied it to write into it.
    """
    path = host.path(change.path)
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if has_links(host, path.parent):
        return False
    is_never_empty = all(held.size_bytes > 0 for held in contents(change))
    return is_never_empty and stat.S_ISREG(status.st_mode) and status.st_size == 0


def is_there(path: Path) -> bool:
    """Tell whether there is anything; ``os.path.lexists`` takes an error for nothing."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _created(path: Path) -> Iterator[IO[bytes]]:
    """Make a file that only its owner may read: images hold keys of encrypted disks."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        yield file


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open an ordinary file that has one name, for reading and writing."""
    require_plain(path, path.lstat())
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        yield file


def _write(file: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file.fileno(), left) :]


@contextlib.contextmanager
def explained(action: str) -> Iterator[None]:
    """Have an ``OSError`` say what was attempted and on what, as an ``InitadvisorError``."""
    try:
        yield
    except OSError as err:
        name = err.filename2 or err.filename  # of a rename, the file that is replaced
        where = f" ({name})" if name else ""
        msg = f"cannot {action}{where}: {err.strerror or err}"
        raise InitadvisorError(msg, hint=hint_for(err)) from err


def changed_meanwhile(change: FileChange) -> UnsafeError:
    """Return what to raise where a file is neither what it was nor what it was to be."""
    msg = f"not replacing {change.path}: it was changed meanwhile, not by this program"
    return UnsafeError(msg, hint="begin again, from what is there now")
