"""zstd frames (RFC 8878).

Headers of frames and blocks are read here, too: that is how the end of a frame in the middle of a
file is known.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, cast

from initadvisor.core.errors import BadImageError
from initadvisor.image.reader import CHUNK_BYTES
from initadvisor.image.stream_facts import ZstdFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader


MAGIC = b"\x28\xb5\x2f\xfd"

_WINDOW_LIMIT_BYTES = 1 << 31  # what `zstd --long=31` asks for, the most libzstd takes
_INPUT_BYTES = 1 << 17
_OUTPUT_BYTES = 1 << 20
_BLOCK_LIMIT = 1 << 20
_RLE, _RESERVED = 1, 3
_BLOCK_HEADER_BYTES = 3
_WINDOW_LOG_MIN = 10


def is_skippable(head: bytes) -> bool:
    """Tell whether data starts with a skippable frame, which zstd and lz4 share."""
    return len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"


def unzstd(reader: Reader) -> Generator[memoryview, None, ZstdFacts]:
    """Unpack one frame; what is yielded is overwritten when the next piece is asked for."""
    start = reader.position
    if is_skippable(reader.peek(4)):
        reader.position += 4
        size = int.from_bytes(reader.exactly(4, "a skippable frame"), "little")
        reader.exactly(size, "a skippable frame")
        return ZstdFacts(window_bytes=0, checksum=False, dictionary_id=0, skippable=True)
    facts = _header(reader)
    frame = _Frame(reader, start, facts)
    yield from _unpack(frame, facts, start)
    return facts


def _unpack(frame: _Frame, facts: ZstdFacts, start: int) -> Generator[memoryview, None, None]:
    from zstandard import ZstdDecompressor, ZstdError

    decompressor = ZstdDecompressor(max_window_size=_WINDOW_LIMIT_BYTES)
    stream = decompressor.stream_reader(
        cast("IO[bytes]", frame), read_size=_INPUT_BYTES, read_across_frames=False, closefd=False
    )
    buffer = bytearray(_OUTPUT_BYTES)
    while True:
        try:
            count = stream.readinto(buffer)
        except ZstdError as err:
            needed = f"dictionary {facts.dictionary_id} needed" if facts.dictionary_id else str(err)
            msg = f"zstd data is damaged ({needed}) in the frame that starts"
            raise BadImageError(msg, offset=start) from err
        if not count:
            break
        yield memoryview(buffer)[:count]
    frame.finish()


class _Frame:
    """A file that ends where the frame does: the block headers tell, which are followed here."""

    def __init__(self, reader: Reader, start: int, facts: ZstdFacts) -> None:
        self._reader = reader
        self._start = start
        self._checksum_bytes = 4 if facts.checksum else 0
        self._next_header = reader.position
        self._end: int | None = None
        self._blocks = 0
        reader.position = start

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, empty at the end of the frame."""
        start = self._reader.position
        data = self._reader.read(size)
        end = start + len(data)
        while self._end is None and self._next_header + _BLOCK_HEADER_BYTES <= end:
            self._follow(data, self._next_header - start)
        # What was read too much is left to others: what comes after the frame, or half a header.
        stop = min(end, self._next_header if self._end is None else self._end)
        if stop == start != self._end:
            self._reader.fail_truncated(f"the zstd frame that starts at {self._start}")
        self._reader.position = stop
        return data[: stop - start]

    def finish(self) -> None:
        """Move the reader to the end of the frame; what is left there is no data."""
        while self.read(CHUNK_BYTES):
            pass

    def _follow(self, data: bytes, position: int) -> None:
        """Take the block header at ``position`` and find the next one, or the end."""
        header = int.from_bytes(data[position : position + _BLOCK_HEADER_BYTES], "little")
        last, kind, length = header & 1, header >> 1 & 3, header >> 3
        self._blocks += 1
        if kind == _RESERVED or self._blocks > _BLOCK_LIMIT:
            what = (
                "block of a kind that does not exist" if kind == _RESERVED else "blocks: too many"
            )
            msg = f"zstd {what}"
            raise BadImageError(msg, offset=self._next_header)
        self._next_header += _BLOCK_HEADER_BYTES + (1 if kind == _RLE else length)
        if last:
            self._end = self._next_header + self._checksum_bytes


def _header(reader: Reader) -> ZstdFacts:
    start = reader.position
    if reader.exactly(4, "a zstd header") != MAGIC:
        msg = "not zstd although it starts with the magic that the kernel takes for it"
        raise BadImageError(msg, offset=start)
    descriptor = _number(reader, 1)
    single_segment = bool(descriptor & 0x20)
    window = 0
    if not single_segment:
        exponent, mantissa = divmod(_number(reader, 1), 8)
        base = 1 << (_WINDOW_LOG_MIN + exponent)
        window = base + base // 8 * mantissa
    dictionary_id = _number(reader, (0, 1, 2, 4)[descriptor & 3])
    content_field_bytes = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    content = _number(reader, content_field_bytes)
    if single_segment:
        window = content + (256 if content_field_bytes == 2 else 0)
    return ZstdFacts(
        window_bytes=window, checksum=bool(descriptor & 4), dictionary_id=dictionary_id
    )


def _number(reader: Reader, size: int) -> int:
    return int.from_bytes(reader.exactly(size, "a zstd header"), "little")
