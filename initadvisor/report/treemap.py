"""What is in an image, as areas: by purpose, and in each the largest files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A rectangle, in percent of the picture; ``kind``: which of the purposes, from 0.

    ``purpose``: what the name does not say, for what its file is there.
    """

    name: str
    purpose: str
    size_bytes: int
    kind: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Room:
    x: float
    y: float
    width: float
    height: float


def areas(report: Report, *, aspect: float) -> tuple[Area, ...]:
    """Return the areas of a picture that is ``aspect`` times as wide as high.

    A kind's largest files stand in its area, the others together as one.
    """
    kinds = sorted(report.kinds, key=lambda kind: -kind.size_bytes)
    kinds = [kind for kind in kinds if kind.size_bytes]
    rooms = _squarified([kind.size_bytes for kind in kinds], _Room(0, 0, 100 * aspect, 100))
    found = []
    for number, (kind, room) in enumerate(zip(kinds, rooms, strict=True)):
        files = [file for file in report.largest if file.kind is kind.kind]
        left = kind.size_bytes - sum(file.size_bytes for file in files)
        if left < 0:
            files, left = [], kind.size_bytes
        parts = [(file.path.rpartition("/")[2], file.size_bytes) for file in files]
        parts += [(f"other {kind.kind}" if files else str(kind.kind), left)] if left else []
        parts.sort(key=lambda part: -part[1])
        inner = _squarified([size for _, size in parts], room)
        found += [
            Area(
                name=name,
                purpose="" if name.endswith(str(kind.kind)) else str(kind.kind),
                size_bytes=size,
                kind=number,
                x=part.x / aspect,
                y=part.y,
                width=part.width / aspect,
                height=part.height,
            )
            for (name, size), part in zip(parts, inner, strict=True)
        ]
    return tuple(found)


def _squarified(sizes: Sequence[float], room: _Room) -> list[_Room]:
    """Divide a room by sizes, the largest first, into parts that are about as wide as high.

    Bruls, Huizing, van Wijk: Squarified Treemaps (2000).
    """
    rooms: list[_Room] = []
    left, start = float(sum(sizes)), 0
    while start < len(sizes):
        scale = room.width * room.height / left
        side = min(room.width, room.height)
        end = start + 1
        while end < len(sizes) and _worst(sizes[start : end + 1], side, scale) <= _worst(
            sizes[start:end], side, scale
        ):
            end += 1
        row = sizes[start:end]
        depth = sum(row) * scale / side
        across = 0.0
        for size in row:
            length = size * scale / depth
            if room.width >= room.height:
                rooms.append(_Room(room.x, room.y + across, depth, length))
            else:
                rooms.append(_Room(room.x + across, room.y, length, depth))
            across += length
        if room.width >= room.height:
            room = _Room(room.x + depth, room.y, max(room.width - depth, 1e-9), room.height)
        else:
            room = _Room(room.x, room.y + depth, room.width, max(room.height - depth, 1e-9))
        left -= sum(row)
        start = end
    return rooms


def _worst(row: Sequence[float], side: float, scale: float) -> float:
    """Return how far the least square part of a row is from a square."""
    depth = sum(row) * scale / side
    return max(
        max(depth / length, length / depth) for size in row for length in (size * scale / depth,)
    )
