"""Where lint says something else than a kernel, and why that is right.

Every such image is named here; a test finds the ones that are not, and those that need not be.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """Why lint differs on some images."""

    title: str
    because: str
    names: tuple[str, ...]


STRICTER: tuple[Argument, ...] = ()

DOUBTED = (
    Argument(
        title="Headers that the kernel jumps over, in a compressed archive",
        because=(
            "Whether the kernel finds its way back depends on where a buffer of its decompressor"
            " ends; of these it unpacks all but the last, which differs only in that."
        ),
        names=(
            "cpio nameless, gzip",
            "cpio long name, gzip",
            "cpio long target, gzip",
            "cpio directory with data, gzip",
            "cpio nameless, split, gzip",
        ),
    ),
)
