"""More than 20,000 inputs that nobody meant to be images: an answer or an error, nothing else.

The seeds are fixed, so that a failure is one for everybody; ``test_random_images`` explores.
"""

from __future__ import annotations

import io
import random
import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.findings import Limits
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.fixtures import images
from tests.fixtures.images import archive, compress, padded, pe

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_CODEC = 2000
LIMITS = Limits(unpacked_bytes=4 << 20, headers=2000, segments=64, streams=64)
GROWTH_BYTES = 64 << 20

PLAIN = archive({"init": b"#!/bin/sh\n" * 30, "lib/modules/6.1/a.ko": bytes(range(256))})
EARLY = padded(archive({"kernel/x86/microcode/GenuineIntel.bin": b"microcode"}))


def check(data: bytes) -> None:
    """Scan and judge; anything but an error with an offset inside the data is a failure."""
    try:
        contents = scan(io.BytesIO(data), limits=LIMITS)
    except BadImageError as err:
        if not 0 <= err.offset <= len(data) or "\n" in err.message:
            raise AssertionError(err.message) from err
        return
    lint(contents, None, contents.kernel_release)
    for segment in contents.segments:
        assert 0 <= segment.offset <= segment.offset + segment.size_bytes <= len(data)


def mutated(image: bytes, seed: int) -> Iterator[bytes]:
    """Yield damaged versions of an image, most of them damaged near its beginning."""
    source = random.Random(seed)
    for _ in range(PER_CODEC):
        data = bytearray(image)
        for _ in range(source.choice((1, 1, 2, 5))):
            reach = source.choice((16, 64, len(data)))
            position = min(source.randrange(reach), len(data) - 1)
            match source.randrange(5):
                case 0:
                    data[position] ^= 1 << source.randrange(8)
                case 1:
                    data[position] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
                case 2:
                    del data[position : position + source.randrange(1, 9)]
                case 3:
                    data[position:position] = source.randbytes(source.randrange(1, 9))
                case _:
                    data[position : position + 4] = source.choice((b"\xff" * 4, bytes(4)))
            if not data:
                data = bytearray(image[:1])
        yield bytes(data)


@contextmanager
def in_little_memory() -> Iterator[None]:
    """Hold that the block needs little more memory at any time than there was used before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the most is counted anew
    before = most_bytes()
    yield
    assert most_bytes() - before < GROWTH_BYTES


def most_bytes() -> int:
    """Return the memory this process has at most had, as the kernel counts it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("codec", Codec)
def test_damaged_images(codec: Codec) -> None:
    image = EARLY + compress(codec, PLAIN) if codec.spec.is_candidate else compress(codec, PLAIN)
    start = len(image) - len(compress(codec, PLAIN))
    check(image)
    with in_little_memory():
        for number, data in enumerate(mutated(image[start:], seed=len(codec))):
            check(data if number % 2 else image[:start] + data)


def test_damaged_unified_kernel_images() -> None:
    sections = [(".uname", b"6.1"), (".ucode", EARLY), (".initrd", compress(Codec.GZIP, PLAIN))]
    with in_little_memory():
        for data in mutated(pe(sections), seed=1):
            check(data)


def test_headers_with_unlikely_fields() -> None:
    source = random.Random(2)
    extremes = [0, 1, 2, 11, 110, 4095, 4096, 4097, 0x7FFFFFFF, 0xFFFFFFFF]
    with in_little_memory():
        for _ in range(PER_CODEC):
            fields = [source.choice(extremes) if source.random() < 0.3 else 1 for _ in range(13)]
            fields[1] = source.choice(
                (0, 0o40755, 0o100644, 0o120777, 0o20600, 0o777777, 0xFFFFFFFF)
            )
            magic = source.choice((b"070701", b"070702", b"070701", b"070707", b"0707"))
            head = magic + b"".join(b"%08x" % field for field in fields)
            data = head + source.choice((b"", b"a\0", b"a/../b\0", b"TRAILER!!!\0")) + PLAIN
            check(data)
            check(images.gzip_member(data))


MAGICS = [magic for codec in Codec for magic in codec.spec.kernel_magics]
BEGINNINGS = st.sampled_from(
    [b"", b"MZ", b"070701", b"070702", b"\x04\x22\x4d\x18", b"\x50\x2a\x4d\x18", *MAGICS]
    + [compress(codec, PLAIN)[:12] for codec in Codec]
)


@settings(max_examples=100 * settings().max_examples, suppress_health_check=list(HealthCheck))
@given(beginning=BEGINNINGS, rest=st.binary(max_size=600))
def test_random_images(beginning: bytes, rest: bytes) -> None:
    check(beginning + rest)


@settings(max_examples=32 * settings().max_examples, suppress_health_check=list(HealthCheck))
@given(
    parts=st.lists(
        st.one_of(
            st.sampled_from([compress(codec, PLAIN) for codec in Codec]),
            st.sampled_from([EARLY, images.skippable_frame(), images.bootconfig()]),
            st.integers(0, 9).map(bytes),
            st.binary(max_size=9),
        ),
        max_size=6,
    )
)
def test_parts_of_images_in_any_order(parts: list[bytes]) -> None:
    check(b"".join(parts))


def test_inputs_are_as_many_as_promised() -> None:
    assert PER_CODEC * (len(Codec) + 3) > 20_000
