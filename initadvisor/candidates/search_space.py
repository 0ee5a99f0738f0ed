"""What every comparison begins with: an image, the candidates of it, and whose they are."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from initadvisor.candidates.build import BuildObserver, build_candidates, kept_candidates
from initadvisor.candidates.candidate import all_candidates
from initadvisor.candidates.estimates import estimates
from initadvisor.candidates.plan import build_commands, plan_settings
from initadvisor.candidates.sampler import SampleObserver
from initadvisor.target.baseline import identified, todays_setting
from initadvisor.target.source import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.candidates.candidate import Candidate
    from initadvisor.candidates.estimates import SampledCandidate
    from initadvisor.core.config import Config
    from initadvisor.core.settings import Setting
    from initadvisor.generators import ConfiguredSetting, Generator
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage, SkippedSetting
    from initadvisor.target.baseline import Baseline
    from initadvisor.target.source import Source
    from initadvisor.target.target import Target


class CandidateSetObserver(BuildObserver, SampleObserver, Protocol):
    """Receives progress events of builds and samples."""


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
class CandidateSet:
    """An image and its candidates; ``candidates`` has today's image first.

    ``baseline`` may say more than that of the ``SearchSpace``: a candidate can show what made the
    image.
    """

    source: Source
    generator: Generator
    baseline: Baseline
    candidates: tuple[Candidate, ...]
    skipped: tuple[SkippedSetting, ...]
    kernel_release: str | None


@contextlib.contextmanager
def open_search_space(
    host: Host,
    target: Target,
    config: Config,
    *,
    only: tuple[Setting, ...],
    everything: bool,
) -> Iterator[SearchSpace]:
    """Read the image and find out what to compare it with; see ``plan_settings``.

    Raises ``InitadvisorError`` (with its exit code) where the image cannot be read or is none.
    """
    with open_source(target.path, installed=target.installed, host=host) as source:
        generator = target.made_by(source.contents)
        baseline = todays_setting(source, _configured(host, generator, target))
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
            kernel_release=_kernel_release(target, source),
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
        kernel_release=search_space.kernel_release,
    )


def _configured(host: Host, generator: Generator, target: Target) -> ConfiguredSetting | None:
    """Return what is configured, None for an image this machine's generator does not make."""
    if target.installed is None:
        return None
    return generator.configured(host, target.installed.kernel_release)


def _kernel_release(target: Target, source: Source) -> str | None:
    if target.installed:
        return target.installed.kernel_release
    return source.contents.kernel_release
