"""The estimates of settings that were not built, kept by what they were made of."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.sampling import Sampled, SampledCandidate, sample_candidates
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.core.text import shown
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.files import make_directory
from initadvisor.host.hardware import cpu_model
from initadvisor.image import stream_facts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.candidates.sampler import SampleObserver
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.target.source import Source


_SCHEMA = 7
"""Counts up when estimates are made in another way."""

_MOST_LOG_SD = 3.0
_NAMES = (stream_facts, Setting)


def estimates(
    host: Host,
    generator: Generator,
    source: Source,
    commands: Sequence[BuildCommand],
    *,
    observer: SampleObserver,
) -> Sampled:
    """Estimate what is not known yet, from a sample; in the order of the recipes.

    Raises ``BadImageError`` for a damaged image, ``InitadvisorError`` where there is no room.
    """
    known = {command.key: _load(host, command) for command in commands}
    missing = [command for command in commands if known[command.key] is None]
    skipped_settings: tuple[SkippedSetting, ...] = ()
    if missing:
        new = _sampled(host, generator, source, missing, observer)
        skipped_settings = new.skipped
        for sampled in new.candidates:
            known[sampled.key] = sampled
            _keep(host, sampled)
    return Sampled(
        candidates=tuple(found for found in known.values() if found), skipped=skipped_settings
    )


def _sampled(
    host: Host,
    generator: Generator,
    source: Source,
    commands: Sequence[BuildCommand],
    observer: SampleObserver,
) -> Sampled:
    directory = host.cache_dir()
    make_directory(directory)
    try:
        with LazyPayload(source, directory, threading.Event()) as payload:
            content = payload.get()
            found = sample_candidates(
                host,
                generator,
                content.file,
                content.size_bytes,
                commands,
                directory=directory,
                observer=observer,
            )
    except OSError as err:
        msg = f"cannot take samples of {source.path} in {directory}: {err.strerror}"
        raise InitadvisorError(
            msg, hint="set CACHE_DIRECTORY to a place with room that may be written"
        ) from err
    source.check_unchanged()
    return found


def _file(host: Host, key: str) -> Path:
    return host.cache_dir() / "sampled" / f"{key}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptEstimate:
    schema: int
    cpu: str | None
    sampled: SampledCandidate


def _load(host: Host, command: BuildCommand) -> SampledCandidate | None:
    """Return an estimate of an earlier run on this processor; what is unreadable counts as none."""
    kept = read_cached(_file(host, command.key), _KeptEstimate, names=_NAMES)
    if kept is None or (kept.schema, kept.cpu) != (_SCHEMA, cpu_model(host)):
        return None
    found, size = kept.sampled, kept.sampled.main_bytes
    timed = command.setting.codec is Codec.CAT or (found.decompress_ms and found.facts)
    if not timed or min((size.median, *found.decompress_ms)) <= 0 or size.log_sd > _MOST_LOG_SD:
        return None
    size = replace(size, source=shown(size.source))
    return replace(
        found, setting=command.setting, key=command.key, command=command.argv, main_bytes=size
    )


def _keep(host: Host, sampled: SampledCandidate) -> None:
    kept = _KeptEstimate(schema=_SCHEMA, cpu=cpu_model(host), sampled=sampled)
    keep(_file(host, sampled.key), kept, what="an estimate")
