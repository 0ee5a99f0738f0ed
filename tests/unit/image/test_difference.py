"""Two images differ where what they unpack to does, and not in how that is stored."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.cpio import S_IFDIR, S_IFREG, CpioWriter
from initadvisor.image.difference import (
    Aspect,
    ChangedEntry,
    ImageDifference,
    ImageListing,
    difference,
)
from initadvisor.image.findings import Limits
from initadvisor.image.scan import scan
from tests.fixtures.images import archive, compress, entry
from tests.fixtures.operations import grows_in_proportion
from tests.fixtures.small_images import uki

if TYPE_CHECKING:
    from collections.abc import Callable

_SAME = ImageDifference()
_S_IFCHR = 0o020000
_FILES = {"etc/one": b"1" * 5000, "etc/two": b"2", "empty": b"", "kernel/x86/ucode": b"micro"}


def listing(image: bytes, limits: Limits | None = None) -> ImageListing:
    """Return what is in an image."""
    found = ImageListing(limits)
    scan(io.BytesIO(image), listing=found)
    return found


def differs(before: bytes, after: bytes, *ignored: str) -> ImageDifference:
    """Return in what two images differ."""
    return difference(listing(before), listing(after), ignored=ignored)


def change(path: str, *aspects: Aspect) -> ImageDifference:
    """Return the difference of one entry."""
    return ImageDifference(changed=(ChangedEntry(path=path, aspects=aspects),))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.LZOP])
def test_the_same_files_are_the_same_whatever_compresses_them(codec: Codec) -> None:
    plain = archive({"etc/one": b"1" * 5000, "etc/two": b"2"})
    image = plain if codec is Codec.CAT else compress(codec, plain)
    assert differs(compress(Codec.ZSTD, plain), image) == _SAME


def test_the_same_files_are_the_same_in_another_order_and_in_other_segments() -> None:
    split = archive({"etc/two": b"2"}) + compress(Codec.GZIP, archive({"etc/one": b"1"}))
    assert differs(archive({"etc/one": b"1", "etc/two": b"2"}), split) == _SAME


def test_a_unified_kernel_image_is_what_its_initramfs_is() -> None:
    assert differs(archive(), uki(archive())) == _SAME


def test_names_are_compared_as_the_kernel_takes_them() -> None:
    assert differs(entry(b"./file\0", b"x"), entry(b"/file\0", b"x")) == _SAME


def test_what_is_new_and_what_is_gone_is_named() -> None:
    found = differs(archive({"d/old": b"", "d/same": b""}), archive({"d/new": b"", "d/same": b""}))
    assert found == ImageDifference(added=("d/new",), removed=("d/old",))
    assert found.count == 2


def test_names_that_command_a_terminal_are_escaped() -> None:
    found = differs(entry(b"a\0"), entry(b"a\0") + entry(b"\x1b[2J\xff\0"))
    assert found.added == ("\\x1b[2J\\xff",)


@pytest.mark.parametrize(
    ("before", "after", "aspects"),
    [
        (entry(b"f\0", b"abc"), entry(b"f\0", b"abd"), (Aspect.CONTENT,)),
        (entry(b"f\0", b"abc"), entry(b"f\0", b"ab"), (Aspect.SIZE,)),
        (
            entry(b"f\0", b"a", mode=S_IFREG | 0o644),
            entry(b"f\0", b"a", mode=S_IFREG | 0o4755),
            (Aspect.MODE,),
        ),
        (entry(b"f\0"), entry(b"f\0", mode=S_IFDIR | 0o644), (Aspect.TYPE,)),
        (
            entry(b"f\0", b"one", mode=0o120777),
            entry(b"f\0", b"two", mode=0o120777),
            (Aspect.LINK_TARGET,),
        ),
    ],
)
def test_it_is_told_in_what_an_entry_changed(
    before: bytes, after: bytes, aspects: tuple[Aspect, ...]
) -> None:
    assert differs(before, after) == change("f", *aspects)


def test_a_files_whole_content_counts_and_not_just_where_it_starts() -> None:
    long = bytes(5 << 20)
    assert differs(archive({"f": long + b"a"}), archive({"f": long + b"b"})) == change(
        "f", Aspect.CONTENT
    )


def test_an_owner_and_what_a_node_stands_for_are_compared() -> None:
    other_owner = bytearray(entry(b"f\0"))
    other_owner[22:30] = b"000003e8"
    assert differs(entry(b"f\0"), bytes(other_owner)) == change("f", Aspect.OWNER)
    console, tty = (
        entry(b"f\0", mode=_S_IFCHR | 0o600)[:78] + minor + entry(b"f\0")[94:]
        for minor in (b"0000000500000001", b"0000000500000000")
    )
    assert differs(console, tty) == change("f", Aspect.DEVICE)


def test_time_stamps_and_inode_numbers_are_not() -> None:
    other = bytearray(entry(b"f\0", b"x"))
    other[6:14] = b"0000abcd"
    other[46:54] = b"12345678"
    assert differs(entry(b"f\0", b"x"), bytes(other)) == _SAME


def linked(*contents: bytes, names: str = "0123") -> bytes:
    """Return an archive with several names of one file; one of them has its content."""
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for name, content in zip(names, contents, strict=False):
            writer.entry(name, S_IFREG | 0o644, content, links=len(contents), inode=7)
    return file.getvalue()


def test_a_hard_links_content_stands_with_any_of_its_names() -> None:
    assert differs(linked(b"", b"", b"same"), linked(b"same", b"", b"")) == _SAME
    assert differs(linked(b"", b"same"), archive({"0": b"same", "1": b"same"})).changed == tuple(
        ChangedEntry(path=path, aspects=(Aspect.MODE,)) for path in "01"
    )
    found = differs(linked(b"", b"", b"same"), linked(b"", b"", b"else"))
    assert [changed.path for changed in found.changed] == ["0", "1", "2"]


def test_a_trailer_ends_what_is_one_file() -> None:
    found = listing(linked(b"one", b"") + linked(b"", b"", names="xy")).paths()
    assert {path: listed.content.size_bytes for path, listed in found.items()} == {
        b"0": 3,
        b"1": 3,
        b"x": 0,
        b"y": 0,
    }


def test_a_name_that_is_made_anew_has_nothing_to_do_with_its_former_file() -> None:
    found = listing(linked(b"one", b"") + archive({"0": b"later"})).paths()
    assert [found[name].content.size_bytes for name in (b"0", b"1")] == [5, 3]


def test_of_two_entries_of_one_name_the_last_counts() -> None:
    twice = archive({"f": b"first"}) + compress(Codec.ZSTD, archive({"f": b"last"}))
    assert differs(archive({"f": b"last"}), twice) == _SAME


def test_microcode_that_is_no_longer_in_front_has_moved() -> None:
    files, early = archive({"f": b""}), archive({"kernel/x86/microcode/a.bin": b"micro"})
    in_front = early + compress(Codec.ZSTD, files)
    behind = compress(Codec.ZSTD, files + early)
    found = differs(in_front, behind)
    assert {changed.path for changed in found.changed} >= {"kernel/x86/microcode/a.bin"}
    assert {changed.aspects for changed in found.changed} == {(Aspect.PLACE,)}


def test_paths_are_ignored_that_are_to_be() -> None:
    old, new = archive({"etc/conf": b"old"}), archive({"etc/conf": b"new"})
    assert differs(old, new, "etc/conf") == _SAME
    assert differs(archive({"etc/x": b""}), archive({"etc/x": b"", "y": b""}), "y") == _SAME
    assert differs(old, new, "conf", "etc").count == 1


def test_an_entry_that_the_kernel_jumps_over_is_nobodys_content() -> None:
    skipped = entry(b"s\0", b"data", mode=S_IFDIR | 0o755)
    assert differs(entry(b"f\0", b"x"), entry(b"f\0", b"x") + skipped) == _SAME


@given(st.binary(max_size=300), st.integers(0, 5000))
def test_a_damaged_image_is_refused_or_read_and_nothing_else(noise: bytes, at: int) -> None:
    image = bytearray(archive(_FILES))
    image[at : at + len(noise)] = noise
    try:
        found = listing(bytes(image))
    except BadImageError:
        return
    assert difference(found, found) == _SAME


def test_names_without_end_are_an_error() -> None:
    many = b"".join(entry(b"%d\0" % number) for number in range(300))
    with pytest.raises(BadImageError, match="memory"):
        listing(many, Limits(names_bytes=100_000))


def test_names_of_one_file_take_no_work_that_grows_with_their_square() -> None:
    def listing_of(names: int) -> Callable[[], object]:
        file = io.BytesIO()
        with CpioWriter(file) as writer:
            for number in range(names):
                writer.entry(str(number), S_IFREG, b"x", links=names, inode=7)
        return lambda: listing(file.getvalue()).paths()

    assert grows_in_proportion(listing_of, few=2000)
