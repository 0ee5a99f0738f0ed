"""bzip2 streams, and looking for the blocks that the kernel does not unpack.

The format has no written specification; its reference is the source of bzip2 (decompress.c).

The kernel's bunzip2 takes a run of equal bytes that ends with the last byte of its buffer for an
overflow (get_next_block, lib/decompress_bunzip2.c: ``dbufCount+t >= dbufSize``). That takes a block
which is full to the last byte: bzip2 leaves 19 bytes free, lbzip2 and 7-Zip do not.

Where a block's last run is, the first two steps of bzip2's compressor tell. Step one shortens runs:
4 to 255 equal bytes become four of them and a count. Step two sorts all rotations of a block and
keeps the byte in front of each, in that order (the Burrows-Wheeler transform). What comes after
stores that in runs of equal bytes.
"""

from __future__ import annotations

import bz2
import re
from typing import TYPE_CHECKING

from initadvisor.image.decompressors.bounded import bounded_decompress
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


_PACKED_BLOCK_MAGIC = 0x314159265359
_MAGIC_BYTES = 7  # it starts at any bit
_BLOCK_UNIT_BYTES = 100_000


class BlockWatch:
    """Watches a stream while it is unpacked."""

    def __init__(self, level: bytes) -> None:
        """``level``: the digit in the stream's header that gives the size of blocks."""
        self._size = _BLOCK_UNIT_BYTES * int(level) if level.isdigit() else 0
        self._block = RunLengths()
        self._at_start = False
        self._found = False

    def cut(self, data: bytes) -> int:
        """Return how much of new input to use, so that the output of blocks comes separately."""
        if self._at_start:
            self._close()
        found = _block_start(data)
        self._at_start = found is not None
        if found is not None:
            return found
        return len(data) - _MAGIC_BYTES if len(data) > 2 * _MAGIC_BYTES else len(data)

    def add(self, piece: bytes) -> None:
        """Take output of the block that the last input was of."""
        if not self._found:
            self._block.add(piece)

    def found(self) -> bool:
        """Tell whether there was such a block; call it when the stream has ended."""
        self._close()
        return self._found

    def _close(self) -> None:
        block = self._block.finish()
        if len(block) == self._size and block:
            self._found |= ends_with_run(block)


def _block_start(data: bytes) -> int | None:
    """Return the end of the byte in which the first block magic after the first byte starts."""
    starts = []
    for shift in range(8):
        pattern = (_PACKED_BLOCK_MAGIC << (8 - shift)).to_bytes(_MAGIC_BYTES)
        first_mask, last_mask = 0xFF >> shift, 0xFF << (8 - shift) & 0xFF
        position = data.find(pattern[1:6], 1)
        while 0 < position < len(data) - 5:
            begins = data[position - 1] & first_mask == pattern[0]
            if begins and data[position + 5] & last_mask == pattern[6]:
                starts.append(position)
                break
            position = data.find(pattern[1:6], position + 1)
    return min(starts, default=None)


_EQUAL_TO_PREVIOUS = re.compile(rb"\0{3,}")
_RUN_MAX = 255
_RUN_MIN = 4
_PREFIX_MAX = 1 << 12


class RunLengths:
    """Step one, for a block that comes in pieces; the result is at most 900 kB long."""

    def __init__(self) -> None:
        self._encoded = bytearray()
        self._tail = b""

    def add(self, piece: bytes) -> None:
        """Take a piece of the block."""
        data = self._tail + piece
        # The last run may go on in the next piece; only whole runs of 255 are known to be complete.
        ended = len(data.rstrip(data[-1:]))
        ended += (len(data) - ended) // _RUN_MAX * _RUN_MAX
        self._encode(data[:ended])
        self._tail = data[ended:]

    def finish(self) -> bytes:
        """Return the encoded block, and begin with another."""
        self._encode(self._tail)
        encoded = bytes(self._encoded)
        self._encoded.clear()
        self._tail = b""
        return encoded

    def _encode(self, plain: bytes) -> None:
        number = int.from_bytes(plain)
        # Zero where a byte equals the one before it: those runs are found faster.
        steps = (number ^ (number >> 8)).to_bytes(len(plain))
        done = 0
        for match in _EQUAL_TO_PREVIOUS.finditer(steps, 1):
            start, end = match.start() - 1, match.end()
            while end - start >= _RUN_MIN:
                length = min(end - start, _RUN_MAX)
                self._encoded += plain[done : start + _RUN_MIN]
                self._encoded.append(length - _RUN_MIN)
                start += length
                done = start
        self._encoded += plain[done:]


def ends_with_run(block: bytes) -> bool:
    """Tell whether the last two bytes that step two makes of a block are equal.

    They are those in front of the two greatest rotations, which are found by comparing ever longer
    prefixes of all that may be. Where 4096 bytes do not tell them apart, equal is assumed.
    """
    twice = block + block[:_PREFIX_MAX]
    greatest = max(block)
    least = greatest
    if block.count(greatest) == 1:
        least = max(block.replace(bytes([greatest]), b""), default=greatest)
    contenders = [start for start, byte in enumerate(block) if byte >= least]
    length = 1
    while True:
        before = {block[start - 1] for start in contenders}
        if len(contenders) <= 2 or len(before) == 1:
            return len(before) == 1
        if length == _PREFIX_MAX:
            return True
        length *= 2
        prefixes = [twice[start : start + length] for start in contenders]
        second = sorted(prefixes)[-2]
        pairs = zip(contenders, prefixes, strict=True)
        contenders = [start for start, prefix in pairs if prefix >= second]
