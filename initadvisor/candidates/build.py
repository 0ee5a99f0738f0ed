"""Builds the candidates of an image, as processors and room allow; lists and prunes those kept."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from initadvisor.candidates.cache import Cache, CachedCandidate
from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.plan import build_commands, own_uncompressed_key
from initadvisor.candidates.schedule import Load, expected_cpu_s, may_start, next_job, threads_of
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError, library_error
from initadvisor.host.files import free_bytes
from initadvisor.records.built_image import SkippedSetting
from initadvisor.target.source import is_current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.candidates.builder import Builder
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
        from initadvisor.candidates.builder import Builder

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


_HEADROOM_BYTES = 64 << 20
"""What is left free on the file system, for everybody else who writes there."""

_EXPANSION = 1.02
_EXPANSION_BYTES = 1 << 20
"""No compressor makes its input longer than by this factor, plus this for its own frame."""


@dataclass(frozen=True, slots=True)
class BuildPool:
    """Where several candidates are built at once, at most ``jobs``."""

    builder: Builder
    results: BuildResults
    jobs: int
    running: dict[Future[tuple[CachedCandidate, bool]], tuple[BuildCommand, Load]] = field(
        default_factory=dict
    )

    def build_all(self, wanted: Sequence[BuildCommand]) -> None:
        """Build every candidate, or note why it is skipped."""
        self._check_room()
        waiting = [(command, self._load(command)) for command in wanted]
        whole_s = sum(load.cpu_s for _, load in waiting)
        pool = ThreadPoolExecutor(max_workers=self.jobs)
        try:
            while waiting or self.running:
                self._start(waiting, pool)
                self._tell(waiting, whole_s)
                done, _ = wait(self.running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(future)
        except BaseException:
            self.builder.stop.set()
            self.builder.host.runner.stop_all()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _start(self, waiting: list[tuple[BuildCommand, Load]], pool: ThreadPoolExecutor) -> None:
        cores = self.builder.host.cores
        while waiting and may_start(
            [load for _, load in self.running.values()], cores=cores, jobs=self.jobs
        ):
            index = next_job([load for _, load in waiting], cores=cores)
            if self._room_left() < 0:
                if self.running:
                    return  # what runs now will take less than the worst case
                command, _ = waiting.pop(index)
                reason = f"no room left in {self.builder.cache.directory}"
                self.results.skip(SkippedSetting(setting=command.setting, reason=reason))
                continue
            command, load = waiting.pop(index)
            self.results.observer.started(command.setting)
            self.running[pool.submit(self.builder.build, command)] = (command, load)

    def _tell(self, waiting: Sequence[tuple[BuildCommand, Load]], whole_s: float) -> None:
        """Say what is being built, and how much of the expected work is done."""
        running = self.running.values()
        names = ", ".join(str(command.setting) for command, _ in running)
        left_s = sum(load.cpu_s for _, load in (*waiting, *running))
        self.results.observer.doing(
            f"building candidates: {names}",
            done=round(1e9 * (whole_s - left_s)),
            of=round(1e9 * whole_s),
        )

    def _take(self, future: Future[tuple[CachedCandidate, bool]]) -> None:
        command, _ = self.running.pop(future)
        try:
            cached, new = future.result()
        except InitadvisorError as err:
            self.results.skip(SkippedSetting(setting=command.setting, reason=err.message))
        except OSError as err:
            if lack := library_error(err):
                raise lack from err
            reason = f"cannot write the candidate: {err.strerror}"
            self.results.skip(SkippedSetting(setting=command.setting, reason=reason))
        else:
            self.results.candidate(command.setting, cached.candidate, cached=not new)

    def _load(self, command: BuildCommand) -> Load:
        host, generator = self.builder.host, self.builder.generator
        payload_bytes = self.builder.source.contents.main.unpacked_bytes
        level = generator.default_level(host, command.setting)
        return Load(
            cpu_s=expected_cpu_s(command.setting.codec, level, payload_bytes),
            threads=threads_of(command.argv, payload_bytes, host.cores),
        )

    def _worst_bytes(self) -> int:
        source = self.builder.source
        payload_bytes = source.contents.main.unpacked_bytes
        return source.prefix_bytes + int(payload_bytes * _EXPANSION) + _EXPANSION_BYTES

    def _room_left(self) -> int:
        """Return what would be free if one more started and all that run became the longest."""
        free = free_bytes(self.builder.cache.directory) - self.builder.payload.missing_bytes
        return free - _HEADROOM_BYTES - self._worst_bytes() * (len(self.running) + 1)

    def _check_room(self) -> None:
        """Raise ``InitadvisorError`` unless the unpacked image and one candidate surely fit."""
        directory = self.builder.cache.directory
        payload_bytes = self.builder.source.contents.main.unpacked_bytes
        needed = payload_bytes + self._worst_bytes() + _HEADROOM_BYTES
        free = free_bytes(directory)
        if free < needed:
            msg = (
                f"cannot build candidates in {directory}: {needed / 1e6:.0f} MB may be needed,"
                f" {free / 1e6:.0f} MB are free"
            )
            raise InitadvisorError(
                msg,
                hint="initadvisor candidates prune may help, or set CACHE_DIRECTORY elsewhere",
            )


class BuildObserver(Protocol):
    """Receives progress events of a build, in the thread that called ``build_candidates``."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Take note of what is being built, and how much of the work is done."""
        ...

    def started(self, setting: Setting) -> None:
        """Take note that a candidate is being built."""
        ...

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """Take note of a candidate; ``cached`` tells that it was there already."""
        ...

    def skipped(self, skipped: SkippedSetting) -> None:
        """Take note of a setting that could not be built."""
        ...


class Silent:
    """An observer that does not look."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """See ``BuildObserver.doing``."""

    def started(self, setting: Setting) -> None:
        """See ``BuildObserver.started``."""

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """See ``BuildObserver.finished``."""

    def skipped(self, skipped: SkippedSetting) -> None:
        """See ``BuildObserver.skipped``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOutcome:
    """The candidates and the gaps, in the order of the settings; ``built`` counts the new ones."""

    candidates: tuple[BuiltImage, ...]
    skipped: tuple[SkippedSetting, ...]
    built: int


@dataclass(slots=True)
class BuildResults:
    """What came of each setting so far."""

    observer: BuildObserver
    candidates: dict[Setting, BuiltImage] = field(default_factory=dict)
    skipped: dict[Setting, SkippedSetting] = field(default_factory=dict)
    built: int = 0

    def candidate(self, setting: Setting, candidate: BuiltImage, *, cached: bool) -> None:
        """Enter a candidate for the setting it was asked for by."""
        # What is cached may have been asked for by another name (zstd -3 for zstd).
        candidate = replace(candidate, setting=setting)
        self.candidates[setting] = candidate
        self.built += not cached
        self.observer.finished(candidate, cached=cached)

    def skip(self, skipped: SkippedSetting) -> None:
        """Enter a setting that could not be built."""
        self.skipped[skipped.setting] = skipped
        self.observer.skipped(skipped)

    def result(self, settings: Sequence[Setting]) -> BuildOutcome:
        """Return all that was entered, in the order of ``settings``."""
        return BuildOutcome(
            candidates=tuple(self.candidates[s] for s in settings if s in self.candidates),
            skipped=tuple(self.skipped[s] for s in settings if s in self.skipped),
            built=self.built,
        )
