"""A file's content replaced, with everything else about the file kept."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import UnsafeError
from initadvisor.host.files import PARTIAL_PREFIX, whole_file
from initadvisor.host.immutable import file_error

if TYPE_CHECKING:
    from pathlib import Path


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
