"""What came of each setting in a build, and who is told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.records.built_image import BuiltImage, SkippedSetting


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
