"""What every comparison begins with: an image, the candidates of it, and whose they are."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.workflow.baseline import identified, todays_setting
from initadvisor.workflow.candidates import build_candidates
from initadvisor.workflow.contenders import contenders
from initadvisor.workflow.plan import plan_settings
from initadvisor.workflow.source import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.config import Config
    from initadvisor.model.generator import ConfiguredSetting
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.baseline import Baseline
    from initadvisor.workflow.contenders import Contender
    from initadvisor.workflow.ledger import BuildObserver, BuildResult
    from initadvisor.workflow.source import Source
    from initadvisor.workflow.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """An image, open, and what was built of it; ``contenders`` has today's image first.

    ``kernel_release`` is that of the kernel the image is for, None where nothing tells.
    """

    source: Source
    generator: Generator
    baseline: Baseline
    built: BuildResult
    contenders: tuple[Contender, ...]
    kernel_release: str | None


@contextlib.contextmanager
def gathered(
    host: Host,
    target: Target,
    config: Config,
    *,
    only: tuple[Setting, ...],
    everything: bool,
    observer: BuildObserver,
) -> Iterator[Field]:
    """Read the image and build what is not there yet of its candidates; see ``plan_settings``.

    Raises ``InitadvisorError`` (with its exit code) where the image cannot be read or is none, or
    nothing can be built.
    """
    with open_source(target.path, installed=target.installed) as source:
        generator = target.made_by(source.contents)
        baseline = todays_setting(source, _configured(host, generator, target))
        settings = plan_settings(
            host,
            generator,
            config,
            only=only,
            also=(baseline.setting,) if baseline.certain else (),
            everything=everything,
        )
        built = build_candidates(
            host,
            generator,
            source,
            settings,
            observer=observer,
            jobs=config.jobs,
            cache_limit_bytes=config.cache_limit_bytes,
        )
        baseline = identified(baseline, source, built.candidates)
        yield Field(
            source=source,
            generator=generator,
            baseline=baseline,
            built=built,
            contenders=contenders(host, generator, source, baseline, built.candidates),
            kernel_release=_kernel_release(target, source),
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
