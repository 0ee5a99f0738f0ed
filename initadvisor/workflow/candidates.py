"""Builds the candidates of an image, several at once; lists and prunes those that are kept."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from initadvisor.host.files import free_bytes
from initadvisor.model.candidate import Candidate, Gap
from initadvisor.model.codec import Codec
from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.workflow.build import Workshop
from initadvisor.workflow.cache import Cache, CachedCandidate
from initadvisor.workflow.payload import LazyPayload
from initadvisor.workflow.plan import own_uncompressed_key, recipes
from initadvisor.workflow.schedule import Load, expected_cpu_s, may_start, next_job, threads_of
from initadvisor.workflow.source import is_current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.plan import Recipe
    from initadvisor.workflow.source import Source

_HEADROOM_BYTES = 64 << 20
"""What is left free on the file system, for everybody else who writes there."""

_EXPANSION = 1.02
_EXPANSION_BYTES = 1 << 20
"""No compressor makes its input longer than by this factor, plus this for its own frame."""


class BuildObserver(Protocol):
    """Told how a build goes, in the thread that called ``build_candidates``."""

    def started(self, setting: Setting) -> None:
        """Take note that a candidate is being built."""
        ...

    def finished(self, candidate: Candidate, *, cached: bool) -> None:
        """Take note of a candidate; ``cached`` tells that it was there already."""
        ...

    def gap(self, gap: Gap) -> None:
        """Take note of a setting that could not be built."""
        ...


class Silent:
    """An observer that does not look."""

    def started(self, setting: Setting) -> None:
        """See ``BuildObserver.started``."""

    def finished(self, candidate: Candidate, *, cached: bool) -> None:
        """See ``BuildObserver.finished``."""

    def gap(self, gap: Gap) -> None:
        """See ``BuildObserver.gap``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """The candidates and the gaps, in the order of the settings; ``built`` counts the new ones."""

    candidates: tuple[Candidate, ...]
    gaps: tuple[Gap, ...]
    built: int


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
) -> BuildResult:
    """Build what is not in the cache yet, in about the order given.

    A setting that cannot be built is a gap, not an error. ``jobs`` (None: the number of
    processors) bounds how many are built at once; all compressors run at idle priority. Interrupted
    by an exception, it kills them and leaves nothing half-built behind. In the end the oldest
    candidates of other images go, if all together exceed ``cache_limit_bytes``.

    Raises ``InitadvisorError`` when another build is running or there is no room for any candidate,
    ``UnsafeError`` for an image whose boot configuration the candidates would lose.
    """
    if source.contents.bootconfig:
        msg = f"cannot derive candidates of {source.path}: a boot configuration is appended to it"
        raise UnsafeError(msg, hint="remove it with bootconfig -d")
    cache = Cache(host)
    ledger = _Ledger(observer or Silent())
    found, gaps = recipes(host, generator, settings, image_sha256=source.sha256)
    for gap in gaps:
        ledger.gap(gap)
    missing = []
    for recipe in found:
        if cached := _cached(host, generator, source, cache, recipe):
            ledger.candidate(recipe.setting, cached.candidate, cached=True)
        else:
            missing.append(recipe)
    if missing:
        with cache.locked():
            stop = threading.Event()
            with LazyPayload(source, cache.directory, stop) as payload:
                workshop = Workshop(
                    host=host,
                    generator=generator,
                    source=source,
                    cache=cache,
                    payload=payload,
                    stop=stop,
                )
                _Floor(workshop, ledger, jobs or host.cores).build_all(missing)
            if cache_limit_bytes is not None:
                _trim(cache, cache_limit_bytes, keep_image_sha256=source.sha256)
    return ledger.result(settings)


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


@dataclass(slots=True)
class _Ledger:
    """What came of each setting so far."""

    observer: BuildObserver
    candidates: dict[Setting, Candidate] = field(default_factory=dict)
    gaps: dict[Setting, Gap] = field(default_factory=dict)
    built: int = 0

    def candidate(self, setting: Setting, candidate: Candidate, *, cached: bool) -> None:
        # What is cached may have been asked for by another name (zstd -3 for zstd).
        candidate = replace(candidate, setting=setting)
        self.candidates[setting] = candidate
        self.built += not cached
        self.observer.finished(candidate, cached=cached)

    def gap(self, gap: Gap) -> None:
        self.gaps[gap.setting] = gap
        self.observer.gap(gap)

    def result(self, settings: Sequence[Setting]) -> BuildResult:
        return BuildResult(
            candidates=tuple(self.candidates[s] for s in settings if s in self.candidates),
            gaps=tuple(self.gaps[s] for s in settings if s in self.gaps),
            built=self.built,
        )


