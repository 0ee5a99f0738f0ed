"""What two images hold that is not the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Aspect(StrEnum):
    """In what an entry is another one than before."""

    TYPE = "type"
    MODE = "mode"
    OWNER = "owner"
    SIZE = "size"
    CONTENT = "content"
    LINK_TARGET = "link target"
    DEVICE = "device"
    PLACE = "place"
    """It stands in front and uncompressed, where the kernel looks for it, in one of them only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedEntry:
    """An entry that both images have; ``path`` is safe to print."""

    path: str
    aspects: tuple[Aspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDifference:
    """Paths, safe to print and in their order, that only one image has, and those that changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[ChangedEntry, ...] = ()

    @property
    def count(self) -> int:
        """How many paths differ."""
        return len(self.added) + len(self.removed) + len(self.changed)
