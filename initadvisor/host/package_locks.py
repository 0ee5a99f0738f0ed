"""The locks of package managers, in the form that each looks for, and the processes that hold them.

This program's own runs use ``lock``.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import stat
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host.files import PARTIAL_PREFIX, opened, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from initadvisor.host import Host


_FLOCK = "hhqqi0q"
"""``struct flock`` with 64-bit offsets: type, whence, start, length, process, padded to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLock:
    """The lock of fcntl(2), which dpkg and rpm use, of ``manager`` on the whole file ``path``.

    It goes with the process, however that ends, and with the first descriptor of the file that the
    process closes: whoever holds it must not open that file again.

    Who has it for reading only counts for nothing. Package managers change packages with it for
    writing (rpm: ``RPMTXN_WRITE`` in ``rpmtsRun``), for which the file has to be open for writing:
    only root may (fcntl(2)). For reading everybody can lock what they may open, and all may rpm's.

    ``mode`` is what the package manager gives the file where it is the one that makes it.
    """

    manager: str
    path: Path
    mode: int

    def take(self) -> Callable[[], None] | None:
        """Return what releases the lock, None where another process has it for writing.

        Beside readers it is had for reading, which keeps writers out just as well. The file is made
        where there is none. Raises ``OSError`` where it cannot be.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self.mode)
        try:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return lambda: os.close(descriptor)

    def taken(self) -> bool:
        """Tell whether another process has it for writing; what may not be read counts as free."""
        return self._conflict() is not None

    def holder(self) -> int | None:
        """Return the process that has it for writing, None for none or where it cannot be told.

        It cannot in another PID namespace, nor with locks that belong to an open file.
        """
        found = self._conflict()
        return found if found and found > 0 else None

    def _conflict(self) -> int | None:
        if has_open("self", self.path):
            return None
        with contextlib.suppress(OSError):
            with opened(self.path, 0) as descriptor:
                wanted = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
                answer = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
            return None if answer[0] == fcntl.F_UNLCK else int(answer[4])
        return None


def has_open(process: int | str, path: Path) -> bool:
    """Tell whether a process (``self``: this one) has a file open, as far as it may be known."""
    with contextlib.suppress(OSError):
        wanted = path.stat()
        return any(os.path.samestat(found, wanted) for found in _open_files(process))
    return False


def _open_files(process: int | str) -> Iterator[os.stat_result]:
    """Yield what a process has open; raises ``OSError`` where that may not be known."""
    for link in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):  # by name it would not be found where that is new
            yield link.stat()


log = logging.getLogger(__name__)

_CONFIG = "/etc/pacman.conf"
_DATABASE = "/var/lib/pacman"
_LOCK = "db.lck"
_NESTING_LIMIT = 10
"""``PARSEOPTION``'s own (pacman ``src/pacman/ini.c``, ``INI_MAX_RECURSION``)."""

_OURS = b"initadvisor"
_PROCESS = re.compile(rb"initadvisor: process (\d{1,10}) ")
_MOST_BYTES = 200
_PREFIX = f"{PARTIAL_PREFIX}initadvisor-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PacmanLock:
    """The lock file ``path`` of pacman and all else that uses libalpm, in the database directory.

    It is a file that is there: libalpm makes it with O_EXCL and takes it away in the end
    (``_alpm_handle_lock``). It outlives whoever was killed, and then pacman refuses to work until
    somebody removes it. Ours therefore says whose it is, and has a lock of flock(2) as long as we
    live: what says so and has none is stale. Others may not open it, or they could lock it, too;
    of one that they may, which earlier versions made, only the process that it names counts.
    """

    path: Path
    manager: str = "pacman"

    def take(self) -> Callable[[], None] | None:
        """Return what releases the lock, None where somebody else has it.

        The file appears with its content, never without: a stale one is known after a power cut,
        too. Raises ``OSError`` where it cannot be made.
        """
        clear_stale(self.path)
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, dir=self.path.parent)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, _OURS + b": process %d replaces files\n" % os.getpid())
            os.fsync(descriptor)
            os.link(name, self.path)
        except BaseException as err:
            os.close(descriptor)
            if isinstance(err, FileExistsError):
                return None
            raise
        finally:
            Path(name).unlink(missing_ok=True)
        return lambda: _release(self.path, descriptor)

    def taken(self) -> bool:
        """Tell whether somebody else has the lock, or had it when it was killed."""
        if has_open("self", self.path):
            return False
        with _opened(self.path) as descriptor:
            stale = descriptor is not None and _is_ours(descriptor) and _is_free(descriptor)
            return not stale and os.path.lexists(self.path)

    def holder(self) -> int | None:
        """Return the process that has the file open, None where there is none or only root may."""
        import psutil

        return next((pid for pid in psutil.pids() if has_open(pid, self.path)), None)