class _Floor:
    """Where several candidates are built at once."""

    def __init__(self, workshop: Workshop, ledger: _Ledger, jobs: int) -> None:
        self._workshop = workshop
        self._ledger = ledger
        self._jobs = jobs
        self._running: dict[Future[tuple[CachedCandidate, bool]], tuple[Recipe, Load]] = {}

    def build_all(self, wanted: Sequence[Recipe]) -> None:
        """Build every recipe, or note its gap."""
        self._check_room()
        waiting = [(recipe, self._load(recipe)) for recipe in wanted]
        pool = ThreadPoolExecutor(max_workers=self._jobs)
        try:
            while waiting or self._running:
                self._start(waiting, pool)
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(future)
        except BaseException:
            self._workshop.stop.set()
            self._workshop.host.runner.stop_all()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _start(self, waiting: list[tuple[Recipe, Load]], pool: ThreadPoolExecutor) -> None:
        cores = self._workshop.host.cores
        while waiting and may_start(
            [load for _, load in self._running.values()], cores=cores, jobs=self._jobs
        ):
            index = next_job([load for _, load in waiting], cores=cores)
            if self._room_left() < 0:
                if self._running:
                    return  # what runs now will take less than the worst case
                recipe, _ = waiting.pop(index)
                reason = f"no room left in {self._workshop.cache.directory}"
                self._ledger.gap(Gap(setting=recipe.setting, reason=reason))
                continue
            recipe, load = waiting.pop(index)
            self._ledger.observer.started(recipe.setting)
            self._running[pool.submit(self._workshop.build, recipe)] = (recipe, load)

    def _take(self, future: Future[tuple[CachedCandidate, bool]]) -> None:
        recipe, _ = self._running.pop(future)
        try:
            cached, new = future.result()
        except InitadvisorError as err:
            self._ledger.gap(Gap(setting=recipe.setting, reason=err.message))
        except OSError as err:
            reason = f"cannot write the candidate: {err.strerror}"
            self._ledger.gap(Gap(setting=recipe.setting, reason=reason))
        else:
            self._ledger.candidate(recipe.setting, cached.candidate, cached=not new)

    def _load(self, recipe: Recipe) -> Load:
        host, generator = self._workshop.host, self._workshop.generator
        payload_bytes = self._workshop.source.contents.main.unpacked_bytes
        level = generator.default_level(host, recipe.setting)
        return Load(
            cpu_s=expected_cpu_s(recipe.setting.codec, level, payload_bytes),
            threads=threads_of(recipe.argv, payload_bytes, host.cores),
        )

    def _worst_bytes(self) -> int:
        source = self._workshop.source
        payload_bytes = source.contents.main.unpacked_bytes
        return source.prefix_bytes + int(payload_bytes * _EXPANSION) + _EXPANSION_BYTES

    def _room_left(self) -> int:
        """Return what would be free if one more started and all that run became the longest."""
        free = free_bytes(self._workshop.cache.directory)
        return free - _HEADROOM_BYTES - self._worst_bytes() * (len(self._running) + 1)

    def _check_room(self) -> None:
        """Raise ``InitadvisorError`` unless the unpacked image and one candidate surely fit."""
        directory = self._workshop.cache.directory
        payload_bytes = self._workshop.source.contents.main.unpacked_bytes
        needed = payload_bytes + self._worst_bytes() + _HEADROOM_BYTES
        free = free_bytes(directory)
        if free < needed:
            msg = (
                f"cannot build candidates in {directory}: {needed / 1e6:.0f} MB may be needed,"
                f" {free / 1e6:.0f} MB are free"
            )
            raise InitadvisorError(msg, hint="initadvisor candidates prune makes room")


def _cached(
    host: Host, generator: Generator, source: Source, cache: Cache, recipe: Recipe
) -> CachedCandidate | None:
    if recipe.setting.codec is Codec.CAT and generator.needs_own_uncompressed(host):
        return cache.find(own_uncompressed_key(host, generator, image_sha256=source.sha256))
    return cache.find(recipe.key)


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
