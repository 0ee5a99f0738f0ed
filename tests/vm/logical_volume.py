"""Writes what makes a partition LVM's, with one logical volume that is all of it.

The LVM tools do that to block devices only. The layout is LVM2's own
(``lib/format_text/layout.h``, ``lib/label/label.h``): a label with the header of the physical
volume, and an area with a header of its own and the volume group as text.
"""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.vm.disk import MIB

if TYPE_CHECKING:
    from pathlib import Path

GROUP, VOLUME = "guest", "root"
DATA_BYTES = MIB
"""Where the data begins; what comes before is LVM's."""

_SECTOR_BYTES = 512
_EXTENT_BYTES = 4 * MIB
_AREA_BYTES = 4096
_PHYSICAL, _GROUP, _VOLUME = (f"{number}".zfill(32) for number in (1, 2, 3))
_TEXT = """\
{group} {{
id = "{group_id}"
seqno = 1
format = "lvm2"
status = ["RESIZEABLE", "READ", "WRITE"]
flags = []
extent_size = {extent_sectors}
max_lv = 0
max_pv = 0
metadata_copies = 0

physical_volumes {{
pv0 {{
id = "{physical_id}"
device = "/dev/disk"
status = ["ALLOCATABLE"]
flags = []
dev_size = {sectors}
pe_start = {data_sectors}
pe_count = {extents}
}}
}}

logical_volumes {{
{volume} {{
id = "{volume_id}"
status = ["READ", "WRITE", "VISIBLE"]
flags = []
segment_count = 1
segment1 {{
start_extent = 0
extent_count = {extents}
type = "striped"
stripe_count = 1
stripes = ["pv0", 0]
}}
}}
}}
}}
contents = "Text Format Volume Group"
version = 1
description = ""
creation_host = "guest"
creation_time = 0
"""


def volume_bytes(partition_bytes: int) -> int:
    """Return how large the volume is on a partition of this size."""
    return (partition_bytes - DATA_BYTES) // _EXTENT_BYTES * _EXTENT_BYTES


def write_volume(path: Path, offset_bytes: int, size_bytes: int) -> None:
    """Make a partition of a disk a physical volume; what is behind ``DATA_BYTES`` stays."""
    text = _text(size_bytes).encode() + b"\0"
    with path.open("r+b") as file:
        file.seek(offset_bytes + _SECTOR_BYTES)
        file.write(_label(size_bytes))
        file.seek(offset_bytes + _AREA_BYTES)
        file.write(_area(text))


def _text(size_bytes: int) -> str:
    return _TEXT.format(
        group=GROUP,
        volume=VOLUME,
        group_id=_dashed(_GROUP),
        physical_id=_dashed(_PHYSICAL),
        volume_id=_dashed(_VOLUME),
        extent_sectors=_EXTENT_BYTES // _SECTOR_BYTES,
        sectors=size_bytes // _SECTOR_BYTES,
        data_sectors=DATA_BYTES // _SECTOR_BYTES,
        extents=volume_bytes(size_bytes) // _EXTENT_BYTES,
    )


def _label(size_bytes: int) -> bytes:
    """Return the second sector: where data and metadata are, and that the volume is in use."""
    version, used = 2, 1
    areas = struct.pack("<4Q", DATA_BYTES, 0, 0, 0)
    areas += struct.pack("<4Q", _AREA_BYTES, DATA_BYTES - _AREA_BYTES, 0, 0)
    extension = struct.pack("<IIQQ", version, used, 0, 0)
    header = _PHYSICAL.encode() + struct.pack("<Q", size_bytes) + areas + extension
    summed = (struct.pack("<I8s", 32, b"LVM2 001") + header).ljust(_SECTOR_BYTES - 20, b"\0")
    return struct.pack("<8sQI", b"LABELONE", 1, _checksum(summed)) + summed


def _area(text: bytes) -> bytes:
    """Return the area: a sector of header, and the text behind it."""
    size_bytes = DATA_BYTES - _AREA_BYTES
    header = struct.pack("<16sIQQ", b" LVM2 x[5A%r0N*>", 1, _AREA_BYTES, size_bytes)
    header += struct.pack("<QQII", _SECTOR_BYTES, len(text), _checksum(text), 0)
    header = header.ljust(_SECTOR_BYTES - 4, b"\0")
    return struct.pack("<I", _checksum(header)) + header + text


def _checksum(data: bytes) -> int:
    """Return CRC-32 as LVM has it: from another beginning, and not inverted at the end."""
    return zlib.crc32(data, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def _dashed(name: str) -> str:
    """Return an identifier as text has it: in groups of 6, 4, 4, 4, 4, 4 and 6 characters."""
    ends = (0, 6, 10, 14, 18, 22, 26, 32)
    return "-".join(name[start:end] for start, end in pairwise(ends))
