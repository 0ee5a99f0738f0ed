"""Fast compressors, run on all of the content and on a sample of it to tell how the two differ.

Which of them a compressor is like follows from how far back it may look for a match: that is read
from its command line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from math import ceil, exp2, log2
from typing import IO, TYPE_CHECKING

from initadvisor.candidates.schedule import expected_cpu_s
from initadvisor.core.codecs import Codec
from initadvisor.image.decompressors.lz4_legacy import BLOCK_BYTES, LEGACY_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from initadvisor.decide.sampling import SampleBlock


_CHUNK_BYTES = 4 << 20

_LZ4_LOG, _NEAR_LOG, _WIDE_LOG, _WIDEST_LOG = 16, 19, 23, 27
_WIDE_HASH_LOG, _WIDEST_HASH_LOG = 18, 20
_WIDE_COST = 2.0
"""How much longer a wide control takes than another of its level, as its table is larger."""

_FAR_WINDOW_LOG = 22


@dataclass(frozen=True, slots=True)
class Control:
    """A fast compressor: lz4, or zstd at a level with a window.

    ``wide`` ones find repetitions that are megabytes apart, as compressors that search well do:
    with a large table, and in a window of more than 8 MB with zstd's ``--long`` as well.
    """

    codec: Codec
    level: int
    window_log: int
    wide: bool = False

    def expected_cpu_s(self, content_bytes: int) -> float:
        """Return what compressing is expected to take."""
        cpu_s = expected_cpu_s(self.codec, self.level, content_bytes)
        return _WIDE_COST * cpu_s if self.wide else cpu_s

    def compressed_bytes(
        self, pieces: Iterable[bytes | memoryview], *, into: IO[bytes] | None = None
    ) -> int:
        """Return how long the pieces, taken as one, become; that is written to ``into``."""
        compressed_bytes = 0
        for block in _lz4(pieces) if self.codec is Codec.LZ4 else self._zstd(pieces):
            compressed_bytes += len(block)
            if into:
                into.write(block)
        if into:
            into.flush()
        return compressed_bytes

    def _zstd(self, pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
        import zstandard

        far: dict[str, int | bool] = {}
        if self.wide:
            wider = self.window_log > _WIDE_LOG
            hash_log = _WIDEST_HASH_LOG if wider else _WIDE_HASH_LOG
            far = {"hash_log": hash_log, "enable_ldm": wider}
        parameters = zstandard.ZstdCompressionParameters.from_level(
            self.level, window_log=self.window_log, write_content_size=False, **far
        )
        compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        for piece in pieces:
            yield compressor.compress(piece)
        yield compressor.flush()


_LZ4 = Control(Codec.LZ4, 1, _LZ4_LOG)
_NEAR = Control(Codec.ZSTD, 1, _NEAR_LOG)
_WIDE = Control(Codec.ZSTD, 1, _WIDE_LOG, wide=True)


def controls_for(window_log: float, *, whole_bytes: int) -> tuple[Control, ...]:
    """Return the controls between which a compressor with this window stands."""
    if window_log <= _LZ4_LOG:
        return (_LZ4,)
    if window_log <= _NEAR_LOG:
        return (_NEAR,)
    if window_log < _WIDE_LOG:
        return _NEAR, _WIDE
    reach = min(_WIDEST_LOG, ceil(min(window_log, log2(max(whole_bytes, 1)))))
    return (_WIDE,) if reach <= _WIDE_LOG else (_WIDE, replace(_WIDE, window_log=reach))


def pieces_of(file: IO[bytes], stretches: Sequence[SampleBlock]) -> Iterator[bytes]:
    """Yield the bytes of stretches of a file, in bounded pieces; any number of threads may."""
    for stretch in stretches:
        offset, end = stretch.offset, stretch.offset + stretch.size_bytes
        while piece := os.pread(file.fileno(), min(_CHUNK_BYTES, end - offset), offset):
            yield piece
            offset += len(piece)


def _lz4(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    import lz4.block

    def compressed(block: bytes) -> bytes:
        data: bytes = lz4.block.compress(block, store_size=False)
        return len(data).to_bytes(4, "little") + data

    yield LEGACY_MAGIC
    held = b""
    for piece in pieces:
        held += piece
        while len(held) >= BLOCK_BYTES:
            yield compressed(held[:BLOCK_BYTES])
            held = held[BLOCK_BYTES:]
    if held:
        yield compressed(held)


_FIXED = {Codec.GZIP: 15.0, Codec.LZOP: 15.6, Codec.LZ4: 16.0}
"""32 KiB (RFC 1951), 48 KiB (LZO1X), 64 KiB (lz4_Block_format.md)."""

_XZ = (18, 20, 21, 22, 22, 23, 23, 24, 25, 26)
"""The dictionary of each preset, xz(1)."""

_ZSTD = (19, 19, 20, 21, 21, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 25, 26, 27)
"""``windowLog`` of each level for input of unknown length, lib/compress/clevels.h; 0 stands for
what is below 1."""

_LONG_DEFAULT = 27
_BZIP2_BLOCK_BYTES = 100_000
_LEVEL_OPTION = re.compile(r"-(\d+)")
_SIZE = re.compile(r"[=,]dict=(\d{1,12})([KMG]?)(?:i?B)?(?:,|$)", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30}


def is_far(window_log: float) -> bool:
    """Tell whether such a window finds matches megabytes away: more than caches next to it hold."""
    return window_log >= _FAR_WINDOW_LOG


_ZSTD_BUFFER_BYTES = 544 << 10
"""Besides the window: the decompressor's tables, and three blocks of 128 KiB."""

