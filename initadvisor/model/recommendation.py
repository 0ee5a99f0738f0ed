"""What ``recommend`` answers: every figure with its interval and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.model.candidate import Gap
    from initadvisor.model.cost import Decision, Objective
    from initadvisor.model.estimate import Estimate, Evidence, SizeSource
    from initadvisor.model.image import Lint
    from initadvisor.model.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate, weighed. Times are per boot; ``saving_ms`` is against today's setting.

    ``size_log_sd``: how far the size may be off, as a logarithm; 0 where there is a file. Of one
    that was not built the figures of building are estimates, too.
    ``build_s``, ``build_cpu_s`` and ``build_peak_bytes`` are None for an image that was found, not
    built. ``fits``: the boot partition has room for it beside today's image. ``unusable`` says why
    the generator cannot be configured for the setting, None where it can.
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
    fits: bool
    lint: Lint
    notes: tuple[str, ...] = ()
    unusable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where the image is read from, and how fast.

    ``read_mb_s`` is what was measured (or given, or assumed: its source says which);
    ``loader_mb_s`` what follows for the boot loader, whose drivers are not Linux's.
    """

    device: str
    kind: str
    read_mb_s: Estimate
    loader_mb_s: Estimate
    free_bytes: int
    room_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The whole answer.

    ``baseline`` is today's setting, its row is among ``rows``; ``baseline_source`` says where it is
    configured, or that it was read from the image. ``assumptions`` are the priors the answer rests
    on, ``warnings`` what the user should know before following it, ``context`` what in the
    generator's configuration matters more than the codec. ``unbuilt`` are the settings that may
    be the best and of which there is no candidate, only an estimate.
    """

    image: Path
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
    unbuilt: tuple[Setting, ...] = ()
    gaps: tuple[Gap, ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
