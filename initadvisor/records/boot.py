"""One boot of a machine: all that is known of it, as it is kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Certainty
from initadvisor.records.attribution import ImageEvidence
from initadvisor.records.boot_class import FIRMWARE_BEGINS, BootClass
from initadvisor.records.boot_start import LoaderTimes
from initadvisor.records.read_interval import ReadInterval

if TYPE_CHECKING:
    from datetime import datetime

    from initadvisor.core.settings import Setting
    from initadvisor.records.attribution import Attribution, KnownImage
    from initadvisor.records.boot_start import BootStart
    from initadvisor.records.marks import KernelTimestamps, ShadowObservation
    from initadvisor.records.phases import PhaseTime
    from initadvisor.records.read_interval import NoInterval
    from initadvisor.records.rejection import RejectionReason


class RecordSource(StrEnum):
    """How a record came about.

    ``unit``: measured while that boot was running. ``backfill``: read from this machine's journal
    afterwards, without what only the running system shows. ``import``: of another machine.
    """

    UNIT = "unit"
    BACKFILL = "backfill"
    IMPORT = "import"

    @property
    def rank(self) -> int:
        """What is kept of two records of one boot: that of the higher rank, else the first."""
        match self:
            case RecordSource.UNIT:
                return 3
            case RecordSource.BACKFILL:
                return 2
            case RecordSource.IMPORT:
                return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootGapTime:
    """The time from the boot before to this kernel's start; None without, and then why in words."""

    duration_us: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRecord:
    """One boot; ``boot_id`` is the kernel's (32 hexadecimal digits).

    ``machine``: tells machines apart without telling which they are; None where it is not known.
    ``started_at``: when the kernel started, by the wall clock. ``timestamps`` come without the
    command line, of which only a digest is kept, in ``boot_class``. ``read``: the interval that
    contains the reading of the image, with what else is in it. ``phases``: the whole boot, for
    context. ``rejections``: why it is no sample, nothing where it is one; boots of different
    classes are not to be compared all the same. ``notes``: what was there but could not be used, in
    words.
    """

    boot_id: str
    source: RecordSource
    machine: str | None = None
    started_at: datetime
    start: BootStart
    timestamps: KernelTimestamps
    shadow: ShadowObservation
    boot_class: BootClass = field(default_factory=BootClass)
    times: LoaderTimes = field(default_factory=LoaderTimes)
    read: ReadInterval | NoInterval
    phases: tuple[PhaseTime, ...] = ()
    reboot_gap: RebootGapTime = RebootGapTime()
    evidence: ImageEvidence = field(default_factory=ImageEvidence)
    attribution: Attribution
    rejections: tuple[RejectionReason, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unpack_us(self) -> int | None:
        """How long the kernel took to unpack (U of the cost model)."""
        return self.timestamps.unpack_us

    @property
    def begin_to_init_us(self) -> int | None:
        """From the beginning of unpacking until /init runs: max(B1, U) + B2."""
        return self.timestamps.begin_to_init_us

    @property
    def loaded_bytes(self) -> int | None:
        """What the loader handed over, exactly where that is known, else rounded up to pages."""
        if self.evidence.loaded_bytes is not None:
            return self.evidence.loaded_bytes
        return None if self.timestamps.loaded_kib is None else self.timestamps.loaded_kib * 1024

    @property
    def read_us(self) -> int | None:
        """The interval that contains the reading of the image; ``read`` says what else."""
        return self.read.duration_us if isinstance(self.read, ReadInterval) else None

    @property
    def kernel_counts(self) -> bool:
        """Whether the kernel's part (marks and shadow) is a sample."""
        return all(reason.only_loader for reason in self.rejections)

    @property
    def loader_counts(self) -> bool:
        """Whether the part of firmware and loader (``read``) is a sample."""
        return not self.rejections

    @property
    def image(self) -> KnownImage | None:
        """The image, where it is certain."""
        certain = self.attribution.certainty is Certainty.CERTAIN
        return self.attribution.image if certain else None

    @property
    def class_key(self) -> str:
        """The same for boots of one class, whether measured while they ran or read from a journal.

        So of the hardware only what the kernel's messages name counts; see ``BootClass``. The disk
        is none of it, which matters to the reading alone.
        """
        known, machine = self.boot_class, self.timestamps.machine
        parts = (
            *(known.virtualisation, known.on_battery or False, known.kernel),
            *(known.command_line_sha256, machine.product, machine.processor, machine.microcode),
        )
        return _key(parts)

    @property
    def hardware_key(self) -> str:
        """The same for boots of one board and processor; most virtual machines have their own.

        Firmware and microcode are updated, which changes the class but not the machine.
        """
        machine = self.timestamps.machine
        product = (machine.product or "").partition(FIRMWARE_BEGINS)[0]
        return _key((product, machine.processor))

    @property
    def setting(self) -> Setting | None:
        """The setting that made the image, where both are certain."""
        return self.image.setting if self.image else None


def _key(parts: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
