"""The lock of pacman and of everything else that uses libalpm: a file that is there.

libalpm makes it with O_EXCL and takes it away in the end (``_alpm_handle_lock``). It outlives
whoever was killed, and then pacman refuses to work until somebody removes it. Ours therefore says
whose it is, and has a lock of flock(2) as long as we live: what says so and has none is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host.files import PARTIAL_PREFIX, sync_directory
from initadvisor.host.record_lock import has_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from initadvisor.host import Host


log = logging.getLogger(__name__)

_CONFIG = "/etc/pacman.conf"
_DATABASE = "/var/lib/pacman"
_LOCK = "db.lck"
_NESTING_LIMIT = 10
"""``PARSEOPTION``'s own (pacman ``src/pacman/ini.c``, ``INI_MAX_RECURSION``)."""

_OURS = b"initadvisor"
_PREFIX = f"{PARTIAL_PREFIX}initadvisor-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PacmanLock:
    """The lock file ``path``, in pacman's database directory."""

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
            os.fchmod(descriptor, 0o644)
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
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int) -> bool:
    return os.pread(descriptor, len(_OURS), 0) == _OURS


def _is_free(descriptor: int) -> bool:
    """Take the lock that a live owner has; it goes when the descriptor is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
