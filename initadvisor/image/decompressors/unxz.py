"""xz streams, and what their headers say (https://tukaani.org/xz/xz-file-format.txt)."""

from __future__ import annotations

import lzma
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.decompressors.bounded import bounded_decompress
from initadvisor.image.stream_facts import XzFacts

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from initadvisor.image.reader import Reader


LZMA2 = 0x21

_HEADER_BYTES = 12
_CHECK_OFFSET = 7
_FOOTER_BYTES = 12
_BLOCK_LIMIT = 1 << 16
_VLI_BYTES_MAX = 9


def unxz(reader: Reader) -> Generator[bytes, None, XzFacts]:
    """Unpack one stream (not the padding or the streams that may follow it)."""
    start = reader.position
    yield from bounded_decompress(
        lzma.LZMADecompressor(lzma.FORMAT_XZ), reader, name="xz", error=lzma.LZMAError
    )
    return _facts(reader, start)


def _facts(reader: Reader, start: int) -> XzFacts:
    """Collect the headers of a stream that ends where the reader is and was found valid."""
    end, position = reader.position, start + _HEADER_BYTES
    reader.position = start
    check = reader.exactly(_HEADER_BYTES, "an xz header")[_CHECK_OFFSET]
    chains: dict[tuple[int, ...], None] = {}
    dictionary_bytes, options = 0, False
    for unpadded in _block_sizes(reader, end):
        reader.position = position
        length = (reader.exactly(1, "an xz block header")[0] + 1) * 4
        chain, dictionary, has_options = _filters(
            reader.exactly(length - 1, "an xz block header"), position
        )
        chains[chain] = None
        dictionary_bytes = max(dictionary_bytes, dictionary)
        options |= has_options
        position += -(-unpadded // 4) * 4
    reader.position = end
    return XzFacts(
        check=check,
        chains=tuple(chains),
        dictionary_bytes=dictionary_bytes,
        filter_options=options,
    )


def _block_sizes(reader: Reader, end: int) -> Iterator[int]:
    """Yield the unpadded size of each block, from the index in front of the stream's footer."""
    reader.position = end - _FOOTER_BYTES
    footer = reader.exactly(_FOOTER_BYTES, "an xz footer")
    index_bytes = (int.from_bytes(footer[4:8], "little") + 1) * 4
    start = end - _FOOTER_BYTES - index_bytes
    reader.position = start
    index = reader.exactly(min(index_bytes, 2 * _VLI_BYTES_MAX * _BLOCK_LIMIT), "an xz index")
    blocks, position = _vli(index, 1)
    if blocks > _BLOCK_LIMIT:
        msg = f"xz stream of more than {_BLOCK_LIMIT} blocks: its index is"
        raise BadImageError(msg, offset=start)
    for _ in range(blocks):
        unpadded, position = _vli(index, position)
        _, position = _vli(index, position)
        yield unpadded


def _filters(header: bytes, offset: int) -> tuple[tuple[int, ...], int, bool]:
    """Return the filter IDs of a block, its dictionary size, whether other filters have options.

    ``header`` is a block header without its first byte; the flags say which fields it has.
    """
    try:
        flags, position = header[0], 1
        for flag in (0x40, 0x80):
            if flags & flag:
                _, position = _vli(header, position)
        chain: list[int] = []
        dictionary, options = 0, False
        for _ in range((flags & 3) + 1):
            identifier, position = _vli(header, position)
            length, position = _vli(header, position)
            chain.append(identifier)
            if identifier == LZMA2:
                dictionary = (2 | (header[position] & 1)) << ((header[position] >> 1) + 11)
            else:
                options |= length > 0
            position += length
    except IndexError as err:
        msg = "xz block header is damaged"
        raise BadImageError(msg, offset=offset) from err
    return tuple(chain), dictionary, options


def _vli(data: bytes, position: int) -> tuple[int, int]:
    """Return a variable-length integer and where the next field starts."""
    value = 0
    for count in range(_VLI_BYTES_MAX):
        byte = data[position + count]
        value |= (byte & 0x7F) << (7 * count)
        if not byte & 0x80:
            return value, position + count + 1
    raise IndexError(position)
