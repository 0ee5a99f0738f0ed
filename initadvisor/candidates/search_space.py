"""What every comparison begins with: an image, and its candidates, built or estimated."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.campaign import CAMPAIGNS
from initadvisor.candidates.build import BuildObserver, build_candidates, kept_candidates
from initadvisor.candidates.controls import buffer_bytes, is_far, window_log
from initadvisor.candidates.decompression import Stream
from initadvisor.candidates.estimates import estimates
from initadvisor.candidates.plan import build_commands, plan_settings
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import NeedsRootError, side_fact
from initadvisor.core.estimates import SizeSource
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Quantity
from initadvisor.target.baseline import identified, todays_setting
from initadvisor.target.source import open_source
from initadvisor.transaction import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from initadvisor.candidates.estimates import SampledCandidate
    from initadvisor.candidates.sampler import SampleObserver
    from initadvisor.core.config import Config
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage, SkippedSetting
    from initadvisor.target.baseline import Baseline
    from initadvisor.target.source import ReadObserver, Source
    from initadvisor.target.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """An image, open, and the settings it is to be compared with.

    ``kernel_release`` is that of the kernel the image is for, None where nothing tells.
    """

    source: Source
    generator: Generator
    baseline: Baseline
    settings: tuple[Setting, ...]
    kernel_release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet(SearchSpace):
    """An image and its candidates; ``candidates`` has today's image first.

    ``baseline`` may say more than that of the ``SearchSpace`` before: a candidate can show what
    made the image.
    """

    candidates: tuple[Candidate, ...]
    skipped: tuple[SkippedSetting, ...]


@contextlib.contextmanager
def open_search_space(
    host: Host,
    target: Target,
    config: Config,
    *,
    only: tuple[Setting, ...],
    everything: bool,
    observer: ReadObserver | None = None,
    to_compress: bool = True,
    with_modules: bool = False,
) -> Iterator[SearchSpace]:
    """Read the image and find out what to compare it with; see ``plan_settings``.

    Without ``to_compress`` no candidate is to be made of it; for ``with_modules`` see
    ``open_source``.

    Raises ``InitadvisorError`` (with its exit code) where the image cannot be read or is none.
    """
    with open_source(
        target.path,
        installed=target.installed,
        host=host,
        observer=observer,
        to_compress=to_compress,
        with_modules=with_modules,
    ) as source:
        generator = target.made_by(source.contents)
        release, configured = source.contents.kernel_release, None
        gaps: list[str] = []
        if installed := target.installed:  # this machine's generator makes no other image
            release = installed.kernel_release
            configured = side_fact(
                lambda: generator.configured(
                    host,
                    installed.kernel_release,
                    image=installed if installed.fallback else None,
                ),
                f"the configuration of {generator.NAME}",
                gaps,
            )
        baseline = todays_setting(source, configured)
        baseline = replace(baseline, warnings=(*gaps, *baseline.warnings))
        yield SearchSpace(
            source=source,
            generator=generator,
            baseline=baseline,
            settings=plan_settings(
                host,
                generator,
                config,
                only=only,
                also=(baseline.setting,) if baseline.certain else (),
                everything=everything,
            ),
            kernel_release=release,
        )


def built_candidate_set(
    host: Host,
    search_space: SearchSpace,
    config: Config,
    settings: Sequence[Setting],
    *,
    observer: BuildObserver,
) -> CandidateSet:
    """Build what is not there yet of the candidates with these settings.

    Raises what ``build_candidates`` does.
    """
    built = build_candidates(
        host,
        search_space.generator,
        search_space.source,
        settings,
        observer=observer,
        jobs=config.jobs,
        cache_limit_bytes=config.cache_limit_bytes,
    )
    return _candidate_set(host, search_space, built.candidates, (), built.skipped)


def estimated_candidate_set(
    host: Host, search_space: SearchSpace, *, observer: SampleObserver
) -> CandidateSet:
    """Take the candidates that are there, and estimate the others from a sample.

    Raises what ``estimates`` does, and ``UnsafeError`` for an image none can be derived of.
    """
    source, generator = search_space.source, search_space.generator
    wanted, skipped_settings = build_commands(
        host, generator, search_space.settings, image_sha256=source.sha256
    )
    built = kept_candidates(host, generator, source, wanted)
    missing = [command for command in wanted if command.setting not in built]
    sampled = estimates(host, generator, source, missing, observer=observer)
    return _candidate_set(
        host,
        search_space,
        tuple(built.values()),
        sampled.candidates,
        (*skipped_settings, *sampled.skipped),
    )


@contextlib.contextmanager
def build_candidate_set(
    host: Host,
    target: Target,
    config: Config,
    *,
    only: tuple[Setting, ...],
    everything: bool,
    observer: BuildObserver,
) -> Iterator[CandidateSet]:
    """Read the image and build what is not there yet of its candidates; see ``plan_settings``.

    Raises ``InitadvisorError`` (with its exit code) where the image cannot be read or is none, or
    nothing can be built.
    """
    with open_search_space(host, target, config, only=only, everything=everything) as search_space:
        yield built_candidate_set(
            host, search_space, config, search_space.settings, observer=observer
        )


def _candidate_set(
    host: Host,
    search_space: SearchSpace,
    built: Sequence[BuiltImage],
    sampled: Sequence[SampledCandidate],
    skipped_settings: tuple[SkippedSetting, ...],
) -> CandidateSet:
    source, generator = search_space.source, search_space.generator
    baseline = identified(search_space.baseline, source, built)
    return CandidateSet(
        source=source,
        generator=generator,
        baseline=baseline,
        candidates=all_candidates(host, generator, source, baseline, built, sampled),
        skipped=skipped_settings,
        settings=search_space.settings,
        kernel_release=search_space.kernel_release,
    )


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
    where nothing is against it. ``like_today``: it is an estimate of what may be today's image; to
    compare the two would tell the estimate's error as a gain.
    """

    setting: Setting
    size: Quantity
    digest: str
    stream: Stream | None
    sampled: SampledCandidate | None = None
    cost: BuildCost | None = None
    notes: tuple[str, ...] = ()
    today: bool = False
    like_today: bool = False
    unusable: str | None = None

    @property
    def codec(self) -> Codec:
        """The main segment's codec."""
        return self.stream.codec if self.stream else self.setting.codec

    @property
    def far(self) -> bool:
        """Whether its decompression looks megabytes back."""
        return is_far(self._window_log)

    @property
    def buffer_bytes(self) -> float:
        """How much memory a kernel maps to decompress it."""
        return buffer_bytes(self.codec, self._window_log)

    @property
    def _window_log(self) -> float:
        argv = (self.codec.value, *self.setting.options)
        return window_log(self.codec, argv, level=None)

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
    failed = {
        digest: f"it failed in a trial: {reason}"
        for digest, reason in _failed_in_trials(host).items()
    }
    return (
        today,
        *(
            replace(
                other,
                setting=_named_by_level(host, generator, other.setting, baseline),
                like_today=not baseline.certain and _is_like(other, today),
                unusable=generator.unusable(host, other.setting)
                or failed.get(other.digest)
                or failed.get(str(other.setting)),
            )
            for other in others
        ),
    )


_SAME_SIZE = 0.01
"""Sizes that differ by this fraction or less may be the same, where one is estimated; or by more,
where the estimate is less certain.
"""


def _is_like(other: Candidate, today: Candidate) -> bool:
    return (
        other.sampled is not None
        and other.codec is today.codec
        and abs(log(other.size.median / today.size.median))
        <= max(_SAME_SIZE, _Z95 * other.size.log_sd)
    )


def _failed_in_trials(host: Host) -> Mapping[str, str]:
    """Return why images did not boot; most machines have had no trial."""
    with contextlib.suppress(NeedsRootError):
        if host.state_file(CAMPAIGNS) is None and host.state_file(TRANSACTIONS) is None:
            return {}
    from initadvisor.campaign.record import failed_in_trials  # takes long

    return failed_in_trials(host)


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
