"""bzip2 streams.

The format has no written specification; its reference is the source of bzip2 (decompress.c).
"""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING

from initadvisor.image.decompressors.bounded import bounded_decompress
from initadvisor.image.decompressors.bzip2_blocks import BlockWatch
from initadvisor.image.stream_facts import Bzip2Facts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader


_HEADER_BYTES = 4
_BLOCK_MAGIC = b"\x31\x41\x59\x26\x53\x59"
_RANDOMISED_OFFSET = _HEADER_BYTES + len(_BLOCK_MAGIC) + 4  # behind the block's CRC; the first bit
_RANDOMISED_BIT = b"\x80"


def bunzip2(reader: Reader, *, verify: bool) -> Generator[bytes, None, Bzip2Facts]:
    """Unpack one stream; with ``verify`` look for what ``Bzip2Facts`` tells of blocks."""
    head = reader.peek(_RANDOMISED_OFFSET + 1)
    has_block = head[_HEADER_BYTES:].startswith(_BLOCK_MAGIC)
    blocks = BlockWatch(head[3:4])
    cut = blocks.cut if verify else len
    for piece in bounded_decompress(
        bz2.BZ2Decompressor(), reader, name="bzip2", error=OSError, cut=cut
    ):
        if verify:
            blocks.add(piece)
        yield piece
    return Bzip2Facts(
        randomised=has_block and head[_RANDOMISED_OFFSET:] >= _RANDOMISED_BIT,
        overflows=verify and blocks.found(),
    )
