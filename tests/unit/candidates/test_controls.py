"""Controls: the same size however the content comes, and one to stand for every compressor.

And how far back a compressor looks, from the command lines of all three generators and odd ones.
"""

from __future__ import annotations

import io
import random
import shlex
import string
from itertools import product
from math import log2
from typing import TYPE_CHECKING

import lz4.block
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.candidates.controls import (
    Control,
    buffer_bytes,
    controls_for,
    pieces_of,
    window_log,
)
from initadvisor.core.codecs import Codec
from initadvisor.decide.sampling import SampleBlock
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.decompressors.lz4_legacy import BLOCK_BYTES
from tests.fixtures.content import mixed_content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MB = 1_000_000
CONTENT = mixed_content(1 * MB)
WINDOWS = [0, 12, 15, 15.6, 16, 17, 18, 19, 19.8, 20, 21, 22, 23, 24, 25, 26, 27, 30, 40]
CONTROLS = sorted(
    {control for window in WINDOWS for control in controls_for(window, whole_bytes=200 * MB)},
    key=str,
)


def named(control: Control) -> str:
    return f"{control.codec}-{control.level}-{control.window_log}"


def cut(data: bytes, *, seed: int, longest: int) -> Iterator[bytes]:
    """Yield data in pieces of any length, some of them empty."""
    chance = random.Random(seed)
    offset = 0
    while offset < len(data):
        length = chance.randint(0, longest)
        yield data[offset : offset + length]
        offset += length


