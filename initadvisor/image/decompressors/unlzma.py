"""LZMA_Alone, the format of ``xz --format=lzma`` and the old ``lzma``."""

from __future__ import annotations

import dataclasses
import lzma
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.decompressors.bounded import bounded_decompress
from initadvisor.image.stream_facts import LzmaFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader


USUAL_PROPERTIES = 0x5D
"""lc=3, lp=0, pb=2: the only first byte by which the kernel recognises the format."""

_HEADER_BYTES = 13
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
    if len(head) < _HEADER_BYTES or head[0] >= _PROPERTIES or head[0] % 9 + head[0] // 9 % 5 > 4:
        return False
    facts = _facts(head)
    dictionary = facts.dictionary_bytes
    lowest_bit = dictionary & -dictionary
    usual = dictionary >= _SMALLEST_DICTIONARY and dictionary in {lowest_bit, 3 * lowest_bit}
    known = facts.declared_bytes
    return usual and (known is None or known < _PLAUSIBLE_BYTES)


def unlzma(reader: Reader, *, verify: bool) -> Generator[bytes, None, LzmaFacts]:
    """Unpack one stream; with ``verify`` twice if need be, to tell if it has an end marker."""
    start = reader.position
    head = reader.exactly(_HEADER_BYTES, "an lzma header")
    facts = _facts(head)
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


def _facts(head: bytes) -> LzmaFacts:
    declared = int.from_bytes(head[5:13], "little")
    return LzmaFacts(
        properties=head[0],
        dictionary_bytes=int.from_bytes(head[1:5], "little"),
        declared_bytes=None if declared == _UNKNOWN else declared,
    )
