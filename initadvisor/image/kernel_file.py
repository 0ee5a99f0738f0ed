"""How a kernel's file is compressed: a bzImage (x86), an EFI zboot image, or one compressed whole.

Documentation/arch/x86/boot.rst has the fields of a bzImage; drivers/firmware/efi/libstub/
zboot-header.S those of an EFI zboot image (arm64, riscv, loongarch). The decompressor and the rest
of such a file are not compressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Final

from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import ByteRange
from initadvisor.image.reader import Reader


class KernelFormat(StrEnum):
    """What unpacks a kernel: code in its own file, or the boot loader."""

    BZIMAGE = "bzImage"
    ZBOOT = "EFI zboot"
    WHOLE = "compressed whole"
    PLAIN = "not compressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """A kernel's file, or the section of a unified kernel image that is one.

    ``payload``: what of it is compressed, with ``codec``, and unpacks to ``unpacked_bytes``, as the
    file says.
    """

    format: KernelFormat
    codec: Codec
    size_bytes: int
    payload: ByteRange
    unpacked_bytes: int


_HEADER_BYTES = 0x250
_SECTOR_BYTES = 512
_WITH_PAYLOAD = 0x0208
"""The version of the boot protocol since which the header says where the payload is."""

_SIZE_BYTES = 4
"""The length that the content has unpacked stands behind it; in gzip's format it always does."""

_MOST_BYTES = 1 << 29
"""Kernels of distributions unpack to 50 to 100 MB."""

_ZBOOT_CODECS: Final = {
    b"gzip": Codec.GZIP,
    b"lz4": Codec.LZ4,
    b"lzma": Codec.LZMA,
    b"lzo": Codec.LZOP,
    b"xz": Codec.XZ,
    b"xzkern": Codec.XZ,
    b"zstd": Codec.ZSTD,
    b"zstd22": Codec.ZSTD,
}
"""The names of COMP_TYPE (Makefile.zboot), of this and of earlier releases."""


def read_kernel_file(file: IO[bytes], where: ByteRange) -> KernelFile:
    """Find out how the kernel in a stretch of a file is compressed; nothing is unpacked.

    Raises ``BadImageError`` for what is no such kernel, or damaged.
    """
    reader = Reader(file, where.offset, where.offset + where.size_bytes)
    head = reader.peek(_HEADER_BYTES)
    if head[0x202:0x206] == b"HdrS":
        return _bzimage(reader, head, where)
    if head[:2] == b"MZ" and head[4:8] == b"zimg":
        return _zboot(reader, head, where)
    if (codec := codec_of_magic(head)) is Codec.GZIP:
        return _kernel(reader, KernelFormat.WHOLE, codec, where, where)
    if head[56:60] in {b"ARM\x64", b"RSC\x05"} or head[:4] == b"\x7fELF":
        return KernelFile(
            format=KernelFormat.PLAIN,
            codec=Codec.CAT,
            size_bytes=where.size_bytes,
            payload=where,
            unpacked_bytes=where.size_bytes,
        )
    msg = "no kernel whose compression is known: neither bzImage nor EFI zboot image"
    raise BadImageError(msg, offset=where.offset)


def _bzimage(reader: Reader, head: bytes, where: ByteRange) -> KernelFile:
    if len(head) < _HEADER_BYTES or _number(head, 0x206, 2) < _WITH_PAYLOAD:
        msg = "bzImage of a kernel before Linux 2.6.26, which does not say where its payload is,"
        raise BadImageError(msg, offset=where.offset)
    sectors = (head[0x1F1] or 4) + 1
    payload = ByteRange(
        offset=where.offset + sectors * _SECTOR_BYTES + _number(head, 0x248, 4),
        size_bytes=_number(head, 0x24C, 4),
    )
    codec = codec_of_magic(_within(reader, payload).peek(2))
    if codec is None:
        msg = "bzImage whose payload has no known compression"
        raise BadImageError(msg, offset=payload.offset)
    return _kernel(reader, KernelFormat.BZIMAGE, codec, payload, where)


def _zboot(reader: Reader, head: bytes, where: ByteRange) -> KernelFile:
    name = head[24:56].partition(b"\0")[0]
    codec = _ZBOOT_CODECS.get(name)
    if codec is None:
        msg = f"EFI zboot image with a compression that is not known ({name!r})"
        raise BadImageError(msg, offset=where.offset + 24)
    size_bytes = _number(head, 12, 4) + (0 if codec is Codec.GZIP else _SIZE_BYTES)
    payload = ByteRange(offset=where.offset + _number(head, 8, 4), size_bytes=size_bytes)
    return _kernel(reader, KernelFormat.ZBOOT, codec, payload, where)


def _kernel(
    reader: Reader, kind: KernelFormat, codec: Codec, payload: ByteRange, where: ByteRange
) -> KernelFile:
    """Return what is known of a payload behind whose content its unpacked length stands."""
    part = _within(reader, payload)
    part.position = max(part.end - _SIZE_BYTES, part.position)
    unpacked_bytes = int.from_bytes(part.exactly(_SIZE_BYTES, "a kernel's payload"), "little")
    content = payload.size_bytes - (0 if codec is Codec.GZIP else _SIZE_BYTES)
    if content <= 0 or not 0 < unpacked_bytes <= _MOST_BYTES:
        msg = f"kernel that says it unpacks from {content} to {unpacked_bytes} bytes"
        raise BadImageError(msg, offset=payload.offset)
    return KernelFile(
        format=kind,
        codec=codec,
        size_bytes=where.size_bytes,
        payload=ByteRange(offset=payload.offset, size_bytes=content),
        unpacked_bytes=unpacked_bytes,
    )


def _within(reader: Reader, part: ByteRange) -> Reader:
    """Return a reader of a part; raises ``BadImageError`` where it is not in the file."""
    end = part.offset + part.size_bytes
    if end > reader.end:
        reader.position = reader.end
        reader.fail_truncated("a kernel's payload")
    return Reader(reader.file, part.offset, end)


def _number(data: bytes, offset: int, size: int) -> int:
    return int.from_bytes(data[offset : offset + size], "little")
