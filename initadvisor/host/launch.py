"""Idle programs are started by a launcher: idle from the start, and their memory is known."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from initadvisor.host.listen import pipe
from initadvisor.host.process import give_way

if TYPE_CHECKING:
    from collections.abc import Sequence


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

    def __init__(self) -> None:
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
        words = [told, report, _DEFAULT, str(_POLICY), *argv]
        return [sys.executable, "-I", "-S", "-c", _CODE, *words]

    def go(self, pid: int) -> None:
        """Let the launcher, which has process number ``pid``, start the program as an idle one."""
        self._told.close()
        self._report.close()
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
