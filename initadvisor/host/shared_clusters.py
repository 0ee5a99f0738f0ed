"""Two names with the same clusters: what a power cut in the middle of a rename leaves on FAT.

A rename writes two directory entries there, the new one and the removal of the old one, and either
may reach the disk alone (fs/fat/namei_vfat.c, ``vfat_rename``). Both names can be read then, but
whoever removes one of them frees the clusters of the other. fsck.fat(8) makes one of them empty.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from os.path import samestat
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError

if TYPE_CHECKING:
    from pathlib import Path


_FIBMAP = 1
"""ioctl that tells where a block of a file lies (linux/fs.h); needs CAP_SYS_RAWIO."""

_NO_BLOCKS = frozenset({errno.EINVAL, errno.ENOTTY, errno.EOPNOTSUPP})


def share_clusters(one: Path, other: Path) -> bool:
    """Tell whether two ordinary files lie in the same place; two links to one file do not count.

    Raises ``InitadvisorError`` where that must be asked and this process may not.
    """
    try:
        status, beside = one.lstat(), other.lstat()
        if status.st_size != beside.st_size or status.st_size == 0 or samestat(status, beside):
            return False
        first = _first_block(one)
        return first is not None and first == _first_block(other)
    except FileNotFoundError:
        return False
    except PermissionError as err:
        msg = f"cannot tell whether {one} and {other} are one file since a power cut"
        raise InitadvisorError(msg, hint="run it as root, with CAP_SYS_RAWIO") from err


def cannot_part(path: Path) -> InitadvisorError:
    """Return what to raise where a file cannot exchange its name with that of its copy."""
    msg = f"cannot give {path} clusters of its own: the kernel cannot exchange names there"
    return InitadvisorError(msg, hint="unmount the file system and repair it by fsck.fat")


def _first_block(path: Path) -> int | None:
    """Return where a file begins, None where the file system has no such notion."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        (block,) = struct.unpack("I", fcntl.ioctl(descriptor, _FIBMAP, struct.pack("I", 0)))
    except OSError as err:
        if err.errno in _NO_BLOCKS:
            return None
        raise
    finally:
        os.close(descriptor)
    return block or None
