"""Idle programs are started by a launcher: idle from the start, and their memory is known."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from initadvisor.host.process import make_idle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_FILE = Path(__file__).resolve().with_name("launcher.py")
_DEFAULT = f"{signal.SIGPIPE:d},{signal.SIGXFSZ:d}"
_READY = b"ready\n"
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

    def __init__(self) -> None:
        self._ours, self._launchers = socket.socketpair()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ours.close()
        self._launchers.close()

    @property
    def descriptor(self) -> int:
        """What the launcher has to inherit."""
        return self._launchers.fileno()

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that launches the program."""
        return [sys.executable, "-I", "-S", str(_FILE), str(self.descriptor), _DEFAULT, *argv]

    def go(self, pid: int, timeout_s: float) -> None:
        """Let the launcher, which has process number ``pid``, start the program as an idle one."""
        self._launchers.close()
        self._ours.settimeout(timeout_s)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            self._ours.recv(len(_READY), socket.MSG_WAITALL)
        make_idle(pid)  # only now: with none but idle time, the launcher itself would take seconds
        self._ours.shutdown(socket.SHUT_WR)

    def usage(self) -> Usage | None:
        """Return what the program took once the launcher has ended, None where that was killed.

        Raises ``OSError`` when the program could not be started.
        """
        said = b""
        with contextlib.suppress(ConnectionResetError):
            said = self._ours.recv(_REPORT_BYTES)
        match said.split():
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
