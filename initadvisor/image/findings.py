"""Findings about an image, counted so that a million alike take no more room than one; limits.

The limits are on what reading may cost: a hostile image ends in an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from initadvisor.core.text import shown
from initadvisor.image.contents import FindingKind, ImageFinding


class Findings:
    """Counts findings by kind and keeps the first of each."""

    def __init__(self) -> None:
        self._found: dict[FindingKind, ImageFinding] = {}

    def add(self, kind: FindingKind, offset: int, name: bytes = b"") -> None:
        """Note one case; ``offset`` and ``name`` are kept from the first."""
        first = self._found.get(kind)
        self._found[kind] = ImageFinding(
            kind=kind,
            count=first.count + 1 if first else 1,
            offset=first.offset if first else offset,
            example=first.example if first else printable(name),
        )

    def all(self) -> tuple[ImageFinding, ...]:
        """Return what was found, in the order of first sight."""
        return tuple(self._found.values())


def printable(name: bytes) -> str:
    """Return a stored name as ``shown`` shows it; what is not UTF-8 is written as an escape."""
    return shown(name.decode(errors="backslashreplace"))


class LimitReachedError(Exception):
    """Raised below the reader that knows the offset, which turns it into ``BadImageError``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an image may cost its reader; a larger one is taken for an attack.

    ``unpacked_bytes``: of all compressed segments together. ``headers``: cpio headers in the whole
    image, ``segments`` and ``streams`` likewise. ``padding_bytes``: zeros in a row between
    segments. ``names_bytes``: memory for the names of directories and links. The defaults are far
    beyond any image that boots.
    """

    unpacked_bytes: int = 2 << 30
    headers: int = 500_000
    segments: int = 4096
    streams: int = 1 << 14
    padding_bytes: int = 64 << 20
    names_bytes: int = 64 << 20


class Allowance:
    """What is left of one limit; ``exceeded`` is said of an image that takes more."""

    def __init__(self, limit: int, exceeded: str) -> None:
        self._left = limit
        self._exceeded = exceeded

    def take(self, amount: int = 1) -> None:
        """Account for what was taken; raises ``LimitReachedError`` once it is too much."""
        self._left -= amount
        if self._left < 0:
            raise LimitReachedError(self._exceeded)


def names_allowance(limit_bytes: int) -> Allowance:
    """Return the memory for names of directories, links or files."""
    return Allowance(limit_bytes, "more names than fit the memory set aside for them")


class Budget:
    """What is left of the limits while one image is read."""

    def __init__(self, limits: Limits) -> None:
        unpacked, streams = limits.unpacked_bytes, limits.streams
        self.unpacked = Allowance(unpacked, f"more than {unpacked} bytes when unpacked: a bomb")
        self.headers = Allowance(limits.headers, f"more than {limits.headers} cpio headers")
        self.streams = Allowance(streams, f"more than {streams} compressed streams")
