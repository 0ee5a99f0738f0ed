"""Boot configuration appended to an image (Documentation/admin-guide/bootconfig.rst).

The kernel cuts it off before it unpacks what is left (init/main.c, get_boot_config_from_initrd).
"""

from __future__ import annotations

from typing import IO

from initadvisor.image.contents import ByteRange
from initadvisor.image.reader import Reader

_MAGIC = b"#BOOTCONFIG\n"
_FIELDS_BYTES = 8
_ALIGNMENT = 4
_DATA_MAX_BYTES = 1 << 15  # XBC_DATA_MAX, include/linux/bootconfig.h


def find_bootconfig(file: IO[bytes], size_bytes: int) -> ByteRange | None:
    """Return where the boot configuration is, None if there is none that the kernel would take.

    A boot loader may have padded it to a multiple of four bytes.
    """
    tail = _ALIGNMENT - 1 + len(_MAGIC) + _FIELDS_BYTES
    data = Reader(file, max(0, size_bytes - tail), size_bytes).read()
    found = data.rfind(_MAGIC)
    if found < _FIELDS_BYTES:
        return None
    length = int.from_bytes(data[found - _FIELDS_BYTES : found - 4], "little")
    checksum = int.from_bytes(data[found - 4 : found], "little")
    start = size_bytes - len(data) + found - _FIELDS_BYTES - length
    if start < 0 or length > _DATA_MAX_BYTES:
        return None
    content = Reader(file, start, start + length).read()
    if sum(content) & 0xFFFFFFFF != checksum:
        return None
    return ByteRange(offset=start, size_bytes=size_bytes - start)
