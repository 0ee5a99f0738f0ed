"""How far back a compressor may look for a match, read from its command line."""

from __future__ import annotations

import re
from math import log2
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence


_FIXED = {Codec.GZIP: 15.0, Codec.LZOP: 15.6, Codec.LZ4: 16.0}
"""32 KiB (RFC 1951), 48 KiB (LZO1X), 64 KiB (lz4_Block_format.md)."""

_XZ = (18, 20, 21, 22, 22, 23, 23, 24, 25, 26)
"""The dictionary of each preset, xz(1)."""

_ZSTD = (19, 19, 20, 21, 21, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 25, 26, 27)
"""``windowLog`` of each level for input of unknown length, lib/compress/clevels.h; 0 stands for
what is below 1."""

_LONG_DEFAULT = 27
_BZIP2_BLOCK_BYTES = 100_000
_LEVEL = re.compile(r"-(\d+)")
_SIZE = re.compile(r"[=,]dict=(\d{1,12})([KMG]?)(?:i?B)?(?:,|$)", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30}


def window_log(codec: Codec, argv: Sequence[str], *, level: int | None) -> float:
    """Return the base-2 logarithm of the window in bytes; 0 for no compression at all.

    ``level`` is what ``argv`` comes to where it names none. Options that cannot be read leave what
    the level gives: the figure steers an estimate, nothing depends on it for certain.
    """
    for word in argv[1:]:
        if found := _LEVEL.fullmatch(word):
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
