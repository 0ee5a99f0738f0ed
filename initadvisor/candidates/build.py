"""Builds the candidates of an image, several at once; lists and prunes those that are kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.candidates.build_pool import (
    BuildObserver,
    BuildOutcome,
    BuildPool,
    BuildResults,
    Silent,
)
from initadvisor.candidates.builder import Builder
from initadvisor.candidates.cache import Cache, CachedCandidate
from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.plan import build_commands, own_uncompressed_key
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.target.source import is_current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.core.settings import Setting
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage
    from initadvisor.target.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How many candidates were removed, and the room that gave."""

    removed: int
    freed_bytes: int


def build_candidates(
    host: Host,
    generator: Generator,
    source: Source,
    settings: Sequence[Setting],
    *,
    observer: BuildObserver | None = None,
    jobs: int | None = None,
    cache_limit_bytes: int | None = None,
) -> BuildOutcome:
    """Build what is not in the cache yet, in about the order given.

    A setting that cannot be built is a gap, not an error. ``jobs`` (None: the number of
    processors) bounds how many are built at once; all compressors run at idle priority. Interrupted
    by an exception, it kills them and leaves nothing half-built behind. In the end the oldest
    candidates of other images go, if all together exceed ``cache_limit_bytes``.

    Raises ``InitadvisorError`` when another build is running, there is no room for any candidate or
    nothing in the main segment, ``UnsafeError`` for an image whose boot configuration the
    candidates would lose, or with something behind its last segment: what is taken for the main one
    may not be it.
    """
    _require_derivable(source)
    cache = Cache(host)
    results = BuildResults(observer or Silent())
    found, skipped_settings = build_commands(host, generator, settings, image_sha256=source.sha256)
    for skipped in skipped_settings:
        results.skip(skipped)
    missing = []
    for command in found:
        if cached := _cached(host, generator, source, cache, command):
            results.candidate(command.setting, cached.candidate, cached=True)
        else:
            missing.append(command)
    if missing:
        with cache.locked():
            stop = threading.Event()
            with LazyPayload(source, cache.directory, stop) as payload:
                builder = Builder(
                    host=host,
                    generator=generator,
                    source=source,
                    cache=cache,
                    payload=payload,
                    stop=stop,
                )
                BuildPool(builder, results, jobs or host.cores).build_all(missing)
            if cache_limit_bytes is not None:
                _trim(cache, cache_limit_bytes, keep_image_sha256=source.sha256)
    return results.result(settings)


def kept_candidates(
    host: Host, generator: Generator, source: Source, wanted: Sequence[BuildCommand]
) -> dict[Setting, BuiltImage]:
    """Return, by the setting, which of these candidates were built before.

    Raises what ``build_candidates`` does for an image none can be derived of.
    """
    _require_derivable(source)
    cache = Cache(host)
    found = {
        command: _cached(host, generator, source, cache, command) or cache.find(command.key)
        for command in wanted
    }
    # What is cached may have been asked for by another name (zstd -3 for zstd).
    return {
        command.setting: replace(cached.candidate, setting=command.setting)
        for command, cached in found.items()
        if cached
    }


def _require_derivable(source: Source) -> None:
    if source.contents.bootconfig:
        msg = f"cannot derive candidates of {source.path}: a boot configuration is appended to it"
        raise UnsafeError(msg, hint="remove it with bootconfig -d")
    if junk := source.contents.junk:
        msg = (
            f"cannot derive candidates of {source.path}: {junk.size_bytes} bytes at offset "
            f"{junk.offset} are no segment, the image is damaged"
        )
        raise UnsafeError(msg, hint="rebuild it; initadvisor inspect shows what can be read")
    if not source.contents.main.unpacked_bytes:
        msg = f"cannot derive candidates of {source.path}: its last segment holds nothing"
        raise InitadvisorError(msg)


def cached_candidates(
    host: Host, *, image_sha256: str | None = None
) -> tuple[CachedCandidate, ...]:
    """Return the candidates that are kept, the oldest first; those of one image if it is given."""
    return tuple(
        cached
        for cached in Cache(host).all()
        if image_sha256 is None or cached.image_sha256 == image_sha256
    )


def prune(host: Host, *, everything: bool = False, limit_bytes: int | None = None) -> Pruned:
    """Remove the candidates of images that are gone or were replaced since, or all candidates.

    Then the oldest go until the rest takes at most ``limit_bytes``. An image that may not be read
    is taken to be the same still.
    """
    cache = Cache(host)
    if not cache.directory.is_dir():
        return Pruned(removed=0, freed_bytes=0)
    with cache.locked():
        kept = cache.all()
        images = {(cached.image, cached.image_sha256) for cached in kept}
        current = {image for image in images if is_current(Path(image[0]), sha256=image[1])}
        removed = [c for c in kept if everything or (c.image, c.image_sha256) not in current]
        for cached in removed:
            cache.remove(cached)
        if limit_bytes is not None:
            removed += _trim(cache, limit_bytes)
    return Pruned(removed=len(removed), freed_bytes=sum(c.candidate.size_bytes for c in removed))


def _cached(
    host: Host, generator: Generator, source: Source, cache: Cache, command: BuildCommand
) -> CachedCandidate | None:
    if command.setting.codec is Codec.CAT and generator.needs_own_uncompressed(host):
        return cache.find(own_uncompressed_key(host, generator, image_sha256=source.sha256))
    return cache.find(command.key)


def _trim(
    cache: Cache, limit_bytes: int, *, keep_image_sha256: str | None = None
) -> list[CachedCandidate]:
    """Remove the oldest candidates, but not those of one image, until the rest fits the limit."""
    kept = cache.all()
    excess = sum(cached.candidate.size_bytes for cached in kept) - limit_bytes
    removed = []
    for cached in kept:
        if excess <= 0:
            break
        if cached.image_sha256 != keep_image_sha256:
            cache.remove(cached)
            removed.append(cached)
            excess -= cached.candidate.size_bytes
    return removed
