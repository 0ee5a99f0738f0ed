"""What of an image's file is loaded, and which other files may be loaded with it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import IO, TYPE_CHECKING

from initadvisor.records.boot_class import parameters

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host


_BOOT_PARTITIONS = ("/efi", "/boot", "/boot/efi")
_MICROCODE = ("amd-ucode.img", "intel-ucode.img")
"""What Arch's packages install beside the images, for loaders to load in front of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPart:
    """Where in a file the initramfs is; ``with_bytes``: sizes of what its stub loads with it."""

    offset: int
    size_bytes: int
    with_bytes: tuple[int, ...] = ()


def loaded_part(file: IO[bytes], *, is_uki: bool) -> LoadedPart:
    """Return what is loaded of an open image: all of it, or a unified one's .initrd section.

    Raises ``BadImageError`` for a unified kernel image that is none.
    """
    size_bytes = file.seek(0, os.SEEK_END)
    if not is_uki:
        return LoadedPart(offset=0, size_bytes=size_bytes)
    from initadvisor.image.pe import read_uki

    uki = read_uki(file, size_bytes)
    return LoadedPart(
        offset=uki.initrd.offset,
        size_bytes=uki.initrd.size_bytes,
        with_bytes=(uki.ucode.size_bytes,) if uki.ucode else (),
    )


def beside(host: Host, image: Path, *copies: Path) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the files that may be loaded with an image, one way after the other.

    Where the command line names the files (systemd-boot, the EFI stub), it is those beside the
    image or one of its copies; GRUB's entries are not read, so there each microcode archive may be
    loaded, or all.
    """
    named = _named(host)
    if loaded := [path for path in named if path in {image, *copies}]:
        return (tuple(path.stat().st_size for path in named if path != loaded[0]),)
    sizes = []
    for name in _MICROCODE:
        with contextlib.suppress(OSError):
            sizes.append(image.with_name(name).stat().st_size)
    ways = [(), *((size,) for size in sizes), tuple(sizes)]
    return tuple(dict.fromkeys(ways))


def _named(host: Host) -> list[Path]:
    """Return the files that ``initrd=`` of the running kernel's command line names."""
    found = []
    for value in parameters(host.read_text("/proc/cmdline") or "", "initrd"):
        name = PureWindowsPath(value).as_posix().lstrip("/")
        there = (host.path(f"{partition}/{name}") for partition in _BOOT_PARTITIONS)
        found += [path for path in there if path.is_file()][:1]
    return found
