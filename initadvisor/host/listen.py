"""Listens to a running program, line by line, up to a deadline."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import time
from enum import Enum, auto
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable


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
