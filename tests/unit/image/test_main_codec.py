"""The codec of an image is told by the heads of its parts, as a whole scan would tell it."""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.codecs import Codec
from initadvisor.image.cpio import CpioWriter
from initadvisor.image.main_codec import main_codec
from initadvisor.image.scan import scan
from tests.fixtures.images import compress
from tests.fixtures.small_images import archive, early_archive, uki


def told(data: bytes) -> Codec | None:
    return main_codec(io.BytesIO(data), offset=0, size_bytes=len(data))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("early", [b"", early_archive(), early_archive() * 3])
def test_it_is_what_a_scan_finds(codec: Codec, early: bytes) -> None:
    image = early + compress(codec, archive())
    assert told(image) is codec is scan(io.BytesIO(image)).main.codec


def test_a_part_of_a_file_is_read_as_such() -> None:
    initrd = compress(Codec.LZ4, archive())
    image = uki(initrd)
    offset = image.index(initrd)
    found = main_codec(io.BytesIO(image), offset=offset, size_bytes=len(initrd))
    assert found is Codec.LZ4


def test_what_comes_behind_the_part_is_not_looked_at() -> None:
    early = early_archive()
    image = early + compress(Codec.XZ, archive())
    found = main_codec(io.BytesIO(image), offset=0, size_bytes=len(early))
    assert found is Codec.CAT


@pytest.mark.parametrize(
    "data",
    [
        *(b"", bytes(100_000), b"nothing of the kind"),
        *(b"070701" + b"Z" * 200, b"070701", early_archive()[:300]),
    ],
    ids=range(6),
)
def test_what_is_none_has_no_codec(data: bytes) -> None:
    assert told(data) is None


def test_many_entries_end() -> None:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for number in range(2000):
            writer.directory(f"d{number}")
    assert told(file.getvalue() * 60) is None


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_have_a_codec_or_none(data: bytes, position: int) -> None:
    image = bytearray(early_archive() + compress(Codec.ZSTD, b"x"))
    image[position : position + len(data)] = data
    told(bytes(image))


def test_a_header_that_points_anywhere_ends() -> None:
    dice = random.Random(2)
    image = early_archive()
    for _ in range(200):
        changed = bytearray(image)
        start = dice.randrange(0, 110)
        changed[start : start + 8] = b"%08X" % dice.randrange(1 << 32)
        told(bytes(changed))
