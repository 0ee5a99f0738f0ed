"""The newc and crc formats of cpio (cpio(5)), and writing them."""

from __future__ import annotations

import zlib
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


S_IFMT, S_IFLNK, S_IFREG, S_IFDIR = 0o170000, 0o120000, 0o100000, 0o040000

HEADER_BYTES = 110
NEWC_MAGIC, CRC_MAGIC = b"070701", b"070702"
TRAILER = b"TRAILER!!!"
PATH_MAX = 4096
"""The kernel's; for the name with its NUL, and for the target of a symbolic link."""


class CpioWriter:
    """Writes entries in the order they are added; as a context manager it adds the trailer.

    The result depends on nothing but what is added: owner 0:0, time 0, inodes counted from 1.
    """

    def __init__(self, file: IO[bytes], *, checksums: bool = False) -> None:
        self._file = file
        self._checksums = checksums
        self._inode = 0

    def __enter__(self) -> CpioWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()

    def directory(self, path: str, *, mode: int = 0o755) -> None:
        """Add a directory; the one it is in must have been added."""
        self.entry(path, S_IFDIR | mode, links=2)

    def file(self, path: str, data: bytes | memoryview, *, mode: int = 0o644) -> None:
        """Add a regular file; its directory must have been added."""
        self.entry(path, S_IFREG | mode, data)

    def entry(
        self,
        path: str | bytes,
        mode: int,
        data: bytes | memoryview = b"",
        *,
        links: int = 1,
        inode: int | None = None,
        device: tuple[int, int] = (0, 0),
    ) -> None:
        """Add any entry; ``mode`` has its type too, ``device`` is that of a device node.

        Entries of one ``inode`` with ``links`` of 2 or more are one file.
        """
        self._inode += 1
        name = (path.encode() if isinstance(path, str) else path) + b"\0"
        checksum = sum_of_bytes(data) if self._checksums and mode & S_IFMT == S_IFREG else 0
        number = self._inode if inode is None else inode
        fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name), checksum)
        magic = CRC_MAGIC if self._checksums else NEWC_MAGIC
        header = magic + b"".join(b"%08X" % (field & 0xFFFFFFFF) for field in fields)
        self._file.write(header + name.ljust(name_area_bytes(len(name)), b"\0"))
        self._file.write(data)
        self._file.write(bytes(-(HEADER_BYTES + name_area_bytes(len(name)) + len(data)) % 4))

    def close(self) -> None:
        """Add the entry that ends an archive; the file stays open."""
        self.entry(TRAILER, 0, inode=0)


def name_area_bytes(name_bytes: int) -> int:
    """Return the room of a name with its padding; the header before it is 2 over a multiple of 4.

    The kernel's N_ALIGN (init/initramfs.c).
    """
    return ((name_bytes + 1) & ~3) + 2


def sum_of_bytes(data: bytes | memoryview) -> int:
    """Return the sum that crc archives keep.

    Adler-32 is used to add: its lower half is 1 plus the sum modulo 65521, exact for 256 bytes.
    """
    step = 256
    sums = (zlib.adler32(data[start : start + step]) for start in range(0, len(data), step))
    return sum((value & 0xFFFF) - 1 for value in sums)
