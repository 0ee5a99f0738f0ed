"""Locks of fcntl(2), which dpkg and rpm use, and the processes that hold them.

They have to be what those programs look for; this program's own runs use ``lock``.
They go with the process, however it ends, and with the first descriptor of the file that it closes:
whoever holds one must not open that file again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_FLOCK = "hhqqi0q"
"""``struct flock`` with 64-bit offsets: type, whence, start, length, process, padded to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLock:
    """The lock of the package manager ``manager`` on the whole file ``path``.

    ``mode`` is what the package manager gives the file where it is the one that makes it.
    """

    manager: str
    path: Path
    mode: int

    def take(self) -> Callable[[], None] | None:
        """Return what releases the lock, None where another process has it.

        The file is made where there is none. Raises ``OSError`` where it cannot be.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self.mode)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return lambda: os.close(descriptor)

    def taken(self) -> bool:
        """Tell whether another process has the lock; what may not be read counts as free."""
        return self._conflict() is not None

    def holder(self) -> int | None:
        """Return the process that has the lock, None where there is none or it cannot be told.

        It cannot in another PID namespace, nor with locks that belong to an open file.
        """
        found = self._conflict()
        return found if found and found > 0 else None

    def _conflict(self) -> int | None:
        if has_open("self", self.path):
            return None
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
            finally:
                os.close(descriptor)
            return None if answer[0] == fcntl.F_UNLCK else int(answer[4])
        return None


def has_open(process: int | str, path: Path) -> bool:
    """Tell whether a process (``self``: this one) has a file open, as far as it may be known."""
    with contextlib.suppress(OSError):
        wanted = path.stat()
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):  # by name it would not be found where that is new
                if os.path.samestat(link.stat(), wanted):
                    return True
    return False
