"""What each of the kernel's decompressors accepts (lib/decompress_*.c and what they call)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.image.decompressors import gunzip, lzop
from initadvisor.image.decompressors.unxz import LZMA2, USUAL_PROPERTIES
from initadvisor.image.stream_facts import (
    Bzip2Facts,
    GzipFacts,
    Lz4Facts,
    LzmaFacts,
    LzopFacts,
    StreamFacts,
    XzFacts,
    ZstdFacts,
)

if TYPE_CHECKING:
    from initadvisor.image.lint_report import LintReport


ZSTD_WINDOW_MAX_BYTES = (1 << 27) + 1
"""ZSTD_MAXWINDOWSIZE_DEFAULT (lib/zstd/decompress/zstd_decompress.c), which is what stops large
windows; the limit that decompress_unzstd.c itself compares with is 2 GiB or more."""

LZOP_BLOCK_MAX_BYTES = 256 << 10
"""LZO_BLOCK_SIZE, lib/decompress_unlzo.c."""

_XZ_CHECKS = {0: "none", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}
_XZ_CHECK_CRC32 = 1
_XZ_DICTIONARY_MAX_BYTES = 3 << 30  # properties up to 39, xz_dec_lzma2_reset
_XZ_BCJ = {
    0x04: "X86",
    0x05: "POWERPC",
    0x06: "IA64",
    0x07: "ARM",
    0x08: "ARMTHUMB",
    0x09: "SPARC",
    0x0A: "ARM64",
    0x0B: "RISCV",
}
"""Filter IDs and the last part of CONFIG_XZ_DEC_*."""

_LZ4_PADDING_SINCE = (5, 14)
_LZMA_DICTIONARY_MIN_BYTES = 1 << 12
_INT_MAX = (1 << 31) - 1
_NOTABLE_MEMORY_BYTES = 64 << 20


def judge_stream(facts: StreamFacts, judgement: LintReport) -> None:
    """Hold one stream against the kernel's decompressor for it."""
    match facts:
        case GzipFacts():
            _gzip(facts, judgement)
        case Bzip2Facts():
            _bzip2(facts, judgement)
        case LzmaFacts():
            _lzma(facts, judgement)
        case XzFacts():
            _xz(facts, judgement)
        case LzopFacts():
            _lzop(facts, judgement)
        case Lz4Facts():
            _lz4(facts, judgement)
        case ZstdFacts():
            _zstd(facts, judgement)


def _gzip(facts: GzipFacts, judgement: LintReport) -> None:
    """The kernel skips ten bytes and a file name; what else a header has, it takes for data."""
    for flag, what in (
        (gunzip.FEXTRA, "an extra field"),
        (gunzip.FCOMMENT, "a comment"),
        (gunzip.FHCRC, "a checksum of its own"),
    ):
        if facts.flags & flag:
            judgement.refuse(f'the gzip header has {what} ("uncompression error")')
    if not facts.checksum_ok:
        judgement.note("the checksum of the gzip data is wrong; the kernel does not look at it")


def _bzip2(facts: Bzip2Facts, judgement: LintReport) -> None:
    if facts.randomised:
        judgement.refuse("a randomised bzip2 block, which the kernel does not read")
    if facts.overflows:
        judgement.refuse(
            "a bzip2 block that is full to the last byte and ends with a run, as lbzip2 and 7-Zip"
            ' write them; the kernel takes that for an overflow ("decompressor failed")'
        )


def _lzma(facts: LzmaFacts, judgement: LintReport) -> None:
    if facts.properties != USUAL_PROPERTIES or facts.dictionary_bytes & 0xFF:
        judgement.refuse(
            "LZMA whose first two bytes are not 5d 00"
            ' ("invalid magic at start of compressed archive")'
        )
    if facts.dictionary_bytes < _LZMA_DICTIONARY_MIN_BYTES:
        judgement.refuse(f"LZMA with a dictionary of {facts.dictionary_bytes} bytes")
    if facts.end_marker:
        judgement.refuse(
            "LZMA that declares its length and has an end marker as well, which the kernel takes"
            ' for something new ("invalid magic at start of compressed archive")'
        )
    # The buffer's size is the smaller of the two, kept in an int.
    buffer_bytes = facts.dictionary_bytes
    if facts.declared_bytes is not None:
        buffer_bytes = min(buffer_bytes, facts.declared_bytes)
    if buffer_bytes > _INT_MAX:
        judgement.refuse('LZMA that needs a buffer of 2 GiB or more ("decompressor failed")')
    _memory(buffer_bytes, judgement)


