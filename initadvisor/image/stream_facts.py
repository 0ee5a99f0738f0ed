"""What a compressed stream says about itself, as far as a kernel's decompressor cares.

One class per format, because each decompressor of the kernel has rules of its own. The
``decompressors`` fill them in, ``lint`` compares them with what a kernel accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class GzipFacts:
    """A gzip member (RFC 1952): its FLG byte, and whether CRC and length in the trailer agree."""

    flags: int
    checksum_ok: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Bzip2Facts:
    """A bzip2 stream.

    ``randomised``: the first block uses what bzip2 dropped in version 0.9.5. ``overflows``: a block
    is full and ends in a way that the kernel takes for more than full.
    """

    randomised: bool
    overflows: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LzmaFacts:
    """The 13-byte header of an LZMA_Alone file.

    ``declared_bytes`` is None where only an end marker tells the length; ``end_marker`` tells that
    there is one although the length is declared.
    """

    properties: int
    dictionary_bytes: int
    declared_bytes: int | None
    end_marker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class XzFacts:
    """An xz stream.

    ``check``: the Check ID. ``chains``: each filter chain in it as filter IDs, first filter first.
    ``dictionary_bytes``: the largest LZMA2 dictionary. ``filter_options``: a filter other than
    LZMA2 comes with properties (the start offset of a BCJ filter, the distance of delta).
    """

    check: int
    chains: tuple[tuple[int, ...], ...]
    dictionary_bytes: int
    filter_options: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LzopFacts:
    """An lzop file: header fields as stored, and what its blocks are like.

    ``block_bytes`` is the largest uncompressed block, 0 without any; ``compressed_blocks`` tells
    that at least one block is not merely stored.
    """

    version: int
    method: int
    flags: int
    block_bytes: int
    compressed_blocks: bool
    checksum_ok: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lz4Facts:
    """One or more lz4 frames in a row.

    ``legacy``: the frame format that ``lz4 -l`` writes, the only one the kernel knows.
    ``zero_padded``: at least four zero bytes follow. ``runs_on``: what follows directly is neither
    zeros nor another legacy frame.
    """

    legacy: bool
    zero_padded: bool = False
    runs_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZstdFacts:
    """A zstd frame, or a skippable frame in front of one.

    ``window_bytes`` as in RFC 8878 (for a single segment: the content size). ``dictionary_id`` 0
    is none.
    """

    window_bytes: int
    checksum: bool
    dictionary_id: int
    skippable: bool = False


StreamFacts: TypeAlias = (
    GzipFacts | Bzip2Facts | LzmaFacts | XzFacts | LzopFacts | Lz4Facts | ZstdFacts
)
