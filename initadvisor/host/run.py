"""The one place where programs are run: no shell, stdin closed, C locale, always a time limit.

Every command line is logged. The resources a program used come from the kernel's own accounting
(wait4(2)).
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from initadvisor.core.errors import ProgramError
from initadvisor.host.process import (
    CAPTURE_LIMIT_BYTES,
    Ending,
    Launch,
    Usage,
    await_word,
    environment,
    kill_session,
    listen,
    pipe,
    search_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager


log = logging.getLogger(__name__)

_POLL_S = 0.05
"""How often to check whether a program has said too much."""
_END_S = 5.0


class Priority(Enum):
    """How a program competes with the rest of the machine."""

    NORMAL = auto()
    MEASURED = auto()
    """As ``NORMAL``, but its peak memory is measured, which makes the start some 15 ms longer."""
    IDLE = auto()
    """Runs on processors and disks that nobody else wants (SCHED_IDLE, the idle I/O class), and is
    killed before anything else when memory runs out. Measured like ``MEASURED``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A program that ended by itself, and what it used.

    ``wall_s`` and ``cpu_s`` (user plus system, its children included) in seconds. ``peak_bytes`` is
    the largest resident memory of any one process of it and never below some 9 MB, which is what
    the process takes that starts it (``launcher.py``); 0 for a program that is not idle.
    Children that the program did not wait for do not count in either.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes = field(repr=False, default=b"")
    stderr: bytes = field(repr=False, default=b"")
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0