def _xz(facts: XzFacts, judgement: LintReport) -> None:
    unsupported = '("Input was encoded with settings that are not supported by this XZ decoder")'
    if facts.check > _XZ_CHECK_CRC32:
        name = _XZ_CHECKS.get(facts.check, f"number {facts.check}")
        judgement.refuse(f"xz check {name}; the kernel knows none and CRC32 only {unsupported}")
    for *others, last in facts.chains:
        if last != LZMA2 or len(others) > 1 or not _XZ_BCJ.keys() >= set(others):
            chain = ", ".join(f"{identifier:#x}" for identifier in (*others, last))
            judgement.refuse(f"xz filters {chain} {unsupported}")
        for identifier in others:
            if bcj := _XZ_BCJ.get(identifier):
                judgement.needs(f"CONFIG_XZ_DEC_{bcj}", f"the {bcj} filter of xz")
    if facts.filter_options:
        judgement.refuse(f"an xz filter with options (a start offset) {unsupported}")
    if facts.dictionary_bytes > _XZ_DICTIONARY_MAX_BYTES:
        judgement.refuse(f"an xz dictionary of more than 3 GiB {unsupported}")
    _memory(facts.dictionary_bytes, judgement)


def _lzop(facts: LzopFacts, judgement: LintReport) -> None:
    """The kernel ignores method and flags, and takes each block to have exactly one checksum."""
    if facts.flags & lzop.F_EXTRA_FIELD:
        judgement.refuse("the lzop header has an extra field, which the kernel takes for data")
    if not facts.block_bytes:
        return
    if facts.block_bytes > LZOP_BLOCK_MAX_BYTES:
        judgement.refuse(
            f"lzop blocks of {facts.block_bytes} bytes, the kernel takes {LZOP_BLOCK_MAX_BYTES}"
            ' ("dest len longer than block size")'
        )
    plain = (facts.flags & lzop.F_ADLER32_D != 0) + (facts.flags & lzop.F_CRC32_D != 0)
    packed = facts.flags & (lzop.F_ADLER32_C | lzop.F_CRC32_C)
    if plain != 1 or (packed and facts.compressed_blocks):
        judgement.refuse(
            "lzop blocks with other than one checksum, of the plain data"
            ' ("Compressed data violation")'
        )
    if not facts.checksum_ok:
        judgement.note("a checksum of the lzop data is wrong; the kernel does not look at it")


def _lz4(facts: Lz4Facts, judgement: LintReport) -> None:
    if not facts.legacy:
        judgement.refuse(
            "lz4, but not in the legacy frame format (lz4 -l)"
            ' ("invalid magic at start of compressed archive")'
        )
    if facts.runs_on:
        judgement.refuse(
            "lz4 directly followed by other data, which the kernel takes for a block"
            ' ("Decoding failed")'
        )
    if facts.zero_padded and judgement.is_before(_LZ4_PADDING_SINCE):
        judgement.doubt(
            "lz4 followed by zeros: without a fix of 5.14, which some older kernels received,"
            ' the kernel stops there ("Decoding failed")'
        )


def _zstd(facts: ZstdFacts, judgement: LintReport) -> None:
    if facts.skippable:
        judgement.refuse(
            'a skippable zstd or lz4 frame ("invalid magic at start of compressed archive")'
        )
    if facts.window_bytes > ZSTD_WINDOW_MAX_BYTES:
        judgement.refuse(
            f"a zstd window of {facts.window_bytes >> 20} MiB, the kernel takes 128"
            ' ("ZSTD-compressed data is probably corrupt")'
        )
    else:
        _memory(facts.window_bytes, judgement)


def _memory(size_bytes: int, judgement: LintReport) -> None:
    if size_bytes >= _NOTABLE_MEMORY_BYTES:
        judgement.note(f"the kernel needs {size_bytes >> 20} MiB of memory to decompress it")
