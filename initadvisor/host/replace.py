"""A file's content replaced, with everything else about the file kept; what cannot be replaced."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from pathlib import Path
from typing import IO, Final

from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.host.files import PARTIAL_PREFIX, opened, whole_file


def replace_file(path: Path, content: bytes, *, prefix: str = PARTIAL_PREFIX) -> None:
    """Have a file hold ``content``, or make it; owner, mode, ACLs and extended attributes stay.

    At every moment, also after a power cut, it holds the old content or the new one; ``prefix`` as
    in ``whole_file``. Raises ``UnsafeError`` where the name is a symbolic link, a hard link or no
    ordinary file, since others would not see the change, and ``InitadvisorError`` where it cannot
    be written.
    """
    try:
        try:
            status = path.lstat()
        except FileNotFoundError:
            with whole_file(path, prefix=prefix) as file:
                file.write(content)
            return
        require_plain(path, status)
        mode = stat.S_IMODE(status.st_mode)
        with whole_file(path, mode=mode, prefix=prefix) as file:
            file.write(content)
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
            copy_attributes(path, file)
    except OSError as err:
        raise file_error(err, f"cannot write {path}") from err


def require_plain(path: Path, status: os.stat_result) -> None:
    """Raise ``UnsafeError`` for what is not one ordinary file under one name."""
    if not stat.S_ISREG(status.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no ordinary file"
        msg = f"not replacing {path}: it is {what}"
        raise UnsafeError(msg, hint="have an ordinary file there, or change it by hand")
    if status.st_nlink > 1:
        msg = f"not replacing {path}: it has {status.st_nlink} names (hard links)"
        hint = "the other names would keep the old content: have it be a file of its own"
        raise UnsafeError(msg, hint=hint)


def copy_attributes(path: Path, file: IO[bytes]) -> None:
    """Give a file the extended attributes of another, which ACLs and security labels are, too.

    An ACL that a new file has from its directory would let others read it: what the other one does
    not have is removed, but for security labels, which the policy gives. A file system without any
    (vfat) says ENOTSUP or lists none. Any other ``OSError`` is raised: going on would lose them.
    """
    wanted = _attributes(path)
    for name in wanted:
        os.setxattr(file.fileno(), name, os.getxattr(path, name))
    for name in _attributes(file.fileno()):
        if name not in wanted and not name.startswith("security."):
            os.removexattr(file.fileno(), name)


def _attributes(what: Path | int) -> list[str]:
    try:
        return os.listxattr(what)
    except OSError as err:
        if err.errno != errno.ENOTSUP:
            raise
        return []


_GETFLAGS: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("f") << 8 | 1
"""FS_IOC_GETFLAGS of linux/fs.h; architectures that number it otherwise do not know this one."""

_LETTERS: Final = {0x10: "i", 0x20: "a"}
"""FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h, as chattr(1) calls them."""


def forbidding_attribute(path: Path) -> str:
    """Return the letter of the attribute that keeps a file from being changed or replaced.

    "" where there is none, or where the file system has no attributes or nobody may ask.
    """
    try:
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return ""  # opening a device may do something
        with opened(path, os.O_NONBLOCK | os.O_NOFOLLOW) as descriptor:
            answer = fcntl.ioctl(descriptor, _GETFLAGS, bytes(struct.calcsize("l")))
    except OSError:
        return ""
    (flags,) = struct.unpack_from("I", answer)
    return next((letter for flag, letter in _LETTERS.items() if flags & flag), "")


def require_changeable(path: Path) -> None:
    """Raise ``UnsafeError`` where its attribute, or its directory's, forbids to replace a file."""
    for place in (path, path.parent):
        if letter := forbidding_attribute(place):
            msg = f"cannot change {path}: {_why(place, letter)}"
            raise UnsafeError(msg, hint=_way_out(place, letter))


def file_error(err: OSError, what: str) -> InitadvisorError:
    """Return the error for a file operation that failed; ``what`` was attempted.

    ``NeedsRootError`` only for who is not root: for root it is an attribute that forbids it, or
    something that nobody can tell from the error.
    """
    message = f"{what}: {err.strerror or err}"
    if isinstance(err, PermissionError) and os.geteuid() != 0:
        return NeedsRootError(message)
    return InitadvisorError(message, hint=hint_for(err))


def hint_for(err: OSError) -> str | None:
    """Return what root can do about an operation that was not permitted (EPERM), if anything."""
    if err.errno != errno.EPERM or os.geteuid() != 0:
        return None
    # A rename names what is replaced second, and that is what matters.
    named = [Path(name) for name in (err.filename2, err.filename) if isinstance(name, str | Path)]
    places = dict.fromkeys([*named, *(path.parent for path in named)])
    for place in places:
        if letter := forbidding_attribute(place):
            return f"{_why(place, letter)}; {_way_out(place, letter)}"
    shows = " ".join(["lsattr -d", *map(str, places)])
    return f"{shows} shows what is immutable (i) or append-only (a), and chattr -i or -a ends that"


def _why(place: Path, letter: str) -> str:
    return f"{place} is {'immutable' if letter == 'i' else 'append-only'}, as lsattr -d shows"


def _way_out(place: Path, letter: str) -> str:
    return f"chattr -{letter} {place} ends that"
