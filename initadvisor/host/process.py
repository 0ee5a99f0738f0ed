"""A running program: what it inherits, how it competes, what it reads and says, how it is ended.

Idle programs are started by a launcher: idle from the start, and their memory is known.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shlex
import signal
import sys
import threading
import time
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from initadvisor.core.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_OOM_FIRST = "1000"

SYSTEM_DIRECTORIES = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""Where programs are looked for, whatever PATH this process was given."""


def search_path() -> str:
    """Return the PATH of every program that is run."""
    return os.pathsep.join(SYSTEM_DIRECTORIES)


def environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Return what a program inherits: as little as possible, in the C locale, and ``extra``."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": search_path(), "LC_ALL": "C.UTF-8", **(extra or {})}


def give_way(pid: int) -> None:
    """Let the process, and what it starts, use disks that nobody else wants, and be killed first.

    As far as that is allowed.
    """
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        psutil.Process(pid).ionice(psutil.IOPRIO_CLASS_IDLE)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_FIRST, encoding="ascii")


def kill_session(pid: int) -> None:
    """Kill the process group of a session that ``pid`` leads; it must not be reaped yet."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


_CODE = Path(__file__).with_name("launcher.py").read_text(encoding="ascii")
"""Read now: later an upgrade may have put another one there."""
_POLICY = os.SCHED_IDLE
_DEFAULT = f"{signal.SIGPIPE:d},{signal.SIGXFSZ:d}"
_REPORT_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How a program ended and what it took; ``returncode`` is negative for a signal."""

    returncode: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


class Launch:
    """One start of a program by ``launcher.py``."""

    def __init__(self, *, idle: bool = True) -> None:
        self._idle = idle
        self._told, self._tell = pipe()
        self._said, self._report = pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for end in (self._told, self._tell, self._said, self._report):
            end.close()

    @property
    def descriptors(self) -> tuple[int, int]:
        """What the launcher has to inherit."""
        return self._told.fileno(), self._report.fileno()

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that launches the program."""
        told, report = map(str, self.descriptors)
        policy = _POLICY if self._idle else os.sched_getscheduler(0)
        words = [told, report, _DEFAULT, str(policy), *argv]
        return [sys.executable, "-I", "-S", "-c", _CODE, *words]

    def go(self, pid: int) -> None:
        """Let the launcher, which has process number ``pid``, start the program."""
        self._told.close()
        self._report.close()
        if self._idle:
            give_way(pid)
        with contextlib.suppress(BrokenPipeError):  # it was killed
            self._tell.write(b".")

    def usage(self) -> Usage | None:
        """Return what the program took once the launcher has ended, None where that was killed.

        Raises ``OSError`` when the program could not be started.
        """
        match self._said.read(_REPORT_BYTES).split():
            case [b"failed", number]:
                raise OSError(int(number), os.strerror(int(number)))
            case [b"ended", status, wall_ns, cpu_us, peak_bytes]:
                return Usage(
                    returncode=os.waitstatus_to_exitcode(int(status)),
                    wall_s=int(wall_ns) / 1e9,
                    cpu_s=int(cpu_us) / 1e6,
                    peak_bytes=int(peak_bytes),
                )
            case _:
                return None


CAPTURE_LIMIT_BYTES = 16 << 20
"""What a program may say before it is stopped."""

_LINE_LIMIT_BYTES = 4096
_READ_BYTES = 1 << 16


class Ending(Enum):
    """How a program ended that was listened to."""

    EXITED = auto()
    STOPPED = auto()
    TIME_OUT = auto()
    FLOOD = auto()


def listen(said: IO[bytes], deadline: float, on_line: Callable[[bytes], bool]) -> Ending:
    """Hand lines on until the last of interest, the end of the pipe, or the deadline.

    ``deadline`` is one of ``time.monotonic()``; what ``on_line`` gets is in ``Runner.watch``.
    """
    poller = select.poll()
    poller.register(said, select.POLLIN)
    rest = b""
    left = CAPTURE_LIMIT_BYTES
    while (wait_s := deadline - time.monotonic()) > 0:
        if not poller.poll(wait_s * 1000):
            continue
        chunk = said.read(_READ_BYTES)
        left -= len(chunk)
        *lines, rest = (rest + chunk).split(b"\n")
        if not chunk and rest:
            lines = [rest]
        if any(on_line(line[:_LINE_LIMIT_BYTES].rstrip(b"\r")) for line in lines):
            return Ending.STOPPED
        if not chunk:
            return Ending.EXITED
        if left < 0:
            return Ending.FLOOD
        rest = rest[:_LINE_LIMIT_BYTES]
    return Ending.TIME_OUT


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Return both ends of a pipe, neither of which other programs inherit."""
    read_end, write_end = os.pipe()
    return os.fdopen(read_end, "rb", buffering=0), os.fdopen(write_end, "wb", buffering=0)


def await_word(
    argv: tuple[str, ...], word: str, stdin: IO[bytes], said: IO[bytes], timeout_s: float
) -> None:
    """Raise ``ProgramError`` where a program does not say the word that it is given."""
    last = [b""]

    def on_line(line: bytes) -> bool:
        last[0] = line.strip() or last[0]
        return line == word.encode()

    with contextlib.suppress(BrokenPipeError):  # it has ended, and what it said tells why
        stdin.write(f"{word}\n".encode())
    ending = listen(said, time.monotonic() + timeout_s, on_line)
    if ending is not Ending.STOPPED:
        what = "ended" if ending is Ending.EXITED else f"was not ready within {timeout_s:g} s"
        reason = f": {last[0].decode(errors='replace')}" if last[0] else ""
        msg = f"{shlex.join(argv)} {what}{reason}"
        raise ProgramError(msg)


log = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def piped(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Give the whole content of ``file`` as the read end of a pipe; its position does not move.

    gzip and lzop, given a regular file, write its time stamp into their output; generators feed
    them through a pipe, and only a pipe gives the same bytes.

    A thread writes; it ends when all is written or, at the end of the block, nobody reads.
    """
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=_feed, args=(file.fileno(), write_end), daemon=True)
    writer.start()
    try:
        with os.fdopen(read_end, "rb", buffering=0) as reader:
            yield reader
    finally:
        writer.join()


def _feed(source: int, target: int) -> None:
    # A reader that ends early is its caller's affair: without this mask the signal of writing to
    # a pipe that nobody reads would end the whole process where SIGPIPE has its default action.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    offset = 0
    try:
        while sent := os.sendfile(target, source, offset, _CHUNK_BYTES):
            offset += sent
    except OSError as err:
        # Nobody reads, or the file cannot be read: either way the reader's output is incomplete,
        # which whoever asked for it checks.
        log.debug("feeding a pipe ended at byte %d: %s", offset, err)
    finally:
        os.close(target)
