"""Looking for the bzip2 blocks that the kernel does not unpack.

Its bunzip2 takes a run of equal bytes that ends with the last byte of its buffer for an overflow
(get_next_block, lib/decompress_bunzip2.c: ``dbufCount+t >= dbufSize``). That takes a block which is
full to the last byte: bzip2 leaves 19 bytes free, lbzip2 and 7-Zip do not.
"""

from __future__ import annotations

from initadvisor.image.bzip2_transform import RunLengths, ends_with_run

_MAGIC = 0x314159265359
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
