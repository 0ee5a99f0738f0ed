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


class Budget:
    """What is left of the limits while one image is read."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._unpacked_bytes = limits.unpacked_bytes
        self._headers = limits.headers
        self._streams = limits.streams

    def unpack(self, size_bytes: int) -> None:
        """Account for unpacked bytes; like all here, raises ``LimitReachedError``."""
        self._unpacked_bytes -= size_bytes
        if self._unpacked_bytes < 0:
            msg = f"more than {self.limits.unpacked_bytes} bytes when unpacked: a bomb"
            raise LimitReachedError(msg)

    def header(self) -> None:
        """Account for one cpio header."""
        self._headers -= 1
        if self._headers < 0:
            msg = f"more than {self.limits.headers} cpio headers"
            raise LimitReachedError(msg)

    def stream(self) -> None:
        """Account for one compressed stream."""
        self._streams -= 1
        if self._streams < 0:
            msg = f"more than {self.limits.streams} compressed streams"
            raise LimitReachedError(msg)
