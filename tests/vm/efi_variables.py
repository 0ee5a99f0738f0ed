"""EFI variables that a guest's firmware keeps, read from its flash image (OVMF_VARS)."""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOADER = uuid.UUID("4a67b082-0a4c-41cf-b6c7-440b29bb8c4f")
"""The vendor of systemd-boot's variables."""
GLOBAL = uuid.UUID("8be4df61-93ca-11d2-aa0d-00e098032b8c")
"""The vendor of what the UEFI specification defines: BootNext, BootOrder, Boot0000."""

_VOLUME_HEADER_BYTES_AT = 0x30
_STORE = uuid.UUID("aaf32c78-947b-439a-a180-2e144ec37792")  # authenticated variables
_STORE_HEADER_BYTES = 28
_VARIABLE = struct.Struct("<HBBIQ16sIII16s")
_START = 0x55AA
_ADDED = (0x3F, 0x3E)  # in use; in use while a new value is written


def efi_variables(store: Path) -> dict[tuple[uuid.UUID, str], bytes]:
    """Return the non-volatile variables by vendor and name."""
    return variables_in(store.read_bytes())


def variables_in(data: bytes) -> dict[tuple[uuid.UUID, str], bytes]:
    """Return those of a store's content.

    The layout is that of edk2's MdeModulePkg/Include/Guid/VariableFormat.h.
    """
    (start,) = struct.unpack_from("<H", data, _VOLUME_HEADER_BYTES_AT)
    assert uuid.UUID(bytes_le=data[start : start + 16]) == _STORE
    found: dict[tuple[uuid.UUID, str], bytes] = {}
    position = start + _STORE_HEADER_BYTES
    while True:
        fields = _VARIABLE.unpack_from(data, position)
        begin, state, name_bytes, data_bytes, vendor = (fields[index] for index in (0, 1, 7, 8, 9))
        if begin != _START:
            return found
        name_at = position + _VARIABLE.size
        data_at = name_at + name_bytes
        if data_at + data_bytes > len(data):  # its header is being written, behind all others
            return found
        if state in _ADDED:
            name = data[name_at:data_at].decode("utf-16-le").rstrip("\0")
            found[uuid.UUID(bytes_le=vendor), name] = data[data_at : data_at + data_bytes]
        position = (data_at + data_bytes + 3) & ~3