_BZIP2_BYTES_PER_BYTE = 4


def buffer_bytes(codec: Codec, window_log: float) -> float:
    """Return how much memory a kernel's decompressor maps before it unpacks an initramfs.

    lib/decompress_*.c with ``large_malloc`` (vmalloc). What gzip and lzop need is less than a
    megabyte of memory that is mapped already.
    """
    match codec:
        case Codec.LZ4:
            return BLOCK_BYTES
        case Codec.ZSTD:
            return exp2(window_log) + _ZSTD_BUFFER_BYTES
        case Codec.XZ | Codec.LZMA:
            return exp2(window_log)
        case Codec.BZIP2:
            return _BZIP2_BYTES_PER_BYTE * exp2(window_log)
        case Codec.CAT | Codec.GZIP | Codec.LZOP:
            return 0.0


def window_log(codec: Codec, argv: Sequence[str], *, level: int | None) -> float:
    """Return the base-2 logarithm of the window in bytes; 0 for no compression at all.

    ``level`` is what ``argv`` comes to where it names none. Options that cannot be read leave what
    the level gives: the figure steers an estimate, nothing depends on it for certain.
    """
    for word in argv[1:]:
        if found := _LEVEL_OPTION.fullmatch(word):
            level = int(found[1])
    match codec:
        case Codec.CAT:
            return 0.0
        case Codec.BZIP2:
            return log2(_BZIP2_BLOCK_BYTES * max(1, min(level or 9, 9)))
        case Codec.XZ | Codec.LZMA:
            return _xz(argv, level)
        case Codec.ZSTD:
            return _zstd(argv, level)
        case _:
            return _FIXED[codec]


def _xz(argv: Sequence[str], level: int | None) -> float:
    for word in argv:
        if preset := re.search(r"preset=(\d)", word):
            level = int(preset[1])
        if found := _SIZE.search(word):
            size = int(found[1]) << _SHIFT[found[2].lower()]
            return log2(max(size, 4096))
    return float(_XZ[_within(level, 6, len(_XZ))])


def _zstd(argv: Sequence[str], level: int | None) -> float:
    for word in argv:
        if word.startswith("--fast"):
            level = 0
        if found := re.fullmatch(r"--long(?:=(\d{1,2}))?", word):
            return float(found[1] or _LONG_DEFAULT)
        if found := re.search(r"(?:wlog|windowLog)=(\d{1,2})", word):
            return float(found[1])
    return float(_ZSTD[_within(level, 3, len(_ZSTD))])


def _within(level: int | None, default: int, count: int) -> int:
    return min(default if level is None else level, count - 1)
