"""How far back a compressor looks, from the command lines of all three generators and odd ones."""

from __future__ import annotations

import shlex
import string
from math import log2

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.candidates.compression_window import window_log
from initadvisor.core.codecs import Codec

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
