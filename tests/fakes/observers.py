"""Observers that note what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.apply.plan_values import StagedImage


@dataclass
class Steps:
    """Notes how far each phase is told to be; may end it."""

    seen: list[tuple[str, int, int]] = field(default_factory=list)
    ends_with: BaseException | None = None

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Take note."""
        self.seen.append((what, done, of))
        assert done <= of
        if self.ends_with:
            raise self.ends_with


class Watching:
    """Notes what was built, and does something at that moment."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.staged: tuple[StagedImage, ...] = ()
        self._then = then

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Be told."""

    def built(self, staged: Sequence[StagedImage]) -> None:
        """Take note."""
        self.staged = tuple(staged)
        self._then()
