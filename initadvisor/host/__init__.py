"""The machine: its root directory, its runner of programs, its clock, its state and cache."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from initadvisor.core.errors import InitadvisorError, NeedsRootError

if TYPE_CHECKING:
    from initadvisor.host.run import Runner


_MACHINE_STATE = "/var/lib/initadvisor"
_MACHINE_CACHE = "/var/cache/initadvisor"
_PUBLISHED = f"{_MACHINE_CACHE}/published"
_MOST_BYTES = 1 << 26
"""Of a text file: dpkg's status has 2 KB for each package that is installed."""


class Clock(Protocol):
    """Where time comes from, so that tests can hold it."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never steps."""
        ...

    def thread_cpu_ns(self) -> int:
        """Return the processor time the calling thread has had, in nanoseconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    monotonic_ns = staticmethod(time.monotonic_ns)
    """CLOCK_MONOTONIC in nanoseconds."""
    thread_cpu_ns = staticmethod(time.thread_time_ns)
    """CLOCK_THREAD_CPUTIME_ID in nanoseconds."""


def _without_waiting(path: str, flags: int) -> int:
    """Open it; a pipe would otherwise be waited for until somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as err:
        msg = "cannot find this user's home directory: HOME is not set and no account tells it"
        raise InitadvisorError(
            msg, hint="set HOME, or CACHE_DIRECTORY and STATE_DIRECTORY"
        ) from err


def _system_runner() -> Runner:
    from initadvisor.host.run import SystemRunner  # takes long; reading a file needs none of it

    return SystemRunner()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Everything below ``root`` is the machine; tests give a directory of their own."""

    root: Path = Path("/")
    runner: Runner = field(default_factory=_system_runner)
    clock: Clock = field(default_factory=SystemClock)

    def path(self, absolute: str | Path) -> Path:
        """Return where the machine's ``absolute`` path is, below ``root``."""
        return self.root / str(absolute).lstrip("/")

    def read_text(self, absolute: str) -> str | None:
        """Return a small text file of the machine, None where there is none, it may not be read, or
        it is larger than 64 MiB; empty for what is no file, such as ``/dev/null`` or a pipe.

        Bytes that are not UTF-8 are replaced: these are files of ``/proc``, ``/sys`` and ``/etc``
        whose interesting parts are ASCII.
        """
        try:
            with open(
                self.path(absolute), encoding="utf-8", errors="replace", opener=_without_waiting
            ) as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    return ""
                return file.read() if found.st_size <= _MOST_BYTES else None
        except OSError:
            return None

    def read_fields(self, absolute: str) -> dict[str, str]:
        """Return the lines ``name: value`` of such a file; of several with one name, the first."""
        lines = reversed((self.read_text(absolute) or "").splitlines())
        pairs = (line.partition(":") for line in lines)
        return {name.strip(): value.strip() for name, _, value in pairs}

    @property
    def is_root(self) -> bool:
        """Tell whether this process has the machine's root rights."""
        return os.geteuid() == 0

    def require_root(self, what: str) -> None:
        """Raise ``NeedsRootError`` for an ordinary user; ``what`` says what only root may do."""
        if not self.is_root:
            msg = f"cannot {what}: only root may"
            raise NeedsRootError(msg)

    @property
    def cores(self) -> int:
        """The number of processors this process may run on."""
        return len(os.sched_getaffinity(0))

    def kernel_release(self) -> str:
        """Return the release of the running kernel, as ``uname -r`` prints it."""
        return os.uname().release

    def machine(self) -> str:
        """Return the architecture of the running kernel, as ``uname -m`` prints it."""
        return os.uname().machine

    def cache_dir(self) -> Path:
        """Return where candidates are kept: ``/var/cache`` for root, else the user's cache.

        ``CACHE_DIRECTORY``, which systemd sets for a unit (systemd.exec(5)), comes before both.
        """
        return self._own_dir(
            "CACHE_DIRECTORY",
            roots=_MACHINE_CACHE,
            users=("XDG_CACHE_HOME", ".cache"),
        )

    def state_dir(self) -> Path:
        """Return where measurements are kept: ``/var/lib`` for root, else the user's state.

        ``STATE_DIRECTORY``, which systemd sets for a unit (systemd.exec(5)), comes before both;
        empty it is as good as unset, as for systemd itself.
        """
        return self._own_dir(
            "STATE_DIRECTORY", roots=_MACHINE_STATE, users=("XDG_STATE_HOME", ".local/state")
        )

    def _own_dir(self, units: str, *, roots: str, users: tuple[str, str]) -> Path:
        if directory := os.environ.get(units):
            return Path(directory)
        if self.is_root:
            return self.path(roots)
        variable, below_home = users
        base = os.environ.get(variable) or str(_home() / below_home)
        return Path(base) / "initadvisor"

    @property
    def keeps_machine_state(self) -> bool:
        """Tell whether this run's state is the machine's, which only root may look into."""
        return self.is_root and self.state_dir() == self.path(_MACHINE_STATE)

    def published_dir(self) -> Path:
        """Return where root leaves a copy, for all to read, of what it keeps in its state.

        Root itself never reads it: who holds a file of it open or locked keeps nobody waiting.
        """
        return self.path(_PUBLISHED)

    def state_file(self, name: str) -> Path | None:
        """Return where ``name`` is to be read: the own one, or the copy; None without both.

        So that a user who measured nothing sees what root measured. Whoever names a directory
        (``STATE_DIRECTORY``) means that one and none else. Raises ``NeedsRootError`` where root
        has a state of which nothing is published yet.
        """
        if os.path.lexists(own := self.state_dir() / name):
            return own
        if self.is_root or os.environ.get("STATE_DIRECTORY"):
            return None
        published = self.published_dir()
        if os.path.lexists(copy := published / name):
            return copy
        if self.path(_MACHINE_STATE).is_dir() and not published.is_dir():
            msg = (
                f"cannot read {self.path(_MACHINE_STATE)}: only root may, and no copy is published"
            )
            raise NeedsRootError(msg)
        return None
