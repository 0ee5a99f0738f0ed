"""lz4 frames: the legacy format, whose container is parsed here, and the newer one.

A legacy frame is a magic, then blocks: a length (four bytes, little endian) and that many bytes
which unpack to at most 8 MiB. Nothing marks its end (lz4_Frame_format.md, "Legacy frame").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import codec_of_magic
from initadvisor.core.errors import BadImageError
from initadvisor.image.reader import CHUNK_BYTES
from initadvisor.image.stream_facts import Lz4Facts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader


LEGACY_MAGIC = b"\x02\x21\x4c\x18"
FRAME_MAGIC = b"\x04\x22\x4d\x18"
BLOCK_BYTES = 8 << 20

_LENGTH_LIMIT = BLOCK_BYTES + BLOCK_BYTES // 255 + 16  # LZ4_compressBound
_FIELD_BYTES = 4
_INPUT_BYTES = 1 << 16


def unlz4(reader: Reader) -> Generator[bytes, None, Lz4Facts]:
    """Unpack one frame of the newer format, or the legacy frames that follow each other.

    Like the kernel (lib/decompress_unlz4.c), which takes a run of legacy frames for one stream.
    """
    if reader.peek(_FIELD_BYTES) == FRAME_MAGIC:
        yield from _frame(reader)
        return Lz4Facts(legacy=False)
    return (yield from _legacy(reader))


def _legacy(reader: Reader) -> Generator[bytes, None, Lz4Facts]:
    from lz4.block import LZ4BlockError
    from lz4.block import decompress as unpack

    if reader.exactly(_FIELD_BYTES, "an lz4 header") != LEGACY_MAGIC:
        msg = "not lz4 although it starts with the magic that the kernel takes for it"
        raise BadImageError(msg, offset=reader.position - _FIELD_BYTES)
    while True:
        field = reader.peek(_FIELD_BYTES)
        length = int.from_bytes(field, "little")
        if len(field) < _FIELD_BYTES or length == 0:
            return Lz4Facts(legacy=True, zero_padded=len(field) == _FIELD_BYTES)
        if field == LEGACY_MAGIC:
            reader.position += _FIELD_BYTES
            continue
        if length > _LENGTH_LIMIT:
            return Lz4Facts(legacy=True, runs_on=True)
        start = reader.position
        try:
            reader.position += _FIELD_BYTES
            block = reader.exactly(length, f"the lz4 block that starts at {start}")
            unpacked: bytes = unpack(block, uncompressed_size=BLOCK_BYTES)
        except (BadImageError, LZ4BlockError) as err:
            if codec_of_magic(field):
                # No block, but a following segment whose magic is a possible length (gzip's is).
                reader.position = start
                return Lz4Facts(legacy=True, runs_on=True)
            if isinstance(err, BadImageError):
                raise
            msg = "damaged lz4 block"
            raise BadImageError(msg, offset=start) from err
        if unpacked:
            yield unpacked


def _frame(reader: Reader) -> Generator[bytes, None, None]:
    from lz4.frame import LZ4FrameDecompressor

    start = reader.position
    decompressor = LZ4FrameDecompressor()
    while not decompressor.eof:
        data = reader.read(_INPUT_BYTES) if decompressor.needs_input else b""
        if decompressor.needs_input and not data:
            reader.fail_truncated(f"the lz4 frame that starts at {start}")
        try:
            unpacked: bytes = decompressor.decompress(data, CHUNK_BYTES)
        except RuntimeError as err:
            msg = "lz4 data is damaged in the frame that starts"
            raise BadImageError(msg, offset=start) from err
        if unpacked:
            yield unpacked
    reader.position -= len(decompressor.unused_data or b"")
