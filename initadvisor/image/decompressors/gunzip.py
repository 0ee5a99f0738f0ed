"""gzip members, parsed here because zlib and the kernel disagree about what a header may say."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.reader import CHUNK_BYTES
from initadvisor.image.stream_facts import GzipFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader


FHCRC, FEXTRA, FNAME, FCOMMENT = 0x02, 0x04, 0x08, 0x10

_DEFLATE = 8
_TEXT_LIMIT_BYTES = 1 << 16
_INPUT_BYTES = 1 << 16  # deflate expands up to 1032 times and the rest is copied at every call


def gunzip(reader: Reader, *, verify: bool) -> Generator[bytes, None, GzipFacts]:
    """Unpack one member; with ``verify`` its CRC is computed, which the kernel never does."""
    start = reader.position
    flags = _header(reader)
    inflater = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    checksum = length = 0
    data = b""
    while not inflater.eof:
        data = data or reader.read(_INPUT_BYTES)
        try:
            unpacked = inflater.decompress(data, CHUNK_BYTES)
        except zlib.error as err:
            msg = f"gzip data is damaged ({err}) in the stream that starts"
            raise BadImageError(msg, offset=start) from err
        if not data and not unpacked and not inflater.eof:
            reader.fail_truncated("a gzip stream")
        data = inflater.unconsumed_tail
        if verify:
            checksum = zlib.crc32(unpacked, checksum)
            length += len(unpacked)
        if unpacked:
            yield unpacked
    reader.position -= len(inflater.unused_data)
    trailer = reader.exactly(8, "the trailer of a gzip stream")
    expected = (checksum.to_bytes(4, "little"), (length & 0xFFFFFFFF).to_bytes(4, "little"))
    return GzipFacts(flags=flags, checksum_ok=not verify or (trailer[:4], trailer[4:]) == expected)


def _header(reader: Reader) -> int:
    """Move past a member's header and return its flags."""
    start = reader.position
    head = reader.exactly(10, "a gzip header")
    if head[:2] != b"\x1f\x8b" or head[2] != _DEFLATE:
        msg = "not gzip although it starts with a magic that the kernel takes for it"
        raise BadImageError(msg, offset=start)
    flags = head[3]
    if flags & FEXTRA:
        length = int.from_bytes(reader.exactly(2, "a gzip header"), "little")
        reader.exactly(length, "a gzip header")
    for text in (FNAME, FCOMMENT):
        if flags & text:
            _skip_text(reader)
    if flags & FHCRC:
        reader.exactly(2, "a gzip header")
    return flags


def _skip_text(reader: Reader) -> None:
    text = reader.peek(_TEXT_LIMIT_BYTES)
    end = text.find(b"\0")
    if end < 0:
        if len(text) < _TEXT_LIMIT_BYTES:
            reader.fail_truncated("a gzip header")
        msg = f"gzip header with a text of more than {_TEXT_LIMIT_BYTES} bytes"
        raise BadImageError(msg, offset=reader.position)
    reader.position += end + 1
