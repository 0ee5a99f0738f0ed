"""The lock of this program's runs on each other: a file under flock(2) that names its holder.

What package managers lock is in their own formats: ``package_locks``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.text import shown
from initadvisor.host.files import failing_as, keep_others_out, os_failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_POLL_S = 0.05
_WHO_BYTES = 200


def lock_file(directory: Path, name: str) -> Path:
    """Return the lock called ``name`` of what is kept in a directory: it is beside all other locks.

    Earlier versions locked other files, which everybody could open: nobody looks at those.
    """
    return directory / "locks" / name


@contextlib.contextmanager
def locked(path: Path, *, what: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path``; it goes with the process, however it ends.

    Its directory has locks only, see ``lock_file``: nobody else may look into it from now on.
    ``what``: what the holder does, for the error. Raises ``InitadvisorError`` that names the holder
    if another run has it for ``wait_s`` longer, ``NeedsRootError`` where only root may take it, and
    ``UnsafeError`` where others may write to the directory.
    """
    keep_others_out(path.parent, doing="locking anything in")
    with failing_as(f"cannot lock {path}", only_root=True):
        # Nobody else may open it, not even for reading: whoever has it open can lock it.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
    try:
        _take(descriptor, path, what=what, until=time.monotonic() + wait_s)
        # Only for the words of whoever waits: a full disk is no reason not to go on.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, *, what: str, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            if time.monotonic() >= until:
                who = os.pread(descriptor, _WHO_BYTES, 0).decode(errors="replace") or "another run"
                msg = f"{what} is already running: {shown(who)} holds {path}"
                raise InitadvisorError(msg, hint="wait for it to end") from err
            time.sleep(_POLL_S)
        except OSError as err:
            raise os_failure(err, f"cannot lock {path}") from err
        else:
            return
