"""What ``recommend`` answers: every figure with its interval and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.candidates.schedule import build_range
from initadvisor.core.codecs import Codec
from initadvisor.image.contents import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.candidates.schedule import BuildRange
    from initadvisor.core.config import Objective
    from initadvisor.core.estimates import Estimate, Evidence, SizeSource
    from initadvisor.core.settings import Setting
    from initadvisor.decide.boot_evidence import Parameter
    from initadvisor.decide.cost import DecidingFact, Decision
    from initadvisor.decide.decision import Contrast
    from initadvisor.decide.explanation import Explanation
    from initadvisor.decide.next_boot import Purpose
    from initadvisor.decide.upgrades import UpgradePace
    from initadvisor.image.contents import ImageContents, Lint
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.target.kernel_room import KernelRoom


LIKE_TODAY = "it is as large as today's image, which may be made with it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate, weighed. Times are per boot; ``saving_ms`` is against today's setting.

    ``size_log_sd``: how far the size may be off, as a logarithm; 0 where there is a file. Of one
    that was not built the figures of building are estimates, too.
    ``build_s``, ``build_cpu_s`` and ``build_peak_bytes`` are None for an image that was found, not
    built. ``fits``: the boot partition has room for it beside today's image, None where that is not
    known. ``more_kernels``: so many fit there after a switch to it. ``unusable`` says why it is not
    advised on this machine (its generator cannot be configured for the setting, the build needs
    more memory than there is, the image has failed in a trial, or it may be today's, whose times it
    then has), None where it may be.
    """

    setting: Setting
    size_bytes: int
    size_log_sd: float
    size_source: SizeSource
    read_ms: Estimate
    unpack_ms: Estimate
    total_ms: Estimate
    saving_ms: Estimate
    build_s: float | None
    build_cpu_s: float | None
    build_peak_bytes: int | None
    fits: bool | None
    lint: Lint
    more_kernels: int | None = None
    notes: tuple[str, ...] = ()
    unusable: str | None = None

    @property
    def unfit(self) -> str | None:
        """Why the setting may not be chosen on this machine; None where it may."""
        if self.lint.verdict is Verdict.REFUSED:
            return f"its kernel would refuse it: {'; '.join(self.lint.reasons)}"
        if self.unusable is not None:
            return self.unusable
        return "the boot partition has no room for it" if self.fits is False else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where the image is read from, and how fast.

    ``read_mb_s`` is what was measured (or given, or assumed: its source says which);
    ``loader_mb_s`` what follows for the boot loader, whose drivers are not Linux's. ``free_bytes``
    and ``room_on`` are None where the room for images is not known.
    """

    device: str
    kind: str
    read_mb_s: Estimate
    loader_mb_s: Estimate
    free_bytes: int | None
    room_on: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """What is likeliest to be better than the setting that is advised.

    ``probability``: that it is, by more than the tolerance. ``contrast``: what the advised setting
    costs more than it.
    """

    setting: Setting
    probability: float
    contrast: Contrast


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBoots:
    """So many boots of a setting."""

    setting: Setting
    boots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The boots that would settle the decision, see ``BootPlan``; the first one's setting is next.

    ``enough``: that they do is likely; where they are not, ``boots`` ends where a plan has to.
    ``contrast``: of the two settings whose difference is in question. ``loader_seen``: what boots
    of this machine tell shows how long the loader reads. ``unbuilt``: those of the settings that
    have to be built before they can boot.
    """

    purpose: Purpose
    boots: tuple[PlannedBoots, ...]
    chance: float
    enough: bool
    contrast: Contrast
    loader_seen: bool
    unbuilt: tuple[Setting, ...]

    @property
    def following(self) -> Setting:
        """The setting to boot next."""
        return self.boots[0].setting

    @property
    def count(self) -> int:
        """How many boots these are."""
        return sum(planned.boots for planned in self.boots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something that an answer rests on, in words.

    ``about``: what it is about of what all candidates share; None where it is not the machine.
    ``boots``: how many told of it. ``certain``: it is not assumed, but given or otherwise known.
    """

    about: Parameter | None
    text: str
    boots: int = 0
    certain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The whole answer.

    ``baseline`` is today's setting, its row is among ``rows``: what saves most comes first (what is
    smallest where sizes decide), what may not be chosen last. ``baseline_source`` says where it is
    configured, or that it was read from the image. ``assumptions`` are what the answer rests on:
    priors, or what boots made of them; ``warnings`` what the user should know before following it,
    ``context`` what in the generator's configuration or in the image matters more than the codec,
    ``excess`` the line of it about files that cost more than a setting saves. ``unbuilt`` are the
    settings that may be the best and of which there is no candidate, only an estimate.
    ``deciding``: what would settle a decision that is open. ``deciding``, ``rival`` and ``plan``
    are None where sizes decide, ``deciding`` also where the decision is not open, ``plan`` where
    nothing is left to find out or boots of this machine tell nothing of the image.
    ``hinges_on_build``: the decision is open only because it is not known what building today's
    image takes, of which boots tell nothing; then both are None, too. ``pace`` divides the builds.
    ``explanation``: None where nobody asked for it. ``installed``: the image is the one that this
    machine boots. ``given``: what the user knows of the machine, in words. ``overlap_ms``: how long
    the kernel is taken to be busy before it needs the initramfs. ``contents``: of the image.
    ``only_asked``: nothing but what the user named is compared. ``room``: that of the boot
    partition, None where there is none or it is not this machine's image.
    """

    image: Path
    image_sha256: str
    sample: bool
    generator: str
    kernel_release: str | None
    baseline: Setting
    baseline_source: str
    objective: Objective
    certainty: float
    evidence: Evidence
    decision: Decision
    storage: Storage
    unpacked_bytes: int
    whole_boot_ms: float | None
    rows: tuple[Row, ...]
    pace: UpgradePace
    deciding: DecidingFact | None = None
    rival: Rival | None = None
    plan: Plan | None = None
    hinges_on_build: bool = False
    explanation: Explanation | None = None
    unbuilt: tuple[Setting, ...] = ()
    skipped: tuple[SkippedSetting, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    excess: str | None = None
    installed: bool = True
    given: tuple[str, ...] = ()
    overlap_ms: Estimate | None = None
    contents: ImageContents | None = None
    only_asked: bool = False
    room: KernelRoom | None = None


def build_cpu_s(row: Row, rows: Sequence[Row]) -> float | None:
    """Return what building a row took; of an image nobody built, the middle of what it may be."""
    if row.build_cpu_s is not None or row.setting.codec is Codec.CAT:
        return row.build_cpu_s or 0.0
    spread = unknown_build(row, rows)
    return spread.middle_s if spread else None


def unknown_build(row: Row, rows: Sequence[Row]) -> BuildRange | None:
    """Return what building an image that nobody built may take; None where it or nothing is known.

    By what the builds of the other ``rows`` take.
    """
    if row.build_cpu_s is not None or row.setting.codec is Codec.CAT:
        return None
    known = ((other.setting, other.build_cpu_s) for other in rows)
    return build_range(
        row.setting,
        [(one, cpu_s) for one, cpu_s in known if cpu_s is not None],
        like={other.setting for other in rows if other.unusable == LIKE_TODAY},
    )
