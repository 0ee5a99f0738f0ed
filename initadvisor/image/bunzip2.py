"""bzip2 streams."""

from __future__ import annotations

import bz2
from typing import TYPE_CHECKING

from initadvisor.image.drain import drain
from initadvisor.model.stream import Bzip2Facts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader

_RANDOMISED_OFFSET = 4 + 6 + 4  # stream header, block magic, block CRC; then the bit
_RANDOMISED_BIT = 0x80


def bunzip2(reader: Reader) -> Generator[bytes, None, Bzip2Facts]:
    """Unpack one stream."""
    head = reader.peek(_RANDOMISED_OFFSET + 1)
    block = head[4:10] == b"\x31\x41\x59\x26\x53\x59"
    randomised = block and bool(head[_RANDOMISED_OFFSET:] >= bytes([_RANDOMISED_BIT]))
    yield from drain(bz2.BZ2Decompressor(), reader, name="bzip2", error=OSError)
    return Bzip2Facts(randomised=randomised)
