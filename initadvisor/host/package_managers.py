"""Keeps package managers from working on files while we do, and finds out which one does.

Their locks are taken in one order everywhere: dpkg's two as dpkg and apt take them, rpm's (dnf and
zypper work through it), pacman's. Whoever holds a lock of our own takes these after it.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import UnsafeError
from initadvisor.core.text import shown
from initadvisor.host.files import failing_as
from initadvisor.host.package_locks import PacmanLock, RecordLock, clear_stale, pacman_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.host import Host


_WAIT_S = 10.0
_POLL_S = 0.1

_DPKG = "/var/lib/dpkg"
_DPKG_LOCKS = ("lock-frontend", "lock")
_RPM = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
"""Where ``%_dbpath`` is: Fedora 36 and openSUSE, older ones; ``%_rpmlock_path`` is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyPackageManager:
    """A package manager that works on this machine's files.

    ``lock`` is what it holds; ``process`` and ``program`` are who does, None and empty where that
    cannot be told. ``around``: this run was started by it, from a hook or a package's script.
    """

    name: str
    lock: Path
    process: int | None
    program: str
    around: bool

    def __str__(self) -> str:
        """Say it in a sentence without a full stop."""
        if self.process is None:
            return f"{self.name} is at work: {self.lock} is held"
        who = f"process {self.process}" + (f" ({shown(self.program)})" if self.program else "")
        started = ", and it started this run" if self.around else ""
        return f"{self.name} is at work: {who} holds {self.lock}{started}"


def busy_package_managers(host: Host) -> tuple[BusyPackageManager, ...]:
    """Return the package managers that are at work now, for a plan; nothing is waited for.

    Locks that this process holds itself are not among them, nor those that only root may see.
    """
    found: dict[str, BusyPackageManager] = {}
    for lock in _locks(host):
        if lock.manager not in found and lock.taken():
            found[lock.manager] = _busy(lock)
    return tuple(found.values())


@contextlib.contextmanager
def package_managers_held(host: Host, *, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Keep every package manager of this machine waiting (or refusing) as long as the context is.

    Locks go with the process, however it ends; of pacman's a file stays, which the next run or
    ``clear_stale_locks`` removes. Contexts do not nest.

    Raises ``UnsafeError`` where a package manager itself started this run, ``InitadvisorError``
    where one is still at work after ``wait_s`` or a lock cannot be taken, ``NeedsRootError``.
    """
    until = time.monotonic() + wait_s
    with contextlib.ExitStack() as held:
        for lock in _locks(host):
            held.callback(_taken(lock, until))
        yield


def clear_stale_locks(host: Host) -> None:
    """Remove what a run of ours that was killed left of a lock, so that pacman works again.

    Cheap where there is nothing. Raises ``InitadvisorError`` where it cannot be removed.
    """
    if lock := pacman_lock(host):
        with failing_as(f"cannot lock {lock.path}", only_root=True):
            clear_stale(lock.path)


def _locks(host: Host) -> tuple[RecordLock | PacmanLock, ...]:
    # One directory may be a link to the other; a process that locks a file twice has it once.
    rpm = sorted({host.path(place).resolve() for place in _RPM})
    records = [
        *(
            RecordLock(manager="dpkg", path=host.path(f"{_DPKG}/{name}"), mode=0o640)
            for name in _DPKG_LOCKS
        ),
        *(RecordLock(manager="rpm", path=place / ".rpm.lock", mode=0o644) for place in rpm),
    ]
    found = tuple(lock for lock in records if lock.path.parent.is_dir())
    pacman = pacman_lock(host)
    return (*found, pacman) if pacman else found


def _taken(lock: RecordLock | PacmanLock, until: float) -> Callable[[], None]:
    """Take a lock, waiting for it a little, and return what releases it."""
    with failing_as(f"cannot lock {lock.path}", only_root=True):
        busy = None
        while (release := lock.take()) is None:
            late = time.monotonic() >= until
            if busy is None or late:  # looking at all processes costs too much for every time
                busy = _busy(lock)
            if busy.around:
                msg = f"not from inside a package manager: {busy}"
                raise UnsafeError(msg, hint="run it again when the package manager has ended")
            if late:
                raise UnsafeError(str(busy), hint=_advice(lock, busy))
            time.sleep(_POLL_S)
        return release


def _advice(lock: RecordLock | PacmanLock, busy: BusyPackageManager) -> str:
    """Return what to do; a lock file that no process has open was left by one that was killed."""
    if busy.process is None and not isinstance(lock, RecordLock):
        return f"if no package manager runs, it was left by one that was killed: remove {lock.path}"
    return "wait for it to end"


def _busy(lock: RecordLock | PacmanLock) -> BusyPackageManager:
    import psutil

    process, program, around = lock.holder(), "", False
    with contextlib.suppress(psutil.Error):
        if process is not None:
            program = psutil.Process(process).name()
            around = process in {parent.pid for parent in psutil.Process().parents()}
    return BusyPackageManager(
        name=lock.manager, lock=lock.path, process=process, program=program, around=around
    )
