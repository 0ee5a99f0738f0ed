"""What a report is made of: the answer of ``recommend``, its model, boots, what is in the image.

Everything in it may be given away: see ``report.privacy``. Times are in ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.advise.sweep import SweptFigures
    from initadvisor.core.config import Objective
    from initadvisor.core.estimates import Certainty, Estimate, SizeSource
    from initadvisor.core.settings import Setting
    from initadvisor.decide.cost import Outcome
    from initadvisor.decide.whatif_values import Rule, SettingFigures
    from initadvisor.image.contents import KindUse, StoredFile
    from initadvisor.report.published import PublishedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSetting:
    """A row of ``recommend``; ``unfit`` says why it may not be chosen, None where it may."""

    setting: Setting
    size_bytes: int
    size_source: SizeSource
    read_ms: Estimate
    unpack_ms: Estimate
    saving_ms: Estimate
    build_s: float | None
    build_cpu_s: float | None
    unfit: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What ``whatif`` computes with: settings that may be chosen, and this machine's conditions.

    ``build_cpu_s``: for each choice, the processor time of its build; None where it is not known.
    ``count_builds``: the objective adds a build's share to each boot. ``overlap_ms``: the middle of
    what it may be, see ``Recommendation``.
    """

    choices: tuple[SettingFigures, ...]
    build_cpu_s: tuple[float | None, ...]
    rule: Rule
    loader_mb_s: Estimate
    overlap_ms: Estimate
    boots_per_upgrade: float
    count_builds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedBoot:
    """One boot of this machine; ``reasons`` say why it does not count, empty where it does.

    ``read_ms`` is the interval that contains the reading of the image; ``init_ms`` is the time from
    the beginning of the unpacking until /init ran; ``whole_ms`` all of the boot that is known.
    """

    day: str
    kernel: str | None
    setting: Setting | None
    certainty: Certainty
    read_ms: float | None
    unpack_ms: float | None
    init_ms: float | None
    whole_ms: float | None
    reasons: tuple[str, ...]


class Lane(StrEnum):
    """What goes on side by side in a boot."""

    BOOT = "the boot"
    UNPACKING = "the image"
    MEANWHILE = "the kernel meanwhile"
    INITCALLS = "initcalls"
    INITRD_UNITS = "units of the initramfs"
    CRITICAL_CHAIN = "units on the critical chain of user space"

    @property
    def overlaps(self) -> bool:
        """Whether several stages of it may go on at a time."""
        return self in {Lane.INITCALLS, Lane.INITRD_UNITS, Lane.CRITICAL_CHAIN}

    @property
    def has_rows(self) -> bool:
        """Whether each of its stages has a row of its own, with its name beside the bar."""
        return self is not Lane.BOOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of one boot, from and to a moment of the kernel's clock; who says so."""

    lane: Lane
    name: str
    from_ms: float
    to_ms: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OneBoot:
    """A boot that is shown stage by stage."""

    day: str
    setting: Setting | None
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that is said about the machine."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole report.

    ``verdict``: as on the terminal, the sentence first; ``advice``: how sure it is and what would
    make it surer. ``machine``: four lines. ``model`` is None where less than two settings can be
    compared. ``boots``: the latest ones, the latest first, of ``recorded_boots``; ``one_boot``: the
    latest of them that counts and of which it is known when the image was unpacked. ``swept``: what
    sweeps of this image came to. ``versions``: of the programs that figures depend on.
    """

    version: str
    verdict: tuple[str, ...]
    advice: tuple[str, ...]
    outcome: Outcome
    objective: Objective
    today: Setting
    advised: Setting
    machine: tuple[Line, ...]
    settings: tuple[ReportedSetting, ...]
    model: Model | None
    swept: tuple[SweptFigures, ...]
    boots: tuple[ReportedBoot, ...]
    recorded_boots: int
    one_boot: OneBoot | None
    unpacked_bytes: int
    kinds: tuple[KindUse, ...]
    largest: tuple[StoredFile, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    context: tuple[str, ...]
    skipped: tuple[Line, ...]
    versions: tuple[str, ...]
    published: tuple[PublishedTable, ...]
