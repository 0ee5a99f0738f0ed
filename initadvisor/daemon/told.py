"""Tells systemd how the work goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.daemon.manager import tell_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.model.apply import StagedImage
    from initadvisor.model.candidate import Candidate, Gap
    from initadvisor.model.lab import LabSample, LabSubject, LostBoot
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.bench import Stream


class Told:
    """Observes every kind of work; what comes too often is not told."""

    def doing(self, what: str) -> None:
        """Tell what goes on."""
        tell_status(what)

    def started(self, setting: Setting) -> None:
        """Tell what is being built."""
        tell_status(f"building {setting}")

    def finished(self, candidate: Candidate, *, cached: bool) -> None:
        """Say nothing: the next one is told when it begins."""

    def gap(self, gap: Gap) -> None:
        """Tell what cannot be built."""
        tell_status(f"{gap.setting} cannot be built: {gap.reason}")

    def sampled(self, done: int, of: int) -> None:
        """Say nothing: there are many steps, of seconds each."""

    def timed(self, stream: Stream, elapsed_ms: float) -> None:
        """Say nothing: the same."""

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Tell which image a virtual machine has unpacked."""
        took = f"{sample.unpack_us / 1000:.0f} ms"
        tell_status(f"lab, round {sample.round}: {subject.setting} was unpacked in {took}")

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Tell which virtual machine was lost."""
        tell_status(f"lab, round {lost.round}: {subject.setting} gave no sample: {lost.reason}")

    def built(self, staged: Sequence[StagedImage]) -> None:
        """Tell what was built to be installed."""
        tell_status(f"built {len(staged)} images")
