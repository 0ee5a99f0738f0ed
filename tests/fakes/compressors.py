"""Compressors that are functions, for a runner that runs nothing."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
from typing import TYPE_CHECKING

import lz4.block
import zstandard

from initadvisor.core.codecs import Codec
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Callable

_LZ4_LEGACY_MAGIC = b"\x02\x21\x4c\x18"


def _xz(data: bytes) -> bytes:
    return lzma.compress(data, check=lzma.CHECK_CRC32)


def _lzma(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


def _lz4(data: bytes) -> bytes:
    """Write the legacy frame; one block is enough for what tests compress."""
    block: bytes = lz4.block.compress(data, store_size=False)
    return _LZ4_LEGACY_MAGIC + len(block).to_bytes(4, "little") + block


_COMPRESSORS: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.CAT: bytes,
    Codec.GZIP: lambda data: gzip.compress(data, mtime=0),
    Codec.BZIP2: bz2.compress,
    Codec.LZMA: _lzma,
    Codec.XZ: _xz,
    Codec.LZ4: _lz4,
    Codec.ZSTD: zstandard.compress,
}
COMPRESSORS: dict[Codec, Callable[[bytes], bytes]] = {
    codec: functools.lru_cache(maxsize=64)(compress) for codec, compress in _COMPRESSORS.items()
}
"""What each program writes, done once for what is asked again and again; lzop has no library that
writes its container.
"""


def fake_compressors() -> FakeRunner:
    """Return a runner that has a working program for each of ``COMPRESSORS``."""
    runner = FakeRunner(programs=[codec.value for codec in COMPRESSORS])
    for codec, compress in COMPRESSORS.items():
        runner.answer(codec.value, filter=compress, cpu_s=1.5, peak_bytes=12_000_000)
        runner.answer([codec.value, "--version"], f"{codec} 1.0\n")
    return runner
