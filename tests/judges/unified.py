"""Unified kernel images that boot: made like ukify makes them, started by OVMF on no real disk."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.debian import Suite, debian
from tests.vm import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

_STUB = Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
_INITIALISED_READABLE = 0x40000040
_SECTION = struct.Struct("<8sIIIIIIHHI")


def with_sections(stub: bytes, sections: Mapping[str, bytes]) -> bytes:
    """Return a PE file with more sections behind its own (Microsoft's "PE Format")."""
    out = bytearray(stub)
    (coff,) = struct.unpack_from("<I", out, 0x3C)
    count, optional_bytes = struct.unpack_from("<6xH12xH", out, coff)
    optional = coff + 24
    alignment, file_alignment = struct.unpack_from("<II", out, optional + 32)
    (headers_bytes,) = struct.unpack_from("<I", out, optional + 60)
    table = optional + optional_bytes
    assert table + _SECTION.size * (count + len(sections)) <= headers_bytes, "no room in the header"
    end = max(
        sum(struct.unpack_from("<II", out, table + _SECTION.size * number + 8))
        for number in range(count)
    )
    for number, (name, content) in enumerate(sections.items(), count):
        out += bytes(-len(out) % file_alignment)
        address = end + -end % alignment
        stored = content + bytes(-len(content) % file_alignment)
        place = (len(content), address, len(stored), len(out))
        header = _SECTION.pack(name.encode(), *place, 0, 0, 0, 0, _INITIALISED_READABLE)
        out[table + _SECTION.size * number : table + _SECTION.size * (number + 1)] = header
        out += stored
        end = address + len(content)
    struct.pack_into("<H", out, coff + 6, count + len(sections))
    struct.pack_into("<I", out, optional + 56, end + -end % alignment)
    return bytes(out)


def unified_kernel(initrd: bytes, command_line: str) -> bytes:
    """Return a unified kernel image with Debian 12's kernel for the cloud, which starts soonest."""
    tree = debian(Suite.BOOKWORM)
    sections = {
        ".uname": tree.release.encode(),
        ".cmdline": command_line.encode() + b"\0",
        ".initrd": initrd,
        # The last, because the kernel may use the room behind it.
        ".linux": (tree.root / f"boot/vmlinuz-{tree.release}").read_bytes(),
    }
    return with_sections(_STUB.read_bytes(), sections)


def firmware_options(image: Path, scratch: Path) -> list[str | Path]:
    """Return what has QEMU's firmware start a PE file: from a disk that is made up of a directory.

    ``scratch`` is an empty directory for that and for the firmware's variables.
    """
    loaders = scratch / "disk/EFI/BOOT"
    loaders.mkdir(parents=True)
    image.rename(loaders / "BOOTX64.EFI")
    firmware = tools.tree() / "usr/share/OVMF"
    variables = shutil.copy(firmware / "OVMF_VARS_4M.fd", scratch / "variables")
    return [
        *("-drive", f"if=pflash,format=raw,readonly=on,file={firmware}/OVMF_CODE_4M.fd"),
        *("-drive", f"if=pflash,format=raw,file={variables}"),
        *("-drive", f"if=virtio,format=raw,file=fat:rw:{scratch / 'disk'}"),
    ]
