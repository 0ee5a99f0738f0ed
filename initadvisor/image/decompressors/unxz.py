"""xz streams, and LZMA_Alone: the format of ``xz --format=lzma`` and the old ``lzma``.

What the headers of xz say: https://tukaani.org/xz/xz-file-format.txt.
"""

from __future__ import annotations

import dataclasses
import lzma
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.decompressors.bounded import bounded_decompress
from initadvisor.image.stream_facts import LzmaFacts, XzFacts

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


USUAL_PROPERTIES = 0x5D
"""lc=3, lp=0, pb=2: the only first byte by which the kernel recognises the format."""

_LZMA_HEADER_BYTES = 13
_PROPERTIES = 9 * 5 * 5
_UNKNOWN = (1 << 64) - 1
_PLAUSIBLE_BYTES = 1 << 38
_SMALLEST_DICTIONARY = 1 << 12


def looks_like_lzma(head: bytes) -> bool:
    """Tell whether data is LZMA_Alone, which has no magic.

    Like liblzma's own detection (alone_decoder.c, ``picky``): a valid first byte with lc and lp of
    4 together at most, a dictionary of 2^n or 2^n + 2^(n-1) bytes, a length that is unknown or
    below 256 GiB.
    """
    if (
        len(head) < _LZMA_HEADER_BYTES
        or head[0] >= _PROPERTIES
        or head[0] % 9 + head[0] // 9 % 5 > 4
    ):
        return False
    facts = _lzma_facts(head)
    dictionary = facts.dictionary_bytes
    lowest_bit = dictionary & -dictionary
    usual = dictionary >= _SMALLEST_DICTIONARY and dictionary in {lowest_bit, 3 * lowest_bit}
    known = facts.declared_bytes
    return usual and (known is None or known < _PLAUSIBLE_BYTES)


def unlzma(reader: Reader, *, verify: bool) -> Generator[bytes, None, LzmaFacts]:
    """Unpack one stream; with ``verify`` twice if need be, to tell if it has an end marker."""
    start = reader.position
    head = reader.exactly(_LZMA_HEADER_BYTES, "an lzma header")
    facts = _lzma_facts(head)
    if verify and facts.declared_bytes is not None:
        end_marker = _has_end_marker(reader, head, facts.declared_bytes)
        facts = dataclasses.replace(facts, end_marker=end_marker)
    reader.position = start
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_ALONE)
    yield from bounded_decompress(decompressor, reader, name="lzma", error=lzma.LZMAError)
    return facts


def _has_end_marker(reader: Reader, head: bytes, declared_bytes: int) -> bool:
    """Tell whether a stream of a known length ends with a marker, as those of unknown length do.

    It is unpacked as if its length were not known.
    """
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_ALONE)
    unpacked = 0
    try:
        decompressor.decompress(head[:5] + _UNKNOWN.to_bytes(8, "little"))
        for piece in bounded_decompress(decompressor, reader, name="lzma", error=lzma.LZMAError):
            unpacked += len(piece)
            if unpacked > declared_bytes:
                return False
    except (BadImageError, lzma.LZMAError):
        return False
    return unpacked == declared_bytes


def _lzma_facts(head: bytes) -> LzmaFacts:
    declared = int.from_bytes(head[5:13], "little")
    return LzmaFacts(
        properties=head[0],
        dictionary_bytes=int.from_bytes(head[1:5], "little"),
        declared_bytes=None if declared == _UNKNOWN else declared,
    )
