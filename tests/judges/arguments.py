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


STRICTER = (
    Argument(
        title="Cut off inside the last entry",
        because=(
            "The kernel waits for the rest and never asks whether it came. Here it is only the"
            " trailer that is cut, but an archive that ends inside an entry is not what was made."
        ),
        names=(
            "cat cut by 4 bytes",
            "cat cut by 8 bytes",
            "cat cut by 12 bytes",
            "cat cut by 30 bytes",
        ),
    ),
    Argument(
        title="The beginning of an archive behind the end",
        because=(
            "Less than one header, which the kernel ignores like the rest of any entry that is cut"
            " off. Whatever was to follow is missing."
        ),
        names=(
            "cat, then the magic of cpio",
            "lzma, then the magic of cpio",
            "xz, then the magic of cpio",
            "lzop, then the magic of cpio",
        ),
    ),
    Argument(
        title="Headers with numbers that are none",
        because=(
            "The kernel reads a number up to the first character that is no hexadecimal digit and"
            " goes on with what it has: here for the inode, elsewhere for the length that all"
            " the rest depends on. No program writes such a header."
        ),
        names=(
            "cat with byte 6 inverted",
            "cat with byte 8 inverted",
            "cat with byte 10 inverted",
            "cat with byte 13 inverted",
        ),
    ),
    Argument(
        title="LZMA that contradicts its header",
        because=(
            "With an end marker in the data the kernel does not compare the length in the header,"
            " and it ignores the first byte of the data, which must be zero. Every other reader"
            " takes both for damage, and it is."
        ),
        names=(
            "lzma with byte 6 inverted",
            "lzma with byte 8 inverted",
            "lzma with byte 10 inverted",
            "lzma with byte 13 inverted",
        ),
    ),
)

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
