"""Who is told how virtual machines fare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from initadvisor.candidates.decompression import Stream
    from initadvisor.core.settings import Setting
    from initadvisor.records.built_image import BuiltImage, SkippedSetting
    from initadvisor.records.lab import LabSample, LabSubject, LostBoot


class LabObserver(Protocol):
    """Receives each boot as it ends."""

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Take note of a sample."""
        ...

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Take note of a boot that gave none."""
        ...


class Unseen:
    """Observes everything and shows nothing, where nobody looks on."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """See ``BuildingObserver``."""

    def started(self, setting: Setting) -> None:
        """See ``BuildObserver``."""

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """See ``BuildObserver``."""

    def skipped(self, skipped: SkippedSetting) -> None:
        """See ``BuildObserver``."""

    def timed(self, stream: Stream, elapsed_ms: float) -> None:
        """See ``BenchObserver``."""

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """See ``LabObserver``."""

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """See ``LabObserver``."""
