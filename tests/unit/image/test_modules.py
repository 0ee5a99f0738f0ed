"""Modules and firmware in an image."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.cpio import S_IFLNK, S_IFREG, CpioWriter
from initadvisor.image.findings import Limits
from initadvisor.image.modules import ModuleListing
from initadvisor.image.scan import scan
from tests.fixtures.images import archive, compress, entry, padded

if TYPE_CHECKING:
    from initadvisor.image.modules import ImageModule

BASE = "usr/lib/modules/6.1.0-1-amd64"
LIB = "usr/lib/firmware"
ZSTD = b"\x28\xb5\x2f\xfd"


def listed(
    files: dict[str, bytes],
    links: dict[str, str] | None = None,
    *,
    limits: Limits | None = None,
) -> dict[str, ImageModule]:
    """Return what is listed, by path."""
    made = b"".join(
        entry(link.encode() + b"\0", target.encode(), mode=S_IFLNK | 0o777)
        for link, target in (links or {}).items()
    )
    early = padded(archive({f"early/{BASE}/kernel/fs/no.ko": b"1"}))
    listing = ModuleListing(limits)
    scan(io.BytesIO(early + compress(Codec.ZSTD, archive(files) + made)), listing=listing)
    return {found.path: found for found in listing.modules()}


def test_modules_have_the_kernels_names_and_firmware_those_it_is_asked_for_by() -> None:
    compressed = f"{BASE}/kernel/drivers/net/usb/cdc-ether.ko.zst"
    plain = f"{BASE}/updates/dkms/zfs.ko"
    firmware = f"{LIB}/i915/skl_dmc.bin.zst"
    found = listed(
        {
            compressed: ZSTD + b"2" * 60,
            plain: b"3" * 70,
            f"{BASE}/modules.dep": b"",
            f"{BASE}/kernel/drivers/net/readme.txt": b"",
            firmware: ZSTD + b"4",
            "usr/bin/a.ko": b"6",
        }
    )
    assert found.keys() == {compressed, plain, firmware}
    assert [found[path].names for path in (compressed, plain, firmware)] == [
        ("cdc_ether",),
        ("zfs",),
        ("i915/skl_dmc.bin",),
    ]
    assert (found[plain].release, found[firmware].release) == ("6.1.0-1-amd64", None)
    assert found[compressed].stored_bytes == found[compressed].size_bytes == 64
    assert found[plain].stored_bytes is None


def test_firmware_has_the_names_of_links_to_it_and_to_its_directory() -> None:
    path = f"{LIB}/nvidia/tu102/gr.bin.xz"
    found = listed(
        {path: b"1", f"{LIB}/nvidia/tu102/other": b"2"},
        {
            f"{LIB}/nvidia/tu104/gr.bin.xz": "../tu102/gr.bin.xz",
            f"{LIB}/nvidia/tu106": "tu104x/../tu102",
            f"{LIB}/nvidia/loop": "loop",
            f"{LIB}/again.bin.xz": "/lib/firmware/nvidia/tu104/gr.bin.xz",
        },
    )
    assert found[path].names == (
        "again.bin",
        "nvidia/tu102/gr.bin",
        "nvidia/tu104/gr.bin",
        "nvidia/tu106/gr.bin",
    )


def test_links_without_end_leave_a_file_without_names() -> None:
    path = f"{LIB}/a/b/c/file"
    found = listed({path: b"1"}, {f"{LIB}/x{number}": "." for number in range(100)})
    assert found[path].names == ()


def test_a_file_with_hard_links_has_no_names() -> None:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        writer.entry(f"{LIB}/one", S_IFREG | 0o644, b"data", links=2)
    listing = ModuleListing()
    scan(file, listing=listing)
    [found] = listing.modules()
    assert found.names == ()


def test_names_that_are_none_are_safe_to_print_and_bounded() -> None:
    hostile = f"{BASE}/kernel/fs/\x1b[31m\nbad.ko"
    [found] = listed({hostile: b"module"}).values()
    assert found.path.isprintable()
    assert found.names[0].isprintable()
    many = {f"{BASE}/kernel/fs/{number}.ko": b"" for number in range(500)}
    with pytest.raises(BadImageError, match="names"):
        listed(many, limits=Limits(names_bytes=50_000))
