"""Renames that overwrite nothing, by renameat2(2), and that survive a power cut."""

from __future__ import annotations

import errno
import itertools
import os
from typing import TYPE_CHECKING

from initadvisor.host.files import failing_as, sync_named

if TYPE_CHECKING:
    from pathlib import Path


_NOREPLACE, _EXCHANGE = 1, 2
"""Flags of linux/fs.h."""

_AT_FDCWD = -100
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def renameat2(old: Path, new: Path, flags: int) -> None:
    """Rename as renameat2(2) does, for which Python has no function; raises ``OSError``."""
    import ctypes  # slow to import, and hardly ever needed

    libc = ctypes.CDLL(None, use_errno=True)
    code = errno.ENOSYS
    if hasattr(libc, "renameat2"):
        names = os.fsencode(old), os.fsencode(new)
        if not libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flags):
            return
        code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), str(old), None, str(new))


def exchange(one: Path, other: Path) -> bool:
    """Exchange what two names lead to; False where kernel or file system cannot.

    FAT cannot before Linux 6.0 (EINVAL of ``vfat_rename``). Nothing is freed, and both names are
    always there; but FAT writes two directory entries, that of ``other`` first, and between them a
    power cut leaves both names with what ``one`` led to (``host.shared_clusters``).
    """
    if not _renamed(one, other, _EXCHANGE):
        return False
    sync_named(other)
    sync_named(one)
    return True


def rename_to_free(old: Path, new: Path) -> None:
    """Give a file a name that nothing has; raises ``FileExistsError`` where something has it.

    Where kernel or file system cannot tell, that is looked at right before.
    """
    if not _renamed(old, new, _NOREPLACE):
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        old.rename(new)
    sync_named(new)


def quarantine_file(path: Path, *, beside: Path | None = None) -> Path:
    """Have a file out of the way, and return where it is kept: ``aside-1`` after its name.

    ``beside``: or after that one's. Raises ``InitadvisorError``.
    """
    named = beside or path
    numbered = (named.with_name(f"{named.name}.aside-{number}") for number in itertools.count(1))
    aside = next(name for name in numbered if not os.path.lexists(name))
    with failing_as(f"cannot rename {path}"):
        rename_to_free(path, aside)
    return aside


def _renamed(old: Path, new: Path, flags: int) -> bool:
    try:
        renameat2(old, new, flags)
    except OSError as err:
        if err.errno in _UNSUPPORTED:
            return False
        raise
    return True