class Runner(Protocol):
    """What the rest of the program knows of running programs; tests have a double."""

    def which(self, program: str) -> Path | None:
        """Return where ``program`` is found, None if it is not installed."""
        ...

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Completed:
        """Run one program to its end.

        ``stdin`` and ``stdout`` are files with a descriptor; without them stdin is empty and
        stdout is returned. ``env`` is added to a minimal environment. ``check`` turns an exit
        status other than 0 into an error.

        Raises ``ProgramError`` when the program is missing, fails (with ``check``), runs longer
        than ``timeout_s``, says more than 16 MiB where it is listened to, or when ``stop_all`` was
        called.
        """
        ...

    def watch(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        on_line: Callable[[bytes], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ending:
        """Run a program and listen to it until it has said what is waited for.

        ``on_line`` gets each line of stdout and stderr as it comes, without its end and cut after
        4096 bytes, and returns whether it was the last of interest. Then, and whenever the run ends
        otherwise (also by an exception), the program is killed with all that it has started. One
        that says more than 16 MiB is stopped (``FLOOD``).

        Raises ``ProgramError`` when the program cannot be started or ``stop_all`` was called.
        """
        ...

    def hold(
        self, argv: Sequence[str | Path], *, word: str, timeout_s: float
    ) -> AbstractContextManager[None]:
        """Run a program as long as the context is.

        It gets the line ``word`` on stdin and has to say it on stdout before the block begins, as
        cat(1) does. The end of the block is an end of file on its stdin, and so is the end of this
        process, be it killed; what does not end by that is killed with all that it has started.

        Raises ``ProgramError`` when the program cannot be started, ends, or has not said the word
        after ``timeout_s``, or when ``stop_all`` was called.
        """
        ...

    def stop_all(self) -> None:
        """Kill every program that is running, from any thread, and let none start after it."""
        ...


class SystemRunner:
    """Runs programs on this machine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._stopped = False

    def which(self, program: str) -> Path | None:
        """Return where ``program`` is found in the system's directories, whatever PATH says."""
        found = shutil.which(program, path=search_path())
        return Path(found) if found else None

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Completed:
        """See ``Runner.run``."""
        words = tuple(str(word) for word in argv)
        log.debug("run: %s", shlex.join(words))
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            contextlib.nullcontext()
            if priority is Priority.NORMAL
            else Launch(idle=priority is Priority.IDLE) as launch,
        ):
            started = time.monotonic()
            process = self._start(words, stdin, stdout or out, err, env, cwd, launch)
            try:
                if launch:
                    launch.go(process.pid)
                captured = (err,) if stdout else (out, err)
                self._await_end(process, words, started, timeout_s, captured)
            except BaseException:
                self._end(process)
                raise
            usage = self._reap(process, started)
            if launch:
                try:
                    usage = launch.usage() or usage
                except OSError as error:
                    raise _not_started(self.which(words[0]), error) from error
            completed = Completed(
                argv=words,
                returncode=usage.returncode,
                stdout=b"" if stdout else _captured(out),
                stderr=_captured(err),
                wall_s=usage.wall_s,
                cpu_s=usage.cpu_s,
                peak_bytes=usage.peak_bytes,
            )
        if check and completed.returncode != 0:
            raise failure(completed)
        return completed

    def watch(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        on_line: Callable[[bytes], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ending:
        """See ``Runner.watch``."""
        words = tuple(str(word) for word in argv)
        log.debug("watch: %s", shlex.join(words))
        said, out = pipe()
        with said:
            with out:
                process = self._start(words, None, out, out, env, cwd)
            try:
                return listen(said, time.monotonic() + timeout_s, on_line)
            finally:
                self._end(process)

    @contextlib.contextmanager
    def hold(self, argv: Sequence[str | Path], *, word: str, timeout_s: float) -> Iterator[None]:
        """See ``Runner.hold``."""
        words = tuple(str(part) for part in argv)
        log.debug("hold: %s", shlex.join(words))
        stdin, to_stdin = pipe()
        said, stdout = pipe()
        with to_stdin, said:
            with stdin, stdout:
                process = self._start(words, stdin, stdout, stdout, None, None)
            try:
                await_word(words, word, to_stdin, said, timeout_s)
                try:
                    yield
                finally:
                    to_stdin.close()
                    listen(said, time.monotonic() + _END_S, lambda _: False)  # until it has ended
            finally:
                self._end(process)

    def stop_all(self) -> None:
        """See ``Runner.stop_all``."""
        with self._lock:
            self._stopped = True
            for pid in self._running:
                kill_session(pid)

    def _start(
        self,
        words: tuple[str, ...],
        stdin: IO[bytes] | None,
        stdout: IO[bytes],
        stderr: IO[bytes],
        env: Mapping[str, str] | None,
        cwd: Path | None,
        launch: Launch | None = None,
    ) -> subprocess.Popen[bytes]:
        program = self.which(words[0])
        if program is None:
            msg = f"cannot run {words[0]}: not installed"
            raise ProgramError(msg)
        with self._lock:
            if self._stopped:
                msg = f"not running {words[0]}: stopped"
                raise ProgramError(msg)
            command = [str(program), *words[1:]]
            try:
                process = subprocess.Popen(
                    launch.command(command) if launch else command,
                    stdin=stdin or subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    env=environment(env),
                    cwd=cwd,
                    start_new_session=True,
                    pass_fds=launch.descriptors if launch else (),
                )
            except OSError as err:
                raise _not_started(program, err) from err
            self._running.add(process.pid)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            kill_session(process.pid)  # also what it has left behind, before it is reaped
            process.wait()
            self._running.discard(process.pid)

    def _await_end(
        self,
        process: subprocess.Popen[bytes],
        words: tuple[str, ...],
        started: float,
        timeout_s: float,
        captured: tuple[IO[bytes], ...],
    ) -> None:
        """Wait for the process to end, within its time limit and within what it may say."""
        pidfd = os.pidfd_open(process.pid)
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            while not poller.poll(_POLL_S * 1000):
                if time.monotonic() - started > timeout_s:
                    raise _killed(words, f"did not end within {timeout_s:g} s")
                if any(os.fstat(file.fileno()).st_size > CAPTURE_LIMIT_BYTES for file in captured):
                    raise _killed(words, "would not stop talking")
        finally:
            os.close(pidfd)

    def _reap(self, process: subprocess.Popen[bytes], started: float) -> Usage:
        with self._lock:  # once it is reaped, its number may be another program's
            _, status, usage = os.wait4(process.pid, 0)
            self._running.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Usage(
            returncode=process.returncode,
            wall_s=time.monotonic() - started,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_bytes=0,
        )


def _killed(words: tuple[str, ...], what: str) -> ProgramError:
    return ProgramError(f"{shlex.join(words)} {what} and was killed", why=f"it {what}")


def _not_started(program: Path | None, err: OSError) -> ProgramError:
    return ProgramError(f"cannot run {program}: {err.strerror}")


def _captured(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(CAPTURE_LIMIT_BYTES)


def failure(completed: Completed) -> ProgramError:
    """Return the error that tells how a program ended and the last of what it said."""
    said = completed.stderr.decode(errors="replace").strip().splitlines()
    status = completed.returncode
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    return ProgramError(
        f"{shlex.join(completed.argv)} {how}" + (f": {said[-1].strip()}" if said else "")
    )
