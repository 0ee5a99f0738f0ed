"""One line on a terminal's stderr that tells what is going on; nothing anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status

    from initadvisor.candidates.decompression import Stream
    from initadvisor.core.settings import Setting
    from initadvisor.records.built_image import BuiltImage, SkippedSetting
    from initadvisor.records.lab import LabSample, LabSubject, LostBoot


class Progress:
    """Observes builds and measurements; the line is gone when the context ends."""

    def __init__(self) -> None:
        self._status: Status | None = None
        self._building: list[Setting] = []
        self._built = 0

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console

            console = Console(stderr=True, highlight=False)
            self._status = console.status("reading the image")
            self._status.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._status:
            self._status.stop()

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Show what goes on, and how much of it is done."""
        if self._status:
            from rich.text import Text

            self._status.update(Text(f"{what}: {done} of {of}" if of else what))

    def started(self, setting: Setting) -> None:
        """Show one more setting that is being built."""
        self._building.append(setting)
        self._show_building()

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """Show one less."""
        del cached
        self._ended(candidate.setting)

    def skipped(self, skipped: SkippedSetting) -> None:
        """Show one less; the reason is part of the result."""
        self._ended(skipped.setting)

    def sampled(self, done: int, of: int) -> None:
        """Show how much of the sampling is done."""
        self.doing(f"compressing a sample with every setting: {done} of {of} steps done")

    def timed(self, stream: Stream, elapsed_ms: float) -> None:
        """Show what was timed last."""
        self.doing(f"timing decompression: {stream.codec} took {elapsed_ms:.0f} ms")

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Show what was booted last."""
        took = f"{sample.unpack_us / 1000:.0f} ms"
        self.doing(f"round {sample.round}: {subject.setting} was unpacked in {took}")

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Show what was lost last; the reason is part of the result."""
        self.doing(f"round {lost.round}: {subject.setting} gave no sample")

    def _ended(self, setting: Setting) -> None:
        self._built += 1
        if setting in self._building:
            self._building.remove(setting)
        self._show_building()

    def _show_building(self) -> None:
        names = ", ".join(str(setting) for setting in self._building)
        self.doing(f"{self._built} candidates done; building {names or 'none'}")
