"""Those that are weighed: today's image and its candidates, built or estimated from a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.campaign.record import failed_in_trials
from initadvisor.candidates.decompression import Stream
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import SizeSource
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.candidates.estimates import SampledCandidate
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage
    from initadvisor.target.baseline import Baseline
    from initadvisor.target.source import Source


_CPIO_ALIGNMENT = 4
_Z95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCost:
    """What a build takes: seconds from start to end, of processor time, and its peak memory."""

    build_s: float
    build_cpu_s: float
    build_peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An image to weigh: one that is there, with its main segment, or one that would be.

    ``size`` is that of the whole image, in bytes. ``digest`` is the image's SHA-256; of one that
    is only estimated (``stream`` is None, ``sampled`` is there) the key of its recipe, which is no
    image's. ``cost`` is None for an image that was found and nobody built. ``unusable`` says why
    the generator cannot be configured for the setting or how the image failed in a trial, None
    where nothing is against it.
    """

    setting: Setting
    size: Quantity
    digest: str
    stream: Stream | None
    sampled: SampledCandidate | None = None
    cost: BuildCost | None = None
    notes: tuple[str, ...] = ()
    today: bool = False
    unusable: str | None = None

    @property
    def codec(self) -> Codec:
        """The main segment's codec."""
        return self.stream.codec if self.stream else self.setting.codec

    @property
    def largest_bytes(self) -> float:
        """The upper bound of the size's 95 % interval."""
        return self.size.median * exp(_Z95 * self.size.log_sd)

    @property
    def size_source(self) -> SizeSource:
        """Whether the size is that of a file."""
        return SizeSource.BUILT if self.stream else SizeSource.SAMPLED


def all_candidates(
    host: Host,
    generator: Generator,
    source: Source,
    baseline: Baseline,
    candidates: Sequence[BuiltImage],
    sampled: Sequence[SampledCandidate] = (),
) -> tuple[Candidate, ...]:
    """Return today's image first, then every candidate with another setting.

    Today's row is the image in use, as it is; from its candidate it has the cost of building. Where
    only today's codec is known, the candidate with the codec's default level is named by its level.
    """
    known = [_built(candidate) for candidate in candidates]
    known += [_estimated(source, one) for one in sampled]
    own = [c for c in known if baseline.certain and c.setting == baseline.setting]
    today = Candidate(
        setting=baseline.setting,
        size=Quantity(median=float(source.contents.initrd.size_bytes), source="the image's own"),
        digest=source.initrd_sha256,
        stream=Stream(
            path=source.path,
            offset=source.contents.main.offset,
            size_bytes=source.main_bytes,
            codec=source.contents.main.codec,
            sha256=source.initrd_sha256,
        ),
        cost=own[0].cost if own else None,
        notes=own[0].notes if own else (),
        today=True,
    )
    others = [c for c in known if c not in own]
    failed = failed_in_trials(host)
    return (
        today,
        *(
            replace(
                other,
                setting=_named_by_level(host, generator, other.setting, baseline),
                unusable=generator.unusable(host, other.setting) or _failed(failed, other),
            )
            for other in others
        ),
    )


def _failed(failed: Mapping[str, str], candidate: Candidate) -> str | None:
    reason = failed.get(candidate.digest)
    return None if reason is None else f"it failed in a trial: {reason}"


def _built(candidate: BuiltImage) -> Candidate:
    return Candidate(
        setting=candidate.setting,
        size=Quantity(median=float(candidate.size_bytes), source="built"),
        digest=candidate.sha256,
        stream=Stream(
            path=Path(candidate.path),
            offset=candidate.main_offset,
            size_bytes=candidate.size_bytes - candidate.main_offset,
            codec=candidate.setting.codec,
            sha256=candidate.sha256,
        ),
        cost=BuildCost(
            build_s=candidate.build_s,
            build_cpu_s=candidate.build_cpu_s,
            build_peak_bytes=candidate.build_peak_bytes,
        ),
        notes=candidate.notes,
    )


def _estimated(source: Source, sampled: SampledCandidate) -> Candidate:
    """Return what would be built: what stands before the main segment is the same in it."""
    main, prefix = sampled.main_bytes, source.prefix_bytes
    if sampled.setting.codec is Codec.CAT:
        prefix += -prefix % _CPIO_ALIGNMENT
    return Candidate(
        setting=sampled.setting,
        size=replace(
            main,
            median=main.median + prefix,
            log_sd=main.log_sd * main.median / max(main.median + prefix, 1.0),
        ),
        digest=sampled.key,
        stream=None,
        sampled=sampled,
        cost=BuildCost(
            build_s=sampled.build_s,
            build_cpu_s=sampled.build_cpu_s,
            build_peak_bytes=sampled.build_peak_bytes,
        ),
    )


def _named_by_level(
    host: Host, generator: Generator, setting: Setting, baseline: Baseline
) -> Setting:
    if setting != baseline.setting:
        return setting
    level = generator.default_level(host, setting)
    return setting if level is None else Setting.at_level(setting.codec, level)
