"""A disk image: where its partitions are, what is in them, and copies that take no room."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.vm import tools
from tests.vm.filesystems import Ext4, Vfat

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MIB = 1 << 20
FAT32_BYTES = 272 * MIB
"""The least for FAT32 with clusters of 4 KiB, which is what mkfs.fat makes: firmware refuses one
with fewer than 65525 of them (observed with OVMF).
"""


_FIRST_SECTOR = 34
_BIOS_BOOT = f"start={_FIRST_SECTOR}, size=2014, type=21686148-6449-6E6F-744E-656564454649"
"""Between the table and the first partition that is aligned: for what GRUB's boot sector loads
("BIOS installation" in GRUB's manual).
"""


class FileSystem(StrEnum):
    """What a partition is formatted with."""

    VFAT = "vfat"
    EXT4 = "ext4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A stretch of a disk with a file system; ``mount_point`` is where the guest has it."""

    mount_point: str
    file_system: FileSystem
    type_guid: str
    guid: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A raw image with a GUID partition table."""

    path: Path
    partitions: tuple[Partition, ...]

    def partition(self, mount_point: str) -> Partition:
        """Return the partition a directory of the guest is on."""
        return max(
            (p for p in self.partitions if _is_below(mount_point, p.mount_point)),
            key=lambda p: len(p.mount_point),
        )

    def files(self, mount_point: str) -> Vfat | Ext4:
        """Return the file system mounted there; its paths start from the mount point."""
        partition = self.partition(mount_point)
        match partition.file_system:
            case FileSystem.VFAT:
                return Vfat(image=self.path, offset_bytes=partition.offset_bytes)
            case FileSystem.EXT4:
                return Ext4(image=self.path, offset_bytes=partition.offset_bytes)

    @property
    def root(self) -> Ext4:
        """The guest's root file system."""
        root = self.files("/")
        assert isinstance(root, Ext4)
        return root


def make_disk(path: Path, partitions: Sequence[Partition], *, bios_boot: bool = False) -> Disk:
    """Write a sparse image with a partition table of these partitions, which stay empty.

    With ``bios_boot`` there is one more, the last, where GRUB puts itself if there is no EFI.
    """
    with path.open("wb") as file:
        file.truncate(max(p.offset_bytes + p.size_bytes for p in partitions) + MIB)
    lines = [
        f"start={p.offset_bytes // 512}, size={p.size_bytes // 512}, "
        f"type={p.type_guid}, uuid={p.guid}"
        for p in partitions
    ]
    head = ["label: gpt"]
    if bios_boot:
        head.append(f"first-lba: {_FIRST_SECTOR}")
        lines.append(_BIOS_BOOT)
    table = "\n".join((*head, *lines, ""))
    tools.run("sfdisk", "-q", path, stdin=table.encode())
    return Disk(path=path, partitions=tuple(partitions))


def format_vfat(path: Path, offset_bytes: int, size_bytes: int) -> Vfat:
    """Make a FAT32 file system in an image, as firmware wants it for an ESP."""
    assert size_bytes >= FAT32_BYTES
    options = ("-F", "32", f"--offset={offset_bytes // 512}")
    tools.run("mkfs.fat", *options, path, str(size_bytes // 1024))
    return Vfat(image=path, offset_bytes=offset_bytes)


def format_ext4(
    path: Path, offset_bytes: int, size_bytes: int, *, content: Path | None = None
) -> Ext4:
    """Make an ext4 file system in an image, with what is in an archive or a directory."""
    tools.run(
        "mke2fs",
        *("-q", "-F", "-t", "ext4", "-E", f"offset={offset_bytes},root_owner=0:0"),
        *(("-d", content) if content else ()),
        *(path, f"{size_bytes // 1024}k"),
    )
    return Ext4(image=path, offset_bytes=offset_bytes)


def sparse_copy(source: Path, target: Path) -> Path:
    """Copy a file or a directory; blocks are shared where the file system can, holes stay."""
    subprocess.run(
        ["/bin/cp", "-r", "--reflink=auto", "--sparse=always", source, target],
        check=True,
        timeout=300,
    )
    return target


def cut_out(disk: Path, offset_bytes: int, size_bytes: int, target: Path) -> None:
    """Copy a stretch of a disk, whole mebibytes, to a sparse file of its own."""
    numbers = (f"skip={offset_bytes // MIB}", f"count={size_bytes // MIB}")
    assert not offset_bytes % MIB
    assert not size_bytes % MIB
    subprocess.run(
        ["/bin/dd", f"if={disk}", f"of={target}", "bs=1M", *numbers, "conv=sparse", "status=none"],
        check=True,
        timeout=300,
    )
    os.truncate(target, size_bytes)


def _is_below(path: str, mount_point: str) -> bool:
    return mount_point in ("/", path) or path.startswith(f"{mount_point}/")
