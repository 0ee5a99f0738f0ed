"""Who is told how virtual machines fare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from initadvisor.model.lab import LabSample, LabSubject, LostBoot


class LabObserver(Protocol):
    """Told of each boot as it ends."""

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Take note of a sample."""
        ...

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Take note of a boot that gave none."""
        ...