@pytest.mark.parametrize("control", CONTROLS, ids=named)
def test_a_size_does_not_depend_on_how_the_content_is_cut(control: Control) -> None:
    whole = control.compressed_bytes([CONTENT])
    assert 0 < whole < len(CONTENT)
    for seed, longest in ((1, 1000), (2, 200_000), (3, MB // 2)):
        assert control.compressed_bytes(cut(CONTENT, seed=seed, longest=longest)) == whole


@pytest.mark.parametrize("control", CONTROLS, ids=named)
def test_of_no_content_the_size_is_next_to_nothing(control: Control) -> None:
    assert 0 <= control.compressed_bytes([]) < 20
    assert control.compressed_bytes([b"", b""]) == control.compressed_bytes([])


def test_lz4_starts_anew_with_each_block_as_the_legacy_format_does() -> None:
    """Two blocks that would be one short match in a format that looks back."""
    block = random.Random(7).randbytes(BLOCK_BYTES)
    control = controls_for(16, whole_bytes=100)[0]
    nothing = control.compressed_bytes([])
    one = control.compressed_bytes([block]) - nothing
    assert one == len(lz4.block.compress(block, store_size=False)) + 4
    assert control.compressed_bytes([block, block]) == nothing + 2 * one
    assert control.compressed_bytes(cut(block * 2, seed=1, longest=5 * MB)) == nothing + 2 * one
    assert control.compressed_bytes([block, b"x"]) == nothing + one + len(b"x") + 1 + 4


def test_the_fastest_level_of_zstd_is_its_own_control() -> None:
    window = zstandard.ZstdCompressionParameters.from_level(1).window_log
    [control] = controls_for(window, whole_bytes=100 * MB)
    compressor = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
    program = len(compressor.compress(CONTENT)) + len(compressor.flush())
    assert control.compressed_bytes([CONTENT]) == pytest.approx(program, rel=0.002)


def test_the_window_is_between_those_of_the_controls_or_reaches_over_everything() -> None:
    for window, whole_bytes in product(WINDOWS, [0, 1, MB, 10 * MB, 200 * MB, 1 << 40]):
        found = controls_for(window, whole_bytes=whole_bytes)
        logs = [control.window_log for control in found]
        assert 1 <= len(logs) <= 2
        assert logs == sorted(set(logs))
        assert logs[0] <= max(window, 19)
        assert logs[-1] >= window or 1 << logs[-1] >= whole_bytes or logs[-1] == 27


def test_a_control_with_a_larger_window_finds_what_is_farther_away() -> None:
    part = random.Random(3).randbytes(MB)
    far = part + random.Random(4).randbytes(9 * MB) + part
    near, reaching = controls_for(26, whole_bytes=len(far))
    assert near.compressed_bytes([far]) > 10.9 * MB
    assert reaching.compressed_bytes([far]) < 10.1 * MB


STRETCHES = [
    SampleBlock(offset=0, size_bytes=10),
    SampleBlock(offset=5, size_bytes=100),
    SampleBlock(offset=1000, size_bytes=0),
    SampleBlock(offset=2 * MB, size_bytes=MB - 7),
]


def test_pieces_are_those_stretches_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(CONTENT)
    with (tmp_path / "content").open("rb") as file:
        file.seek(12345)
        found = b"".join(pieces_of(file, STRETCHES))
        assert file.tell() == 12345
    wanted = [CONTENT[s.offset : s.offset + s.size_bytes] for s in STRETCHES]
    assert found == b"".join(wanted)


def test_pieces_are_bounded_and_end_where_the_file_does(tmp_path: Path) -> None:
    with (tmp_path / "content").open("w+b") as file:
        file.truncate(9 << 20)
        pieces = list(pieces_of(file, [SampleBlock(offset=100, size_bytes=1 << 40)]))
        assert max(len(piece) for piece in pieces) <= 4 << 20
        assert sum(len(piece) for piece in pieces) == (9 << 20) - 100


@pytest.mark.parametrize("control", CONTROLS, ids=named)
def test_what_is_written_is_a_stream_of_the_codec(control: Control) -> None:
    file = io.BytesIO()
    size_bytes = control.compressed_bytes(cut(CONTENT, seed=1, longest=MB), into=file)
    assert len(file.getvalue()) == size_bytes
    assert b"".join(map(bytes, decompress(control.codec, file, 0, size_bytes))) == CONTENT


MKINITCPIO = [
    ("cat", None, 0),
    ("gzip -n", 6, 15),
    ("gzip -n -9", 9, 15),
    ("bzip2", 9, log2(900_000)),
    ("lzma", 6, 23),
    ("xz -T0 --check=crc32", 6, 23),
    ("xz -T0 --check=crc32 -0", 0, 18),
    ("xz -T0 --check=crc32 -9", 9, 26),
    ("xz -T0 --check=crc32 -9e", 9, 26),
    ("lzop", 3, log2(48 << 10)),
    ("lz4 -l", 1, 16),
    ("lz4 -l -9", 9, 16),
    ("zstd -T0", 3, 21),
    ("zstd -T0 -1", 1, 19),
    ("zstd -T0 -19", 19, 23),
    ("zstd -T0 --ultra -22", 22, 27),
]
DRACUT = [
    ("gzip -n -9 --rsyncable", 9, 15),
    ("pigz -9 -n -T -R", 9, 15),
    ("bzip2 -9", 9, log2(900_000)),
    ("lbzip2 -9", 9, log2(900_000)),
    ("lzma -9 -T0", 9, 26),
    ("xz --check=crc32 --lzma2=dict=1MiB -T0", 6, 20),
    ("xz --check=crc32 --lzma2=preset=9,dict=1MiB -T0", 9, 20),
    ("xz --check=crc32 -T0", 6, 23),
    ("lzop -9", 9, log2(48 << 10)),
    ("lz4 -l -9", 9, 16),
    ("zstd -15 -q -T0", 15, 22),
    ("zstd -q -15 -T0", 15, 22),
]
INITRAMFS_TOOLS = [
    ("gzip -c", 6, 15),
    ("pigz -1 -c", 1, 15),
    ("bzip2 -1 -c", 1, log2(100_000)),
    ("lzma -c", 6, 23),
    ("xz --check=crc32 --threads=0 -c", 6, 23),
    ("xz -2 --check=crc32 --threads=0 -c", 2, 21),
    ("lzop -c", 3, log2(48 << 10)),
    ("lz4 -9 -l -c", 9, 16),
    ("zstd -q -9 -T0 -c", 9, 22),
    ("zstd -q -19 -T0 -c", 19, 23),
]
ODD = [
    # xz(1): the last level counts, and sizes have any of these forms.
    ("xz -0 -9", None, 26),
    ("xz --lzma2=dict=64KiB", None, 16),
    ("xz --lzma2=dict=64K", None, 16),
    ("xz --lzma2=preset=0,dict=16mib,lc=4", None, 24),
    ("xz --lzma2=dict=1048576", None, 20),
    ("xz --lzma2=dict=1", None, 12),
    ("xz --lzma2=dict=1GiB", None, 30),
    ("xz --lzma2=preset=9", None, 26),
    ("xz --lzma2=preset=9e,lc=0", None, 26),
    ("xz --x86 --lzma2=dict=2MiB", None, 21),
    ("xz --lzma2=dict=wide", 3, 22),
    ("lzma --lzma1=dict=8MiB", 6, 23),
    # From here on as zstd(1) describes them.
    ("zstd --long", 3, 27),
    ("zstd --long=24 -19", None, 24),
    ("zstd -19 --zstd=wlog=25,clog=23", None, 25),
    ("zstd --zstd=strategy=7,windowLog=22", 3, 22),
    ("zstd -T19 -q", 3, 21),
    ("zstd --fast", None, 19),
    ("zstd --fast=5", None, 19),
    # No such level: the tools refuse these, so nothing may break before they do.
    ("zstd -99", None, 27),
    ("xz -31", None, 26),
    ("bzip2 -0", None, log2(900_000)),
    ("bzip2 -77", None, log2(900_000)),
]


@pytest.mark.parametrize(
    ("command", "level", "expected"), [*MKINITCPIO, *DRACUT, *INITRAMFS_TOOLS, *ODD]
)
def test_the_window_is_the_one_the_command_line_asks_for(
    command: str, level: int | None, expected: float
) -> None:
    argv = shlex.split(command)
    codec = {"pigz": Codec.GZIP, "lbzip2": Codec.BZIP2}.get(argv[0]) or Codec(argv[0])
    assert window_log(codec, argv, level=level) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("level", list(Codec.ZSTD.spec.levels))
def test_the_windows_of_zstd_are_the_library_s(level: int) -> None:
    library = zstandard.ZstdCompressionParameters.from_level(level).window_log
    assert window_log(Codec.ZSTD, ("zstd", f"-{level}"), level=None) == library


@pytest.mark.parametrize("codec", list(Codec))
def test_without_any_level_it_is_the_tool_s_own(codec: Codec) -> None:
    argv = (codec.value,)
    assert window_log(codec, argv, level=None) == window_log(codec, argv, level=codec.spec.level)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec.spec.levels])
