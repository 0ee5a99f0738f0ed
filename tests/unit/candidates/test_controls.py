"""Controls: the same size however the content comes, and one to stand for every compressor."""

from __future__ import annotations

import io
import random
from itertools import product
from typing import TYPE_CHECKING

import lz4.block
import pytest
import zstandard

from initadvisor.candidates.controls import Control, controls_for, pieces_of
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
    {
        control
        for codec in Codec
        for level in (None, *codec.spec.levels)
        for window in WINDOWS
        for control in controls_for(codec, level=level, window_log=window, whole_bytes=200 * MB)
    },
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
    control = controls_for(Codec.LZ4, level=1, window_log=16, whole_bytes=100)[0]
    nothing = control.compressed_bytes([])
    one = control.compressed_bytes([block]) - nothing
    assert one == len(lz4.block.compress(block, store_size=False)) + 4
    assert control.compressed_bytes([block, block]) == nothing + 2 * one
    assert control.compressed_bytes(cut(block * 2, seed=1, longest=5 * MB)) == nothing + 2 * one
    assert control.compressed_bytes([block, b"x"]) == nothing + one + len(b"x") + 1 + 4


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_fast_levels_of_zstd_are_their_own_controls(level: int) -> None:
    window = zstandard.ZstdCompressionParameters.from_level(level).window_log
    [control] = controls_for(
        Codec.ZSTD, level=level, window_log=float(window), whole_bytes=100 * MB
    )
    compressor = zstandard.ZstdCompressor(level=level, write_content_size=False).compressobj()
    program = len(compressor.compress(CONTENT)) + len(compressor.flush())
    assert control.compressed_bytes([CONTENT]) == pytest.approx(program, rel=0.002)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.CAT])
def test_the_window_is_between_those_of_the_controls_or_reaches_over_everything(
    codec: Codec,
) -> None:
    for window, whole_bytes in product(WINDOWS, [0, 1, MB, 10 * MB, 200 * MB, 1 << 40]):
        found = controls_for(codec, level=6, window_log=window, whole_bytes=whole_bytes)
        logs = [control.window_log for control in found]
        assert 1 <= len(logs) <= 2
        assert logs == sorted(set(logs))
        assert logs[0] <= max(window, 18)
        assert logs[-1] >= window or 1 << logs[-1] >= whole_bytes or logs[-1] == 27


def test_a_control_with_a_larger_window_finds_what_is_farther_away() -> None:
    part = random.Random(3).randbytes(MB)
    far = part + random.Random(4).randbytes(9 * MB) + part
    near, reaching = controls_for(Codec.XZ, level=9, window_log=26, whole_bytes=len(far))
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
