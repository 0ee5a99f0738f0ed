"""Measuring machines made of files, whose real journal is told nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.model.boot_marks import BootMarks, KernelBoot, ShadowObservation, Waiting
from initadvisor.workflow.measure import measure
from tests.fixtures.booted import RELEASE, Booted

if TYPE_CHECKING:
    from initadvisor.workflow.measure import Measured
    from tests.fixtures.journals import Boot


NTP = {"_SYSTEMD_UNIT": "systemd-timesyncd.service"}


class Silent:
    """Observes nothing."""

    def doing(self, what: str) -> None:
        """Say nothing."""
        del what


def measured(machine: Booted, *, backfill: bool = False, dry_run: bool = False) -> Measured:
    """Measure on a machine."""
    return measure(machine.host(), observer=Silent(), backfill=backfill, dry_run=dry_run)


def ended(boot: Boot, target: str = "reboot.target") -> Boot:
    """Have a boot's clock set and let it end."""
    boot.add(**NTP, MESSAGE="Initial clock synchronization to Sat 2026-03-01 12:00:00 UTC.")
    return boot.manager("Reached target.", UNIT=target, JOB_RESULT="done")


def kernel(unpack_us: int | None, *, missed: int = 0, release: str | None = RELEASE) -> KernelBoot:
    """Return what a ring of messages told."""
    end_us = None if unpack_us is None else 300_000 + unpack_us
    marks = BootMarks(
        release=release,
        begun=True,
        freed=True,
        begin_us=300_000,
        end_us=end_us,
        run_init_us=2_000_000,
        run_program="/init",
        loaded_kib=42152,
        missed_messages=missed,
        messages=9,
    )
    return KernelBoot(marks=marks, shadow=ShadowObservation(waiting=Waiting.UNKNOWN))
