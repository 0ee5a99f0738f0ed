"""zstd frames (RFC 8878).

Their headers and block headers are walked here: that is how the end of a frame in the middle of a
file is known before anything is unpacked.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, cast

from initadvisor.image.reader import CHUNK_BYTES
from initadvisor.model.errors import BadImageError
from initadvisor.model.stream import ZstdFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader

MAGIC = b"\x28\xb5\x2f\xfd"

_WINDOW_LIMIT_BYTES = 1 << 31  # what `zstd --long=31` asks for, the most libzstd takes
_BLOCK_LIMIT = 1 << 20
_RLE, _RESERVED = 1, 3
_WINDOW_LOG_MIN = 10


def is_skippable(head: bytes) -> bool:
    """Tell whether data starts with a skippable frame, which zstd and lz4 share."""
    return len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"


def unzstd(reader: Reader) -> Generator[memoryview, None, ZstdFacts]:
    """Unpack one frame; what is yielded is overwritten when the next piece is asked for."""
    start = reader.position
    if is_skippable(reader.peek(4)):
        reader.position += 4
        reader.exactly(
            int.from_bytes(reader.exactly(4, "a skippable frame"), "little"), "a skippable frame"
        )
        return ZstdFacts(window_bytes=0, checksum=False, dictionary_id=0, skippable=True)
    facts = _walk(reader)
    end, reader.position = reader.position, start
    yield from _unpack(reader, end, facts)
    reader.position = end
    return facts


def _unpack(reader: Reader, end: int, facts: ZstdFacts) -> Generator[memoryview, None, None]:
    from zstandard import ZstdDecompressor, ZstdError

    start = reader.position
    source = _Stretch(reader, end)
    decompressor = ZstdDecompressor(max_window_size=_WINDOW_LIMIT_BYTES)
    stream = decompressor.stream_reader(
        cast("IO[bytes]", source), read_size=CHUNK_BYTES, read_across_frames=False, closefd=False
    )
    buffer = bytearray(CHUNK_BYTES)
    view = memoryview(buffer)
    while True:
        try:
            count = stream.readinto(buffer)
        except ZstdError as err:
            needed = f"dictionary {facts.dictionary_id} needed" if facts.dictionary_id else err
            msg = f"zstd data is damaged ({needed}) in the frame that starts"
            raise BadImageError(msg, offset=start) from err
        if not count:
            return
        yield view[:count]


class _Stretch:
    """A file that ends where one frame does."""

    def __init__(self, reader: Reader, end: int) -> None:
        self._reader = reader
        self._end = end

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes."""
        return self._reader.read(min(size, self._end - self._reader.position))


def _walk(reader: Reader) -> ZstdFacts:
    """Move to the end of a frame and return what its header says."""
    start = reader.position
    facts = _header(reader)
    for _ in range(_BLOCK_LIMIT):
        block = int.from_bytes(reader.exactly(3, "a zstd frame"), "little")
        kind, length = block >> 1 & 3, block >> 3
        if kind == _RESERVED:
            msg = "zstd block of a kind that does not exist"
            raise BadImageError(msg, offset=reader.position - 3)
        length = 1 if kind == _RLE else length
        if length > reader.left:
            reader.fail_truncated(f"the zstd frame that starts at {start}")
        reader.position += length
        if block & 1:
            if facts.checksum:
                reader.exactly(4, "the checksum of a zstd frame")
            return facts
    msg = f"zstd frame of more than {_BLOCK_LIMIT} blocks"
    raise BadImageError(msg, offset=start)


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
