"""One line on a terminal's stderr that tells what is going on."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from initadvisor.core.text import shown

if TYPE_CHECKING:
    from initadvisor.candidates.decompression import Stream
    from initadvisor.core.settings import Setting
    from initadvisor.records.built_image import BuiltImage, SkippedSetting
    from initadvisor.records.lab import LabSample, LabSubject, LostBoot


_BAR = 20
_EVERY_S = 0.1
_ALIVE_S = 1.0
_LEAST_S = 1.0
"""Before so long nothing is said of how long a phase will take."""

_ERASE = "\r\x1b[2K"

LAB_TAKES = "building candidates and booting them in virtual machines takes 2 to 20 minutes"
"""What is said of the lab where its progress is not shown."""


@dataclass(slots=True, kw_only=True)
class _Phase:
    """What goes on: named before the first colon, what is told after it may change."""

    what: str
    began_s: float
    done: int = 0
    of: int = 0

    @property
    def name(self) -> str:
        """What stays the same as long as the phase does."""
        return self.what.partition(":")[0]

    def line(self, now_s: float) -> str:
        """Return the name, the bar and how long it may take, or has taken."""
        took_s = now_s - self.began_s
        if not self.of:
            return f"{self.what} ({took_s:.0f} s)" if took_s >= _LEAST_S else self.what
        part = min(self.done / self.of, 1.0)
        full = round(_BAR * part)
        line = f"{self.what} [{'#' * full}{'.' * (_BAR - full)}] {100 * part:3.0f} %"
        if took_s < _LEAST_S or not part:
            return line
        return f"{line}, {took_s * (1 - part) / part:.0f} s left"


class Progress:
    """Observes builds and measurements; the line is gone when the context ends.

    Where stderr is no terminal, all there is to see is ``elsewhere``, which says how long it takes,
    once the first candidate is built or booted.
    """

    def __init__(self, *, elsewhere: str = "") -> None:
        self._elsewhere = elsewhere
        self._phase = _Phase(what="beginning", began_s=time.monotonic())
        self._drawn_s = 0.0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._drawing: threading.Thread | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            for handler in logging.getLogger().handlers:
                handler.addFilter(self._erase)
            self._drawing = threading.Thread(target=self._keep_drawing, daemon=True)
            self._drawing.start()
            self._elsewhere = ""
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._drawing:
            self._over.set()
            self._drawing.join()
            for handler in logging.getLogger().handlers:
                handler.removeFilter(self._erase)
            self._erase()

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Show what goes on, and how much of it is done."""
        now_s = time.monotonic()
        next_phase = _Phase(what=what, began_s=now_s, done=done, of=of)
        with self._lock:
            new = next_phase.name != self._phase.name
            if not new:
                next_phase.began_s = self._phase.began_s
            self._phase = next_phase
        if self._drawing and (new or now_s - self._drawn_s > _EVERY_S):
            self._draw()

    def _erase(self, _record: object = None) -> bool:
        """Make room for a line of the log, which is always printed."""
        sys.stderr.write(_ERASE)
        sys.stderr.flush()
        return True

    def _keep_drawing(self) -> None:
        """Show that time goes by."""
        while not self._over.wait(_ALIVE_S):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            self._drawn_s = time.monotonic()
            line = shown(self._phase.line(self._drawn_s))
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"{_ERASE}{line[:width]}")
            sys.stderr.flush()

    def _announce(self) -> None:
        """Say how long it takes, where nothing else is shown."""
        if self._elsewhere:
            sys.stderr.write(f"initadvisor: {self._elsewhere}\n")
            sys.stderr.flush()
            self._elsewhere = ""

    def started(self, setting: Setting) -> None:
        """Say how long it takes; ``doing`` shows what is being built."""
        del setting
        self._announce()

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """Show nothing: ``doing`` does."""

    def skipped(self, skipped: SkippedSetting) -> None:
        """Show nothing: the reason is part of the result."""

    def timed(self, stream: Stream, elapsed_ms: float) -> None:
        """Show what was timed last."""
        self.doing(f"timing decompression: {stream.codec} took {elapsed_ms:.0f} ms")

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Show what was booted last."""
        self._announce()
        took = f"{sample.unpack_us / 1000:.0f} ms"
        self.doing(f"booting: round {sample.round}, {subject.setting} was unpacked in {took}")

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Show what was lost last; the reason is part of the result."""
        self.doing(f"booting: round {lost.round}, {subject.setting} gave no sample")
