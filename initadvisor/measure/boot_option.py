"""The file that an EFI boot option starts (UEFI 2.10, sections 3.1.3 and 10.3)."""

from __future__ import annotations

import struct

_HEAD = struct.Struct("<IH")  # attributes, bytes of the device path
_NODE = struct.Struct("<BBH")  # type, subtype, bytes of the node with this header
_MEDIA, _FILE_PATH = 4, 4
_END = 0x7F


def boot_option_file(option: bytes) -> str | None:
    r"""Return the file that a load option names (``\EFI\systemd\systemd-bootx64.efi``).

    None where it names a whole disk, from which the firmware starts the default loader, or where
    the option is damaged.
    """
    if len(option) < _HEAD.size:
        return None
    _, path_bytes = _HEAD.unpack_from(option)
    position = _HEAD.size
    while option[position : position + 2] not in {b"\0\0", b""}:  # the description
        position += 2
    position += 2
    names = _file_names(option[position : position + path_bytes])
    return "\\".join(names).replace("\\\\", "\\") or None


def _file_names(path: bytes) -> list[str]:
    """Return the names in the file nodes; a path may be spread over several."""
    names: list[str] = []
    position = 0
    while position + _NODE.size <= len(path):
        kind, subkind, size = _NODE.unpack_from(path, position)
        if kind == _END or size < _NODE.size or position + size > len(path):
            break
        if (kind, subkind) == (_MEDIA, _FILE_PATH):
            raw = path[position + _NODE.size : position + size]
            name = raw.decode("utf-16-le", errors="replace").partition("\0")[0]
            if not name.isprintable():
                return []
            names.append(name)
        position += size
    return names
