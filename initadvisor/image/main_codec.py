"""Which compression an image has, by the heads of its parts alone: nothing is unpacked."""

from __future__ import annotations

import re
from typing import IO

from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.image.cpio import CRC_MAGIC, HEADER_BYTES, NEWC_MAGIC, TRAILER

_MOST_ENTRIES = 100_000
_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{8}")
_PIECE_BYTES = 4096


def main_codec(file: IO[bytes], *, offset: int, size_bytes: int) -> Codec | None:
    """Return the codec of the first part that is compressed; ``CAT`` where all of it is plain.

    None for what does not look like an initramfs, or not in as far as it was looked at: this is no
    check, and says of a plain archive's content nothing at all.
    """
    position, end = offset, offset + size_bytes
    archives = 0
    for _ in range(_MOST_ENTRIES):
        position = _behind_zeros(file, position, end)
        if position >= end:
            return Codec.CAT if archives else None
        file.seek(position)
        head = file.read(HEADER_BYTES)
        if not head.startswith((NEWC_MAGIC, CRC_MAGIC)):
            return codec_of_magic(head)
        sizes = [head[start : start + 8] for start in (54, 94)]  # of the file, of its name
        if not all(map(_HEXADECIMAL.fullmatch, sizes)):
            return None
        file_bytes, name_bytes = (int(size, 16) for size in sizes)
        archives += file.read(len(TRAILER)) == TRAILER
        position = _aligned(_aligned(position + HEADER_BYTES + name_bytes) + file_bytes)
    return None


def _behind_zeros(file: IO[bytes], position: int, end: int) -> int:
    file.seek(position)
    while position < end:
        piece = file.read(min(_PIECE_BYTES, end - position))
        rest = piece.lstrip(b"\0")
        if rest or not piece:
            return position + len(piece) - len(rest)
        position += len(piece)
    return position


def _aligned(position: int) -> int:
    return -(-position // 4) * 4
