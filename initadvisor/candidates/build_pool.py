"""Builds several candidates at once, as processors and room allow, and keeps what came of each."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from initadvisor.candidates.schedule import Load, expected_cpu_s, may_start, next_job, threads_of
from initadvisor.core.errors import InitadvisorError
from initadvisor.host.files import free_bytes
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.candidates.builder import Builder
    from initadvisor.candidates.cache import CachedCandidate
    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.core.settings import Setting
    from initadvisor.records.built_image import BuiltImage


_HEADROOM_BYTES = 64 << 20
"""What is left free on the file system, for everybody else who writes there."""

_EXPANSION = 1.02
_EXPANSION_BYTES = 1 << 20
"""No compressor makes its input longer than by this factor, plus this for its own frame."""


class BuildPool:
    """Where several candidates are built at once."""

    def __init__(self, builder: Builder, results: BuildResults, jobs: int) -> None:
        self._workshop = builder
        self._ledger = results
        self._jobs = jobs
        self._running: dict[Future[tuple[CachedCandidate, bool]], tuple[BuildCommand, Load]] = {}

    def build_all(self, wanted: Sequence[BuildCommand]) -> None:
        """Build every recipe, or note its gap."""
        self._check_room()
        waiting = [(command, self._load(command)) for command in wanted]
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

    def _start(self, waiting: list[tuple[BuildCommand, Load]], pool: ThreadPoolExecutor) -> None:
        cores = self._workshop.host.cores
        while waiting and may_start(
            [load for _, load in self._running.values()], cores=cores, jobs=self._jobs
        ):
            index = next_job([load for _, load in waiting], cores=cores)
            if self._room_left() < 0:
                if self._running:
                    return  # what runs now will take less than the worst case
                command, _ = waiting.pop(index)
                reason = f"no room left in {self._workshop.cache.directory}"
                self._ledger.skip(SkippedSetting(setting=command.setting, reason=reason))
                continue
            command, load = waiting.pop(index)
            self._ledger.observer.started(command.setting)
            self._running[pool.submit(self._workshop.build, command)] = (command, load)

    def _take(self, future: Future[tuple[CachedCandidate, bool]]) -> None:
        command, _ = self._running.pop(future)
        try:
            cached, new = future.result()
        except InitadvisorError as err:
            self._ledger.skip(SkippedSetting(setting=command.setting, reason=err.message))
        except OSError as err:
            reason = f"cannot write the candidate: {err.strerror}"
            self._ledger.skip(SkippedSetting(setting=command.setting, reason=reason))
        else:
            self._ledger.candidate(command.setting, cached.candidate, cached=not new)

    def _load(self, command: BuildCommand) -> Load:
        host, generator = self._workshop.host, self._workshop.generator
        payload_bytes = self._workshop.source.contents.main.unpacked_bytes
        level = generator.default_level(host, command.setting)
        return Load(
            cpu_s=expected_cpu_s(command.setting.codec, level, payload_bytes),
            threads=threads_of(command.argv, payload_bytes, host.cores),
        )

    def _worst_bytes(self) -> int:
        source = self._workshop.source
        payload_bytes = source.contents.main.unpacked_bytes
        return source.prefix_bytes + int(payload_bytes * _EXPANSION) + _EXPANSION_BYTES

    def _room_left(self) -> int:
        """Return what would be free if one more started and all that run became the longest."""
        free = free_bytes(self._workshop.cache.directory) - self._workshop.payload.missing_bytes
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
            raise InitadvisorError(
                msg,
                hint="initadvisor candidates prune may help, or set CACHE_DIRECTORY elsewhere",
            )


class BuildObserver(Protocol):
    """Receives progress events of a build, in the thread that called ``build_candidates``."""

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

    def started(self, setting: Setting) -> None:
        """See ``BuildObserver.started``."""

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """See ``BuildObserver.finished``."""

    def skipped(self, skipped: SkippedSetting) -> None:
        """See ``BuildObserver.gap``."""


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
