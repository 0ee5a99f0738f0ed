"""One boot of a machine: all that is known of it, why it may be no sample, and how it is kept.

A boot of another kind (on battery, in a virtual machine, another kernel, command line or hardware)
is a sample all the same, of its own class.

As plain values for JSON, and as text, records are kept and exchanged between machines, so nothing
that is read is trusted: whatever is no record, or is too large for one, raises ``ValueError``.
Text is only made of what is sure to be read again.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, Self

from initadvisor.core.estimates import Certainty
from initadvisor.core.plain_values import from_json
from initadvisor.core.serialisation import ReadLimits, from_plain, to_plain
from initadvisor.core.settings import Setting
from initadvisor.records import attribution, boot_start, marks, modules, read_interval
from initadvisor.records.attribution import ImageEvidence
from initadvisor.records.boot_class import FIRMWARE_BEGINS, BootClass
from initadvisor.records.boot_start import LoaderTimes, Phase, PhaseSource
from initadvisor.records.read_interval import ReadInterval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from initadvisor.core.serialisation import Plain
    from initadvisor.records.attribution import Attribution, KnownImage
    from initadvisor.records.boot_start import BootStart, PhaseTime
    from initadvisor.records.marks import BootStep, KernelTimestamps, ShadowObservation
    from initadvisor.records.modules import ModuleUse
    from initadvisor.records.read_interval import NoInterval


class RejectionReason(StrEnum):
    """Why a boot is no sample."""

    NO_MESSAGES = "no-messages"
    NO_TIMES = "no-times"
    NO_INITRAMFS = "no-initramfs"
    NO_BEGIN = "no-begin"
    NO_END = "no-end"
    MESSAGES_LOST = "messages-lost"
    CONTRADICTORY = "contradictory"
    UNPACK_FAILED = "unpack-failed"
    PANICKED = "panicked"
    OOPSED = "oopsed"
    RETAINED = "retained"
    DEBUG_KERNEL = "debug-kernel"
    CRASH_KERNEL = "crash-kernel"
    KEXEC = "kexec"
    SOFT_REBOOT = "soft-reboot"
    HIBERNATION = "hibernation"
    EMERGENCY = "emergency"
    MENU = "menu"

    @property
    def explanation(self) -> str:
        """One line for people."""
        return _EXPLANATIONS[self]

    @property
    def only_loader(self) -> bool:
        """Whether the kernel's part of such a boot is a sample all the same.

        The kernel unpacks the image once, before anything of this can happen or whatever the
        loader did before; only the times of firmware and loader belong to something else.
        """
        return self in {
            RejectionReason.SOFT_REBOOT,
            RejectionReason.HIBERNATION,
            RejectionReason.MENU,
        }


_EXPLANATIONS = {
    RejectionReason.NO_MESSAGES: "the kernel's messages of this boot are gone",
    RejectionReason.NO_TIMES: (
        "the kernel's messages carry no times, or none that tell how long it took"
    ),
    RejectionReason.NO_INITRAMFS: "the boot loader passed no initramfs that the kernel could use",
    RejectionReason.NO_BEGIN: "the message that unpacking begins is missing",
    RejectionReason.NO_END: "the message that unpacking has ended is missing",
    RejectionReason.MESSAGES_LOST: "kernel messages were lost before /init ran",
    RejectionReason.CONTRADICTORY: "the kernel's marks cannot all be of one boot",
    RejectionReason.UNPACK_FAILED: "the kernel could not unpack the image, or not all of it",
    RejectionReason.PANICKED: "the kernel panicked before /init ran",
    RejectionReason.OOPSED: "the kernel met an error of its own (oops, BUG) before /init ran",
    RejectionReason.RETAINED: (
        "retain_initrd or keepinitrd: the kernel does not say when it has unpacked"
    ),
    RejectionReason.DEBUG_KERNEL: "a kernel with aids for debugging that slow it down",
    RejectionReason.CRASH_KERNEL: "a kernel that was started to save a crash dump",
    RejectionReason.KEXEC: "started by another kernel (kexec), not by firmware and loader",
    RejectionReason.SOFT_REBOOT: "a soft reboot since: user space's times are not the boot's",
    RejectionReason.HIBERNATION: (
        "a resume from hibernation since: the loader's times are not the boot's"
    ),
    RejectionReason.EMERGENCY: "the boot ended in emergency mode",
    RejectionReason.MENU: "the loader's menu was shown: its time includes somebody's decision",
}


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
        return {RecordSource.UNIT: 3, RecordSource.BACKFILL: 2, RecordSource.IMPORT: 1}[self]


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
    context; ``initcalls`` and ``initrd_units``: the longest of what the kernel and the systemd of
    the initramfs did, where they said so; ``critical_chain``: of user space,
    by systemd-analyze(1). ``modules``: what was loaded and present, None where nobody looked.
    ``rejections``: why it is no sample, nothing where it is one; boots of different classes are not
    to be compared all the same. ``notes``: what was there but could not be used, in words.
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
    initcalls: tuple[BootStep, ...] = ()
    initrd_units: tuple[BootStep, ...] = ()
    critical_chain: tuple[BootStep, ...] = ()
    modules: ModuleUse | None = None
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
    def initramfs_us(self) -> int | None:
        """From /init until systemd began on the root file system, with or without one before it.

        Of two clocks: milliseconds off, the same in each boot.
        """
        known = {one.phase: one.duration_us for one in self.phases if one.source is _MANAGER}
        begun_us = self.timestamps.run_init_us
        if begun_us is None or Phase.KERNEL not in known:
            return None
        return max(0, known[Phase.KERNEL] + known.get(Phase.INITRD, 0) - begun_us) or None

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


_MANAGER = PhaseSource.MANAGER


def _key(parts: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


_LIMITS = ReadLimits(characters=8192, items=256, unknown_names=True)
_IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)

_NAMES = (
    *(attribution, marks, modules, boot_start, read_interval),
    *(Certainty, Setting, datetime),
)


def as_plain(record: BootRecord) -> dict[str, Plain]:
    """Return a record as plain values; a field that has its default is left out."""
    return to_plain(record, defaults=False)


def as_record(plain: object) -> BootRecord:
    """Return the record that plain values stand for; names that are not known are passed over.

    Raises ``ValueError`` for what is no record; the message says where.
    """
    record = from_plain(BootRecord, plain, names=_NAMES, limits=_LIMITS)
    for where, identifier in (("boot_id", record.boot_id), ("machine", record.machine)):
        if identifier is not None and not _IDENTIFIER.fullmatch(identifier):
            msg = f"{where} cannot be {identifier[:60]!r}"
            raise ValueError(msg)
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class BootModules:
    """What a record has of modules; its other fields are not looked at, which takes time."""

    started_at: datetime
    boot_class: BootClass = field(default_factory=BootClass)
    modules: ModuleUse | None = None

    @classmethod
    def of_record(cls, plain: object) -> Self:
        """Return that of a record as plain values; raises ``ValueError`` for what is none."""
        return from_plain(cls, plain, names=_NAMES, limits=_LIMITS)


_EXPORTED = {
    "shadow": "overlap",
    "shadow_us": "overlap_us",
    "shadow_min_us": "overlap_min_us",
    "shadow_max_us": "overlap_max_us",
}
"""What the kept form of a record calls otherwise than documents for others."""


def as_exported(record: BootRecord) -> dict[str, Plain]:
    """Return a record as plain values, as others read them."""
    plain = _renamed(as_plain(record), _EXPORTED)
    return {**plain, "overlap": _renamed(plain["overlap"], _EXPORTED)}


def from_exported(plain: object) -> BootRecord:
    """Return the record that ``as_exported`` was given; raises as ``as_record`` does."""
    kept = {name: own for own, name in _EXPORTED.items()}
    renamed = _renamed(plain, kept)
    if isinstance(renamed, dict) and "shadow" in renamed:
        renamed["shadow"] = _renamed(renamed["shadow"], kept)
    return as_record(renamed)


def _renamed(plain: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - of unknown origin
    return {names.get(k, k): v for k, v in plain.items()} if isinstance(plain, dict) else plain


_HOUR_US = 3_600_000_000
"""No part of a boot that is measured here takes longer; systemd has the same bound."""

_YEAR_US = 366 * 24 * _HOUR_US
_MOST = {"_us": _YEAR_US, "_ns": _YEAR_US * 1000, "_kib": 1 << 30, "_bytes": 1 << 40}
"""By their unit, what numbers are at most: whoever reads more has misread."""

_FIRST_YEAR, _LAST_YEAR = 1970, 2999
_LONGEST = 100_000
"""Characters; what is exported as a table has to fit a field of csv's (131072)."""


