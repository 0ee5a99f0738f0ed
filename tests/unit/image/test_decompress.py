"""Streams come out as they went in, in pieces, and end where they end."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError, InitadvisorError
from initadvisor.image.decompressors.decompress import LIBRARIES, codec_of, decompress, open_stream
from initadvisor.image.reader import Reader
from initadvisor.image.stream_facts import Bzip2Facts, StreamFacts, XzFacts
from tests.fixtures import images
from tests.fixtures.images import compress
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Generator

PIECE_BYTES = 8 << 20
CONTENT = (
    b"".join(b"%d\n" % number for number in range(60_000))
    + random.Random(0).randbytes(100_000)
    + bytes(9)
)
COMPRESSED = [codec for codec in Codec if codec is not Codec.CAT]


def unpacked(codec: Codec, data: bytes, *, offset: int = 0, size: int | None = None) -> bytes:
    size = len(data) - offset if size is None else size
    pieces = decompress(codec, io.BytesIO(data), offset, size)
    return b"".join(bytes(piece) for piece in pieces)


def facts_of(stream: Generator[bytes | memoryview, None, StreamFacts]) -> StreamFacts:
    while True:
        try:
            next(stream)
        except StopIteration as end:
            facts: StreamFacts = end.value
            return facts


@pytest.mark.parametrize("codec", Codec)
def test_what_was_compressed_comes_out(codec: Codec) -> None:
    assert unpacked(codec, compress(codec, CONTENT)) == CONTENT


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("content", [b"", b"x"], ids=["nothing", "one byte"])
def test_little_content_comes_out(codec: Codec, content: bytes) -> None:
    assert unpacked(codec, compress(codec, content)) == content


@pytest.mark.parametrize("codec", Codec)
def test_a_stretch_in_the_middle_of_a_file_is_unpacked(codec: Codec) -> None:
    data = compress(codec, CONTENT)
    assert unpacked(codec, b"before" + data + b"behind", offset=6, size=len(data)) == CONTENT


@pytest.mark.parametrize("codec", Codec)
def test_streams_in_a_row_come_out_in_a_row(codec: Codec) -> None:
    data = compress(codec, CONTENT) + compress(codec, b"more")
    assert unpacked(codec, data) == CONTENT + b"more"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_end_of_a_stream_is_found_to_the_byte(codec: Codec) -> None:
    data = compress(codec, CONTENT)
    # What follows a legacy lz4 frame is taken for a block unless it is zeros.
    reader = Reader(io.BytesIO(data + bytes(4) + b"behind"), 0, len(data) + 10)
    facts_of(open_stream(codec, reader, verify=True))
    assert reader.position == len(data)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_pieces_are_bounded(codec: Codec) -> None:
    data = compress(codec, bytes(20 << 20))
    sizes = [len(piece) for piece in decompress(codec, io.BytesIO(data), 0, len(data))]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= PIECE_BYTES


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_segment_that_ends_inside_a_stream_is_an_error(codec: Codec) -> None:
    data = compress(codec, CONTENT)
    with pytest.raises(BadImageError, match="truncated"):
        unpacked(codec, data, size=len(data) - 5)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.BZIP2, Codec.LZMA, Codec.XZ, Codec.ZSTD])
def test_damage_is_an_error_that_says_where(codec: Codec) -> None:
    data = bytearray(b"12345" + compress(codec, CONTENT))
    # Any bits inside deflate's blocks mean something; at their beginning three ones do not.
    start = 15 if codec is Codec.GZIP else len(data) // 4
    data[start : start + 64] = b"\xff" * 64
    with pytest.raises(BadImageError, match=r"damaged.*offset 5"):
        unpacked(codec, bytes(data), offset=5)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_codec_is_known_by_its_magic(codec: Codec) -> None:
    assert codec_of(compress(codec, CONTENT)[:13]) is codec


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_magic_alone_is_no_stream(codec: Codec) -> None:
    for magic in codec.spec.kernel_magics:
        with pytest.raises(BadImageError):
            unpacked(codec, magic + b"\x77" * 40)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_no_library_of_another_codec_is_loaded(codec: Codec) -> None:
    libraries = {
        Codec.LZ4: "lz4.block",
        Codec.LZOP: "lzo",
        Codec.ZSTD: "zstandard",
        Codec.LZMA: "lzma",
        Codec.XZ: "lzma",
        Codec.BZIP2: "bz2",
    }
    code = (
        "import sys, io; from initadvisor.image.decompressors.decompress import decompress;"
        "from initadvisor.core.codecs import Codec;"
        "data = bytes.fromhex(sys.argv[2]);"
        "list(decompress(Codec(sys.argv[1]), io.BytesIO(data), 0, len(data)));"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, codec, compress(codec, b"content").hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANGS_S)
    loaded = set(done.stdout.split()) & set(libraries.values())
    # shutil and the like load bz2 and lzma where they are there.
    assert loaded - {"bz2", "lzma"} <= {libraries.get(codec)}


def test_blocks_that_are_full_to_the_byte_are_found() -> None:
    data = images.FULL_BZIP2_BLOCKS
    facts = facts_of(open_stream(Codec.BZIP2, Reader(io.BytesIO(data), 0, len(data)), verify=True))
    assert facts == Bzip2Facts(randomised=False, overflows=True)


@pytest.mark.parametrize("level", [1, 9])
@pytest.mark.parametrize("seed", [b"", b"aaaa", b"aaaaaaaa" * 99])
def test_bzip2_leaves_room_in_its_blocks(level: int, seed: bytes) -> None:
    import bz2

    data = bz2.compress(seed + CONTENT, level)
    facts = facts_of(open_stream(Codec.BZIP2, Reader(io.BytesIO(data), 0, len(data)), verify=True))
    assert facts == Bzip2Facts(randomised=False, overflows=False)


def test_every_block_of_an_xz_stream_is_described() -> None:
    lzma2, small = images.LZMA2_4_MIB, bytes([0x21, 1, 0])
    data = images.xz_stream([(lzma2, b"a" * 100), (b"\x04\x00" + small, b"b" * 70_000)])
    facts = facts_of(open_stream(Codec.XZ, Reader(io.BytesIO(data), 0, len(data)), verify=True))
    assert facts == XzFacts(
        check=1, chains=((0x21,), (0x04, 0x21)), dictionary_bytes=4 << 20, filter_options=False
    )


@pytest.mark.parametrize("codec", LIBRARIES)
def test_a_missing_library_is_named(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    data = compress(codec, CONTENT)
    name = LIBRARIES[codec]
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InitadvisorError, match=rf"the Python module {name}\b.* is not installed"):
        unpacked(codec, data)
