"""Observers that note what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.model.apply import StagedImage


class Watching:
    """Notes what was built, and does something at that moment."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.staged: tuple[StagedImage, ...] = ()
        self._then = then

    def doing(self, what: str) -> None:
        """Be told."""

    def built(self, staged: Sequence[StagedImage]) -> None:
        """Take note."""
        self.staged = tuple(staged)
        self._then()