class UnfitRecordError(ValueError):
    """A record that no boot can have left, or that could not be read again; says why."""


def as_text(record: BootRecord) -> str:
    """Return a record as JSON in ASCII; ``as_record`` gives it back as it was.

    Raises ``UnfitRecordError`` where it would not, and for figures that no boot can have: what was
    misread, or made up, is best told when it is about to be kept.
    """
    try:
        plain = as_plain(record)
        if problem := next(_problems(record, plain), None):
            raise UnfitRecordError(problem)
        text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
        # Lone surrogates: those that stand for a byte of a path can be kept as text, others not.
        json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogateescape")
        same = as_record(from_json(text)) == record
    except UnfitRecordError:
        raise
    except UnicodeEncodeError as err:
        msg = "it holds text that is none"
        raise UnfitRecordError(msg) from err
    except ValueError as err:
        raise UnfitRecordError(str(err)) from err
    except (TypeError, AttributeError, OverflowError) as err:
        msg = f"it holds what no record does: {str(err)[:200]}"
        raise UnfitRecordError(msg) from err
    if not same:
        msg = "it would not be read again as it is"
        raise UnfitRecordError(msg)
    if len(text) > _LONGEST:
        msg = f"it is longer than {_LONGEST} characters"
        raise UnfitRecordError(msg)
    return text


