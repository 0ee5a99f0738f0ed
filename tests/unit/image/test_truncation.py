"""Images cut off at every byte."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import FindingKind, Verdict
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.fixtures.images import archive, compress, directory, pe

if TYPE_CHECKING:
    from initadvisor.image.contents import ImageContents

EARLY = archive({"kernel/x86/microcode/GenuineIntel.bin": b"microcode"})
MAIN = archive({"init": b"#!/bin/sh\n" * 20, "d/file": bytes(range(256))})
ENDS = {FindingKind.NO_TRAILER, FindingKind.UNPADDED_END}


def read(image: bytes) -> ImageContents | BadImageError:
    try:
        return scan(io.BytesIO(image))
    except BadImageError as err:
        return err


def is_whole_beginning(cut: ImageContents, full: ImageContents) -> bool:
    """Tell whether what was read of a cut image is whole segments, or says that it is not."""
    if cut.junk:
        return True
    for found, expected in zip(cut.segments, full.segments, strict=False):
        same = (found.offset, found.size_bytes, found.unpacked_bytes, found.entries) == (
            expected.offset,
            expected.size_bytes,
            expected.unpacked_bytes,
            expected.entries,
        )
        is_empty_frame = found.codec is Codec.LZ4 and not found.unpacked_bytes  # as lz4 -l makes
        if (
            not same
            and not is_empty_frame
            and not ENDS & {finding.kind for finding in found.findings}
        ):
            return False
    return len(cut.segments) <= len(full.segments)


def check_every_cut(image: bytes) -> None:
    full = scan(io.BytesIO(image))
    refused = 0
    for length in range(len(image)):
        outcome = read(image[:length])
        if isinstance(outcome, BadImageError):
            assert 0 <= outcome.offset <= length
            assert "\n" not in outcome.message
            refused += 1
        else:
            assert is_whole_beginning(outcome, full), length
    assert refused > len(image) // 2


@pytest.mark.parametrize("codec", Codec)
def test_every_cut_of_an_image_ends_in_an_error_or_at_a_whole_segment(codec: Codec) -> None:
    check_every_cut(compress(codec, MAIN))


@pytest.mark.parametrize("codec", Codec)
def test_every_cut_behind_an_early_archive_does_so_too(codec: Codec) -> None:
    check_every_cut(EARLY + compress(codec, MAIN))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.CAT])
def test_a_cut_inside_a_compressed_image_is_an_error_or_refused(codec: Codec) -> None:
    image = compress(codec, MAIN)
    for length in range(len(image)):
        outcome = read(image[:length])
        assert (
            isinstance(outcome, BadImageError)
            or lint(outcome, None, None).verdict == Verdict.REFUSED
        )


@pytest.mark.parametrize("codec", Codec)
def test_every_cut_of_a_unified_kernel_image_ends_in_an_error(codec: Codec) -> None:
    image = pe([(".uname", b"6.1.0\0"), (".ucode", EARLY), (".initrd", compress(codec, MAIN))])
    for length in range(len(image.rstrip(b"\0"))):
        with pytest.raises(BadImageError):
            scan(io.BytesIO(image[:length]))


def test_a_cut_between_entries_is_noted() -> None:
    contents = scan(io.BytesIO(directory("d") + directory("e")))
    assert [finding.kind for finding in contents.main.findings] == [FindingKind.NO_TRAILER]
    assert contents.main.entries == 2
