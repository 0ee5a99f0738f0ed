"""Whether a unified kernel image has a signature stands in its optional header."""

from __future__ import annotations

import io

import pytest

from initadvisor.core.errors import BadImageError
from initadvisor.image.pe import Uki, read_uki, sections_of_uki
from tests.fixtures.images import pe
from tests.fixtures.small_images import archive, signed, uki


def read(image: bytes) -> Uki:
    """Return what is said of an image."""
    return read_uki(io.BytesIO(image), len(image))


def test_an_image_without_an_optional_header_is_not_signed() -> None:
    assert not read(uki(archive())).signed


def test_a_signature_changes_nothing_but_that_there_is_one() -> None:
    plain, with_signature = uki(archive(seed=b"x")), signed(uki(archive(seed=b"x")))
    assert read(with_signature).signed
    assert read(with_signature).initrd == read(plain).initrd


@pytest.mark.parametrize(
    ("offset", "size_bytes", "slots"),
    [(0, 8, 16), (0x400, 0, 16), (0x400, 8, 4), (0x400, 8, 0)],
    ids=["nowhere", "empty", "too few slots", "no slots"],
)
def test_a_header_that_names_no_signature_has_none(
    offset: int, size_bytes: int, slots: int
) -> None:
    image = signed(uki(archive()), offset=offset, size_bytes=size_bytes, slots=slots)
    assert not read(image).signed


def test_all_sections_are_told() -> None:
    image = uki(archive(), ucode=b"micro")
    found = sections_of_uki(io.BytesIO(image), len(image))
    assert [name for name, _ in found] == [".linux", ".ucode", ".initrd"]
    assert found[-1][1] == read(image).initrd


def test_those_of_a_second_profile_are_told_too() -> None:
    sections = [(name, name.encode()) for name in (".initrd", ".profile", ".profile", ".cmdline")]
    image = pe(sections)
    found = sections_of_uki(io.BytesIO(image), len(image))
    assert [name for name, _ in found] == [name for name, _ in sections]
    assert read(image).command_line is None


def test_sections_of_the_same_bytes_are_no_sections() -> None:
    """To tell what is in each could take for ever."""
    image = bytearray(pe([(".initrd", bytes(5000)), (".cmdline", b"quiet")]))
    image[0x58 + 40 : 0x58 + 80] = image[0x58 : 0x58 + 40]
    with pytest.raises(BadImageError, match="sections overlap"):
        read(bytes(image))