def _problems(record: BootRecord, plain: Plain) -> Iterator[str]:
    """Say what cannot be, or cannot be together, or is too long for a part of a boot.

    Marks of a boot that is no sample may be in any order: that is most often why it is none.
    """
    yield from _impossible_numbers(plain, "record")
    if not _FIRST_YEAR <= record.started_at.year <= _LAST_YEAR:
        yield f"record.started_at cannot be {record.started_at.isoformat()}"
    seen = record.shadow
    for name, duration_us in (
        ("unpack_us", record.unpack_us),
        ("begin_to_init_us", record.begin_to_init_us),
        ("slack_us", record.timestamps.slack_us),
        ("read_us", record.read_us),
        ("reboot_gap_us", record.reboot_gap.duration_us),
        ("shadow_us", seen.shadow_us),
        ("shadow_min_us", seen.shadow_min_us),
        ("shadow_max_us", seen.shadow_max_us),
        ("rest_us", seen.rest_us),
    ):
        if duration_us is not None and duration_us > _HOUR_US:
            yield f"{name} cannot be {duration_us}"
    if not record.kernel_counts:
        return
    if record.unpack_us is None:
        yield "the boot has no time to unpack, and no reason for that"
    marks = (record.timestamps.begin_us, record.timestamps.end_us, record.timestamps.run_init_us)
    told = [mark for mark in marks if mark is not None]
    if told != sorted(told):
        yield f"the kernel's marks are not in order: {', '.join(map(str, told))}"


def _impossible_numbers(plain: Plain, where: str) -> Iterator[str]:
    match plain:
        case bool() | str() | None:
            pass
        case int() | float():
            most = next((most for unit, most in _MOST.items() if where.endswith(unit)), inf)
            if plain < 0 or plain > most:
                yield f"{where} cannot be {plain}"
        case dict():
            for name, value in plain.items():
                yield from _impossible_numbers(value, f"{where}.{name}")
        case list():
            for value in plain:
                yield from _impossible_numbers(value, where)
