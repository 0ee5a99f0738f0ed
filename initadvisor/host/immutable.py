"""What not even root may change: files and directories with the attribute i or a of chattr(1)."""

from __future__ import annotations

import errno
import os
import stat
import struct
from pathlib import Path
from typing import Final

from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError

_GETFLAGS: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("f") << 8 | 1
"""FS_IOC_GETFLAGS of linux/fs.h; architectures that number it otherwise do not know this one."""

_LETTERS: Final = {0x10: "i", 0x20: "a"}
"""FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h, as chattr(1) calls them."""


def forbidding_attribute(path: Path) -> str:
    """Return the letter of the attribute that keeps a file from being changed or replaced.

    "" where there is none, or where the file system has no attributes or nobody may ask.
    """
    import fcntl

    try:
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return ""  # opening a device may do something
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            answer = fcntl.ioctl(descriptor, _GETFLAGS, bytes(struct.calcsize("l")))
        finally:
            os.close(descriptor)
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