def test_a_higher_level_never_looks_less_far(codec: Codec) -> None:
    argv = (codec.value,)
    found = [window_log(codec, argv, level=level) for level in codec.spec.levels]
    assert found == sorted(found)


WORDS = st.lists(
    st.one_of(
        st.text(string.printable, max_size=20),
        st.from_regex(
            r"-{1,2}(lzma2=)?(dict|preset|wlog|long|windowLog)?=?\d{0,14}[kKmMgGiB]{0,3}"
        ),
    ),
    max_size=6,
)


@given(codec=st.sampled_from(Codec), words=WORDS, level=st.none() | st.integers(0, 30))
def test_no_command_line_breaks_it(codec: Codec, words: list[str], level: int | None) -> None:
    found = window_log(codec, [codec.value, *words], level=level)
    assert 0 <= found < 100


@pytest.mark.parametrize("codec", Codec)
def test_a_kernel_maps_the_window_and_little_more(codec: Codec) -> None:
    window = window_log(codec, (codec.value,), level=None)
    mapped = buffer_bytes(codec, window)
    match codec:
        case Codec.CAT | Codec.GZIP | Codec.LZOP:
            assert mapped == 0
        case Codec.LZ4:
            assert mapped == BLOCK_BYTES
        case Codec.BZIP2:
            assert mapped == pytest.approx(3_600_000)
        case Codec.XZ | Codec.LZMA:
            assert mapped == 8 << 20
        case Codec.ZSTD:
            assert 2 << 20 < mapped < 3 << 20
            assert buffer_bytes(codec, 27) - buffer_bytes(codec, 23) == 120 << 20
