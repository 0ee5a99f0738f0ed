"""How a kernel's file is compressed, and what is no kernel."""

from __future__ import annotations

import io
import random
import struct

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import ByteRange
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.kernel_file import KernelFile, KernelFormat, read_kernel_file
from tests.fixtures.content import mixed_content
from tests.fixtures.images import compress
from tests.fixtures.kernels import bzimage, with_size, zboot

CONTENT = mixed_content(200_000)
CODECS = [codec for codec in Codec if codec is not Codec.CAT]
FLIPS = 3000


def read(data: bytes) -> KernelFile:
    return read_kernel_file(io.BytesIO(data), ByteRange(offset=0, size_bytes=len(data)))


def unpacked(data: bytes, kernel: KernelFile) -> bytes:
    place = kernel.payload
    pieces = decompress(
        kernel.codec,
        io.BytesIO(data),
        place.offset,
        place.size_bytes,
        most_bytes=kernel.unpacked_bytes,
    )
    return b"".join(bytes(piece) for piece in pieces)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bzimage_says_where_its_payload_is(codec: Codec) -> None:
    data = bzimage("6.1.0", codec, CONTENT)
    kernel = read(data)
    assert (kernel.format, kernel.codec) == (KernelFormat.BZIMAGE, codec)
    assert (kernel.size_bytes, kernel.unpacked_bytes) == (len(data), len(CONTENT))
    assert unpacked(data, kernel) == CONTENT


@pytest.mark.parametrize(
    ("codec", "name"),
    [(c, None) for c in CODECS if c not in {Codec.BZIP2, Codec.LZOP}]
    + [(Codec.LZOP, "lzo"), (Codec.XZ, "xzkern"), (Codec.ZSTD, "zstd22")],
)
def test_an_efi_zboot_image_names_its_compression(codec: Codec, name: str | None) -> None:
    data = zboot(codec, CONTENT, name=name)
    kernel = read(data)
    assert (kernel.format, kernel.codec) == (KernelFormat.ZBOOT, codec)
    assert unpacked(data, kernel) == CONTENT


def test_a_kernel_inside_another_file_is_read_from_where_it_is() -> None:
    data = bzimage("6.1.0", Codec.ZSTD, CONTENT)
    file = io.BytesIO(bytes(1000) + data + bytes(1000))
    kernel = read_kernel_file(file, ByteRange(offset=1000, size_bytes=len(data)))
    assert kernel.payload.offset == read(data).payload.offset + 1000
    assert unpacked(file.getvalue(), kernel) == CONTENT


def test_what_the_loader_unpacks_and_what_is_not_compressed() -> None:
    whole = read(compress(Codec.GZIP, CONTENT))
    assert (whole.format, whole.unpacked_bytes) == (KernelFormat.WHOLE, len(CONTENT))
    plain = read(b"MZ".ljust(56, b"\0") + b"ARM\x64" + CONTENT)
    assert (plain.format, plain.codec) == (KernelFormat.PLAIN, Codec.CAT)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no kernel"),
        (b"MZ" + bytes(600), "no kernel"),
        (bzimage("6.1.0"), "before Linux 2.6.26"),
        (zboot(Codec.ZSTD, CONTENT, name="brotli"), "not known"),
        (zboot(Codec.ZSTD, CONTENT)[:2000], "truncated"),
        (bzimage("6.1.0", Codec.XZ, CONTENT)[:9000], "truncated"),
    ],
)
def test_what_is_no_kernel_is_said_to_be_none(data: bytes, why: str) -> None:
    with pytest.raises(BadImageError, match=why):
        read(data)


@pytest.mark.parametrize("size", [0, (1 << 29) + 1, (1 << 32) - 1])
def test_a_length_that_no_kernel_has_is_refused(size: int) -> None:
    data = zboot(Codec.ZSTD, CONTENT)
    end = len(data) - 400
    assert data[end - 4 : end] == len(CONTENT).to_bytes(4, "little")
    with pytest.raises(BadImageError, match="says it unpacks"):
        read(data[: end - 4] + size.to_bytes(4, "little") + data[end:])


def test_a_payload_that_unpacks_to_more_than_it_says_is_not_unpacked_further() -> None:
    bomb = compress(Codec.ZSTD, bytes(64 << 20)) + (1 << 20).to_bytes(4, "little")
    head = struct.pack("<4s4sII8x32s", b"MZ", b"zimg", 0x400, len(bomb) - 4, b"zstd")
    data = head.ljust(0x400, b"\0") + bomb
    kernel = read(data)
    with pytest.raises(BadImageError, match="more than 1048576 bytes"):
        unpacked(data, kernel)


@pytest.mark.parametrize(
    "data",
    [
        bzimage("6.1.0", Codec.GZIP, CONTENT[:5000]),
        zboot(Codec.ZSTD, CONTENT[:5000]),
        with_size(Codec.GZIP, CONTENT[:5000]),
    ],
)
def test_damaged_kernels_are_read_or_refused(data: bytes) -> None:
    """Cut off anywhere, or with bytes changed: what is read lies inside the file."""
    source = random.Random(25)
    changed = [data[:length] for length in range(0, len(data), 7)]
    for _ in range(FLIPS):
        damaged = bytearray(data)
        reach = source.choice((64, 0x250, len(data)))
        for _ in range(source.choice((1, 4))):
            damaged[source.randrange(min(reach, len(data)))] = source.choice((0, 0xFF, 0x7F))
        changed.append(bytes(damaged))
    refused = 0
    for each in changed:
        try:
            kernel = read(each)
            assert kernel.payload.offset >= 0
            assert kernel.payload.offset + kernel.payload.size_bytes <= len(each)
            unpacked(each, kernel)
        except BadImageError:
            refused += 1
    assert refused > len(data) // 14