def pacman_lock(host: Host) -> PacmanLock | None:
    """Return pacman's lock, None on a machine without pacman's database."""
    directory = host.path(_configured(host, _CONFIG, 0) or _DATABASE)
    return PacmanLock(path=directory / _LOCK) if directory.is_dir() else None


def clear_stale(path: Path) -> None:
    """Remove the lock that a killed run of ours left; raises ``OSError`` if that fails."""
    for left in (path, *path.parent.glob(f"{_PREFIX}*")):
        with _opened(left) as descriptor:
            if descriptor is not None and _is_ours(descriptor) and _is_free(descriptor):
                log.warning("removing %s, which an interrupted run left", left)
                _unlink(left, descriptor)


def _release(path: Path, descriptor: int) -> None:
    """Give the lock back; that it cannot be is no reason to take what was done for failed."""
    try:
        _unlink(path, descriptor)
    except OSError as err:
        log.warning("pacman will not work before %s is removed: %s", path, err.strerror)
    finally:
        os.close(descriptor)


def _unlink(path: Path, descriptor: int) -> None:
    """Remove the file that is open, unless its name is another one's by now."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(path.lstat(), os.fstat(descriptor)):
            path.unlink()
            sync_directory(path.parent)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Give a descriptor of the lock file, None where there is none or it may not be read."""
    with contextlib.ExitStack() as held:
        descriptor = None
        with contextlib.suppress(OSError):
            descriptor = held.enter_context(opened(path, os.O_NONBLOCK | os.O_NOFOLLOW))
        yield descriptor


def _is_ours(descriptor: int) -> bool:
    return os.pread(descriptor, len(_OURS), 0) == _OURS


def _is_free(descriptor: int) -> bool:
    """Take the lock that a live owner has; it goes when the descriptor is closed.

    Where others may have the lock it is free if the owner is gone.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        status = os.fstat(descriptor)
        named = _PROCESS.match(os.pread(descriptor, _MOST_BYTES, 0))
        is_private = not stat.S_IMODE(status.st_mode) & 0o077
        # Who asks has only opened it to look; see ``PacmanLock.taken``.
        pid = int(named[1]) if named else os.getpid()
        return not is_private and (pid == os.getpid() or not _has(pid, status))
    return True


def _has(process: int, file: os.stat_result) -> bool:
    """Tell whether a process of the owner of a file has it open."""
    with contextlib.suppress(OSError):
        if Path(f"/proc/{process}").stat().st_uid == file.st_uid:
            return any(os.path.samestat(found, file) for found in _open_files(process))
    return False


def _configured(host: Host, file: str, depth: int) -> str | None:
    """Return the first ``DBPath`` in ``[options]``, as pacman takes it, with what is included."""
    section = "options" if depth else ""
    for raw in (host.read_text(file) or "").splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        key, _, value = (part.strip() for part in line.partition("="))
        if section == "options" and key == "DBPath" and value:
            return value
        if section == "options" and key == "Include" and depth < _NESTING_LIMIT:
            for included in sorted(host.root.glob(value.lstrip("/"))):
                below = f"/{included.relative_to(host.root)}"
                if found := _configured(host, below, depth + 1):
                    return found
    return None
