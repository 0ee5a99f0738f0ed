"""The lzop container, as lzop 1.04 writes and reads it (its src/lzop.c and src/p_lzo.c)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.stream_facts import LzopFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader


MAGIC = b"\x89LZO\x00\r\n\x1a\n"

F_ADLER32_D, F_ADLER32_C = 0x0001, 0x0002
F_EXTRA_FIELD = 0x0040
F_CRC32_D, F_CRC32_C = 0x0100, 0x0200
F_FILTER = 0x0800

_BLOCK_LIMIT_BYTES = 64 << 20
_WITH_LEVEL = 0x0940
"""The version of the format that added the level and the upper half of the time."""


def unlzop(reader: Reader, *, verify: bool) -> Generator[bytes, None, LzopFacts]:
    """Unpack one file; with ``verify`` its checksums are computed, which the kernel never does.

    Like the kernel this takes every method for LZO1X, which is what those that lzop offers write.
    """
    import lzo

    start = reader.position
    version, method, flags, filtered = _header(reader)
    if filtered:
        msg = "lzop data that went through a filter, in the file that starts"
        raise BadImageError(msg, offset=start)
    largest, compressed, checksum_ok = 0, False, True
    while length := _number(reader, 4):
        block_start = reader.position - 4
        packed = _number(reader, 4)
        if not 0 < packed <= length <= _BLOCK_LIMIT_BYTES:
            msg = f"lzop block of {packed} bytes for {length}"
            raise BadImageError(msg, offset=block_start)
        checksums = _checksums(reader, flags, stored=packed == length)
        block = reader.exactly(packed, f"the lzop block that starts at {block_start}")
        if packed < length:
            try:
                block = lzo.decompress(block, False, length)
            except lzo.error as err:
                msg = "damaged lzop block"
                raise BadImageError(msg, offset=block_start) from err
            if len(block) != length:
                msg = "lzop block of another length than it says"
                raise BadImageError(msg, offset=block_start)
        largest, compressed = max(largest, length), compressed or packed < length
        if verify and checksum_ok:
            checksum_ok = _agrees(block, checksums)
        yield block
    return LzopFacts(
        version=version,
        method=method,
        flags=flags,
        block_bytes=largest,
        compressed_blocks=compressed,
        checksum_ok=checksum_ok,
    )


def _header(reader: Reader) -> tuple[int, int, int, bool]:
    """Move past a file's header; return version, method and flags, and whether it has a filter."""
    start = reader.position
    if reader.exactly(len(MAGIC), "an lzop header") != MAGIC:
        msg = "not lzop although it starts with the magic that the kernel takes for it"
        raise BadImageError(msg, offset=start)
    version = _number(reader, 2)
    reader.exactly(4, "an lzop header")  # of the library, and the version needed to extract
    method = _number(reader, 1)
    if version >= _WITH_LEVEL:
        reader.exactly(1, "an lzop header")
    flags = _number(reader, 4)
    filtered = bool(flags & F_FILTER) and _number(reader, 4) != 0
    reader.exactly(8 + (4 if version >= _WITH_LEVEL else 0), "an lzop header")  # mode and time
    reader.exactly(_number(reader, 1), "an lzop header")  # the name
    reader.exactly(4, "an lzop header")
    if flags & F_EXTRA_FIELD:
        reader.exactly(_number(reader, 4), "an lzop extra field")
        reader.exactly(4, "an lzop extra field")
    return version, method, flags, filtered


def _checksums(reader: Reader, flags: int, *, stored: bool) -> dict[int, int]:
    """Read a block's checksums; those of the packed bytes exist for packed blocks only."""
    found = {flag: _number(reader, 4) for flag in (F_ADLER32_D, F_CRC32_D) if flags & flag}
    if not stored:
        for flag in (F_ADLER32_C, F_CRC32_C):
            if flags & flag:
                found[flag] = _number(reader, 4)
    return found


def _agrees(block: bytes, checksums: dict[int, int]) -> bool:
    return checksums.get(F_ADLER32_D) in {None, zlib.adler32(block)} and checksums.get(
        F_CRC32_D
    ) in {None, zlib.crc32(block)}


def _number(reader: Reader, size: int) -> int:
    return int.from_bytes(reader.exactly(size, "an lzop file"), "big")
