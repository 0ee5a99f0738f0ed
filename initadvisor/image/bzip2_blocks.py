"""Looking for bzip2 blocks that are full to the last byte."""

from __future__ import annotations

import re

_MAGIC = 0x314159265359
_MAGIC_BYTES = 7  # it starts at any bit
_BLOCK_UNIT_BYTES = 100_000
_KEPT_BLOCKS = 8
"""How many times its size a block may be when unpacked to be looked at; runs shrink before they
count, so a block may have 50 times its size."""

_EQUAL_TO_PREVIOUS = re.compile(rb"\0{3,}")
_RUN_MAX = 255


class FullBlocks:
    """Watches a stream while it is unpacked, and tells which blocks could hold no more."""

    def __init__(self, level: bytes) -> None:
        """``level``: the digit in the stream's header that gives the size of blocks."""
        self._size = _BLOCK_UNIT_BYTES * int(level) if level.isdigit() else 0
        self._plain = bytearray()
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
        if len(self._plain) <= _KEPT_BLOCKS * self._size:
            self._plain += piece

    def any(self) -> bool:
        """Tell whether a block was full; call it when the stream has ended."""
        self._close()
        return self._found

    def _close(self) -> None:
        if self._size <= len(self._plain) * 5 / 4 and len(self._plain) <= _KEPT_BLOCKS * self._size:
            self._found |= _encoded_bytes(self._plain) == self._size
        self._plain.clear()


def _block_start(data: bytes) -> int | None:
    """Return the end of the byte in which the first block magic after the first byte starts."""
    starts = []
    for shift in range(8):
        pattern = (_MAGIC << (8 - shift)).to_bytes(_MAGIC_BYTES)
        first_mask, last_mask = 0xFF >> shift, 0xFF << (8 - shift) & 0xFF
        position = data.find(pattern[1:6], 1)
        while 0 < position < len(data) - 5:
            begins = data[position - 1] & first_mask == pattern[0]
            if begins and data[position + 5] & last_mask == pattern[6]:
                starts.append(position)
                break
            position = data.find(pattern[1:6], position + 1)
    return min(starts, default=None)


def _encoded_bytes(plain: bytes | bytearray) -> int:
    """Return the length of a block after bzip2's first step, which is what its size limits.

    Runs of 4 to 255 equal bytes become four of them and a count.
    """
    number = int.from_bytes(plain)
    # Zero where a byte equals the one before it: regular expressions find those faster than runs.
    steps = (number ^ (number >> 8)).to_bytes(len(plain))
    length = len(plain)
    for match in _EQUAL_TO_PREVIOUS.finditer(steps, 1):
        run = match.end() - match.start() + 1
        whole, rest = divmod(run, _RUN_MAX)
        length += 5 * whole + (5 if rest > 3 else rest) - run
    return length
