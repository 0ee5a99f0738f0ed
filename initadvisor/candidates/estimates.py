"""The estimates of settings that were not built, kept by what they were made of."""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.sampling import Sampled, SampledCandidate, sample_candidates
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import from_json, number, positive, shown
from initadvisor.decide.cost import Quantity
from initadvisor.host.files import make_directory, whole_file
from initadvisor.host.hardware import cpu_model
from initadvisor.image.stream_facts import StreamFacts
from initadvisor.target.contents import as_plain, from_plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.candidates.sampler import SampleObserver
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.target.source import Source


log = logging.getLogger(__name__)

_SCHEMA = 7
"""Counts up when estimates are made in another way."""

_LIMIT_BYTES = 1 << 20
_MOST_LOG_SD = 3.0
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


def estimates(
    host: Host,
    generator: Generator,
    source: Source,
    recipes: Sequence[BuildCommand],
    *,
    observer: SampleObserver,
) -> Sampled:
    """Estimate what is not known yet, from a sample; in the order of the recipes.

    Raises ``BadImageError`` for a damaged image, ``InitadvisorError`` where there is no room.
    """
    known = {recipe.key: _load(host, recipe) for recipe in recipes}
    missing = [recipe for recipe in recipes if known[recipe.key] is None]
    gaps: tuple[SkippedSetting, ...] = ()
    if missing:
        new = _sampled(host, generator, source, missing, observer)
        gaps = new.skipped
        for sampled in new.candidates:
            known[sampled.key] = sampled
            _keep(host, sampled)
    return Sampled(candidates=tuple(found for found in known.values() if found), skipped=gaps)


def _sampled(
    host: Host,
    generator: Generator,
    source: Source,
    recipes: Sequence[BuildCommand],
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
                recipes,
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


def _load(host: Host, recipe: BuildCommand) -> SampledCandidate | None:
    """Return an estimate of an earlier run on this processor; what is unreadable counts as none."""
    with suppress(*_UNREADABLE):
        with _file(host, recipe.key).open("rb") as file:
            kept = from_json(file.read(_LIMIT_BYTES))
        if kept["schema"] == _SCHEMA and kept["cpu"] == cpu_model(host):
            return _candidate(recipe, kept["sampled"])
    return None


def _candidate(recipe: BuildCommand, values: dict[str, Any]) -> SampledCandidate:
    """Return what was kept; raises one of ``_UNREADABLE`` for what nothing can be reckoned with."""
    size, times = values["main_bytes"], values["decompress_ms"]
    facts: tuple[StreamFacts, ...] = from_plain(tuple[StreamFacts, ...], values["facts"])
    if recipe.setting.codec is not Codec.CAT and not (times and facts):
        raise ValueError(values)
    return SampledCandidate(
        setting=recipe.setting,
        key=recipe.key,
        main_bytes=Quantity(
            median=positive(size["median"]),
            log_sd=number(size["log_sd"], most=_MOST_LOG_SD),
            source=shown(size["source"]),
        ),
        build_s=number(values["build_s"]),
        build_cpu_s=number(values["build_cpu_s"]),
        build_peak_bytes=int(number(values["build_peak_bytes"])),
        decompress_ms=tuple(positive(ms) for ms in times),
        command=recipe.argv,
        sample_bytes=int(number(values["sample_bytes"])),
        whole_bytes=int(number(values["whole_bytes"])),
        facts=facts,
    )


def _keep(host: Host, sampled: SampledCandidate) -> None:
    values = {
        **dataclasses.asdict(sampled),
        "setting": str(sampled.setting),
        "facts": as_plain(sampled.facts),
    }
    record = {"schema": _SCHEMA, "cpu": cpu_model(host), "sampled": values}
    path = _file(host, sampled.key)
    try:
        make_directory(path.parent)
        with whole_file(path) as file:
            file.write(json.dumps(record).encode())
    except (OSError, InitadvisorError) as err:
        log.warning("cannot keep an estimate in %s: %s", path, err)
