"""The file that an EFI boot option starts (UEFI 2.10, sections 3.1.3, 3.5 and 10.3)."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


DEFAULT_LOADER = r"\EFI\BOOT\BOOT*.EFI"
"""What the firmware starts from a disk when no file is named; ``*`` stands for the processor."""

_HEAD = struct.Struct("<IH")  # attributes, bytes of the device path
_NODE = struct.Struct("<BBH")  # type, subtype, bytes of the node with this header
_FILE = (4, 4)
_HARD_DRIVE = (4, 1)
_GPT_SIGNATURE = 2
_SIGNATURE_TYPE = 37
_SIGNATURE = slice(20, 36)
"""Where a hard drive's node has its signature, and of which type it is, without the header."""
_ACTIVE = 1
_NO_DISK = {
    *((4, 6), (4, 7)),  # a part of the firmware: its shell, its setup
    *((3, 11), (3, 12), (3, 13), (3, 24)),  # the network: MAC, IPv4, IPv6, URI
}
_END = 0x7F


@dataclass(frozen=True, slots=True, kw_only=True)
class BootOption:
    """A boot option of the firmware.

    ``file`` as ``boot_option_file`` tells it. ``partition_uuid``: the GPT partition that it is on,
    in small letters; None where the option names none. ``data``: what is handed to the file.
    """

    description: str
    active: bool
    file: str | None
    partition_uuid: str | None
    data: bytes


def boot_option(option: bytes) -> BootOption | None:
    """Read a load option; None where it is damaged."""
    if len(option) < _HEAD.size:
        return None
    attributes, path_bytes = _HEAD.unpack_from(option)
    position = _HEAD.size
    while option[position : position + 2] not in {b"\0\0", b""}:
        position += 2
    description = option[_HEAD.size : position].decode("utf-16-le", errors="replace")
    position += 2
    nodes = list(_nodes(option[position : position + path_bytes]))
    if not nodes or nodes[-1][0][0] != _END:
        return None
    return BootOption(
        description=description,
        active=bool(attributes & _ACTIVE),
        file=_file(nodes),
        partition_uuid=next(
            (_partition(node) for kind, node in nodes if kind == _HARD_DRIVE), None
        ),
        data=option[position + path_bytes :],
    )


def boot_option_file(option: bytes) -> str | None:
    r"""Return the file that a load option names (``\EFI\systemd\systemd-bootx64.efi``).

    ``DEFAULT_LOADER`` where it names a disk only. None where it is part of the firmware or comes
    over the network, and where the option is damaged.
    """
    read = boot_option(option)
    return read.file if read else None


def _file(nodes: list[tuple[tuple[int, int], bytes]]) -> str | None:
    if {kind for kind, _ in nodes} & _NO_DISK:
        return None
    names = [_text(content) for kind, content in nodes if kind == _FILE]
    if not all(name.isprintable() for name in names):
        return None
    return "\\".join(names).replace("\\\\", "\\") or DEFAULT_LOADER


def _partition(node: bytes) -> str | None:
    """Return the partition's UUID from the node of a hard drive (UEFI 2.10, 10.3.5.1)."""
    if len(node) <= _SIGNATURE_TYPE or node[_SIGNATURE_TYPE] != _GPT_SIGNATURE:
        return None
    return str(uuid.UUID(bytes_le=node[_SIGNATURE]))


def _nodes(path: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield type with subtype, and content, of each node up to the end of the path or its damage.

    The end is a node, too; a path without it is damaged.
    """
    position = 0
    while position + _NODE.size <= len(path):
        kind, subkind, size = _NODE.unpack_from(path, position)
        if size < _NODE.size or position + size > len(path):
            return
        yield (kind, subkind), path[position + _NODE.size : position + size]
        if kind == _END:
            return
        position += size


def _text(content: bytes) -> str:
    return content.decode("utf-16-le", errors="replace").partition("\0")[0]
