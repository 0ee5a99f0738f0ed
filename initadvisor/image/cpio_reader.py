"""Reading cpio archives of the newc and crc formats, with the rules of the kernel's own reader.

What an archive is, is what init/initramfs.c takes for one: entries one after the other, zero bytes
allowed between them, a trailer that ends nothing but the memory of hard links. Where that reader
gives up although the data can still be read, reading goes on and a finding is left.
"""

from __future__ import annotations

import struct
from binascii import Error as HexError
from binascii import unhexlify
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import FindingKind
from initadvisor.image.cpio import (
    CRC_MAGIC,
    HEADER_BYTES,
    NEWC_MAGIC,
    PATH_MAX,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    TRAILER,
    name_area_bytes,
    sum_of_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.image.findings import Budget, Findings


_OLD_MAGIC = b"070707"
_FIELDS = struct.Struct(">13I")
_HEAD_BYTES = 8
_ENTRY_BYTES_MAX = HEADER_BYTES + 2 * (PATH_MAX + 4)
_ZEROS = bytes(1 << 16)


class Entry(NamedTuple):
    """One entry; a tuple, because an image has thousands.

    ``name`` as stored, up to its NUL. ``head``: the first bytes of the data, for a symbolic link
    its target. ``device`` and ``inode`` tell which entries are one file. ``offset``: of its header
    in the archive. ``owner``: user and group. ``node``: what a device node stands for.
    """

    name: bytes
    mode: int
    size_bytes: int
    links: int
    device: tuple[int, int]
    inode: int
    head: bytes
    offset: int
    owner: tuple[int, int]
    node: tuple[int, int]


class CpioReader:
    """Takes an archive in pieces and hands on its entries; the data of files is passed over.

    ``visit`` gets each entry, ``trailer`` is called at each trailer, ``data`` gets what an entry
    holds, in pieces, after the entry. ``base`` and ``unpacked`` serve error messages: where the
    archive is in the file, or where the compressed segment is that it was unpacked from.
    """

    def __init__(
        self,
        *,
        visit: Callable[[Entry], None],
        trailer: Callable[[], None],
        findings: Findings,
        budget: Budget,
        base: int,
        unpacked: bool,
        data: Callable[[bytes | memoryview], None] | None = None,
    ) -> None:
        self.entries = 0
        self.position = 0
        """How much was taken in."""
        self.complete = False
        """A trailer was the last thing seen."""
        self._visit = visit
        self._trailer = trailer
        self._data = data
        self._visited = False
        self._findings = findings
        self._budget = budget
        self._base = base
        self._unpacked = unpacked
        self._pending = b""
        self._skip = 0
        self._padding = 0
        self._sum: int | None = None
        self._expected_sum = 0
        self._origin = 0

    @property
    def between_entries(self) -> bool:
        """Whether what was taken in ends where an entry may begin."""
        return not self._skip and not self._pending

    def feed(self, chunk: bytes | memoryview) -> int:
        """Take in a piece of the archive and return how much of it belongs to it.

        That is less than all of it where something starts that is no entry. A plain archive ends
        with its trailer or with the first zero byte after an entry, an unpacked one does not.

        Raises ``BadImageError`` for a header that is none.
        """
        data = memoryview(self._pending + bytes(chunk) if self._pending else chunk)
        before, self._pending = len(self._pending), b""
        start, position, end = self.position - before, 0, len(data)
        while position < end:
            if self._skip:
                position += self._pass_over(data[position : position + self._skip])
                continue
            first = data[position]
            if first == 0 and self._unpacked:
                position = _end_of_zeros(data, position)
                continue
            if first != 0x30 or (self.complete and not self._unpacked):
                break
            taken = self._entry(data[position : position + _ENTRY_BYTES_MAX], start + position)
            if not taken:
                self._pending = bytes(data[position:])
                position = end
            position += taken
        self.position = start + position
        return position - before

    def finish(self) -> None:
        """Say that nothing follows.

        Raises ``BadImageError`` if the archive stops inside an entry. Padding may be missing at the
        end; the kernel minds where it unpacks a compressed archive.
        """
        if self._pending and self._name_is_complete():
            self._entry(self._pending + b"\0" * 3, self.position - len(self._pending))
            self._pending, self._skip, self._padding = b"", 1, 1
        if self._pending or self._skip > self._padding:
            self._fail("truncated: the archive ends inside an entry", self.position)
        if self._skip:
            self._findings.add(FindingKind.UNPADDED_END, self.position)

    def _entry(self, data: bytes | memoryview, offset: int) -> int:
        """Take in one header, name and the beginning of the data; return 0 if more is needed."""
        if len(data) < HEADER_BYTES:
            return 0
        magic = bytes(data[:6])
        self._budget.headers.take()
        fields = self._header(magic, data[6:HEADER_BYTES], offset)
        inode, mode, uid, gid, links, _, size, major, minor, *node, name_bytes, checksum = fields
        name_area = name_area_bytes(name_bytes)
        kind = mode & S_IFMT
        padding = -(HEADER_BYTES + name_area + size) % 4
        if self._is_skipped(kind, size, name_bytes):
            self._begin_data(name_area + size, padding)
            self._visited = False
            self.entries += 1
            self._findings.add(FindingKind.SKIPPED, offset)
            return HEADER_BYTES
        head_bytes = size if kind == S_IFLNK else min(size, _HEAD_BYTES)
        name_end = HEADER_BYTES + name_bytes
        data_start = HEADER_BYTES + name_area
        if len(data) < data_start + head_bytes:
            return 0
        name, _, _ = bytes(data[HEADER_BYTES:name_end]).partition(b"\0")
        if data[name_end - 1] != 0:
            self._findings.add(FindingKind.UNTERMINATED_NAME, offset, name)
        self._check_start(magic, offset, name)
        self.complete = name == TRAILER
        self._visited = not self.complete
        if self.complete:
            self._trailer()
        else:
            self.entries += 1
            head = bytes(data[data_start : data_start + head_bytes])
            device, owner, what = (major, minor), (uid, gid), (node[0], node[1])
            self._visit(Entry(name, mode, size, links, device, inode, head, offset, owner, what))
        self._begin_data(size, padding)
        if magic == CRC_MAGIC and kind == S_IFREG and not self.complete:
            self._sum, self._expected_sum = 0, checksum
            self._compare_sum()
        return data_start

    def _header(self, magic: bytes, fields: bytes | memoryview, offset: int) -> tuple[int, ...]:
        if magic not in {NEWC_MAGIC, CRC_MAGIC}:
            if magic == _OLD_MAGIC:
                self._fail("cpio archive in the old format, newc is needed,", offset)
            self._fail("no cpio header", offset)
        try:
            return _FIELDS.unpack(unhexlify(fields))
        except HexError:
            self._fail("cpio header that is not hexadecimal", offset)

    def _is_skipped(self, kind: int, size: int, name_bytes: int) -> bool:
        """Tell whether the kernel jumps over such an entry without looking at its name."""
        if not 0 < name_bytes <= PATH_MAX:
            return True
        if kind == S_IFLNK:
            return size > PATH_MAX
        return kind != S_IFREG and size > 0

    def _check_start(self, magic: bytes, offset: int, name: bytes) -> None:
        if magic == CRC_MAGIC:
            self._findings.add(FindingKind.CRC_FORMAT, offset, name)
        if (offset - self._origin) % 4:
            self._findings.add(FindingKind.MISALIGNED, offset, name)
            self._origin = offset

    def _begin_data(self, size: int, padding: int) -> None:
        self._skip, self._padding = size + padding, padding

    def _pass_over(self, data: bytes | memoryview) -> int:
        """Take in (a part of) the data of an entry and the padding after it."""
        if self._data and self._visited and self._skip > self._padding:
            self._data(data[: self._skip - self._padding])
        if self._sum is not None:
            self._sum += sum_of_bytes(data[: self._skip - self._padding])
        self._skip -= len(data)
        self._compare_sum()
        return len(data)

    def _compare_sum(self) -> None:
        if self._sum is not None and self._skip <= self._padding:
            if self._sum & 0xFFFFFFFF != self._expected_sum:
                self._findings.add(FindingKind.BAD_CHECKSUM, self.position)
            self._sum = None

    def _name_is_complete(self) -> bool:
        """Tell whether only the padding of the name is missing in an entry without data."""
        if len(self._pending) <= HEADER_BYTES:
            return False
        head = self._pending[:HEADER_BYTES]
        fields = self._header(head[:6], head[6:], self.position - len(self._pending))
        size, name_bytes = fields[6], fields[11]
        return size == 0 and len(self._pending) >= HEADER_BYTES + name_bytes

    def _fail(self, reason: str, position: int) -> NoReturn:
        if self._unpacked:
            reason += f" {position} bytes into what is unpacked from the segment"
        raise BadImageError(reason, offset=self._base + (0 if self._unpacked else position))


def _end_of_zeros(data: bytes | memoryview, position: int) -> int:
    """Return where the first byte after ``position`` is that is not zero."""
    while block := bytes(data[position : position + len(_ZEROS)]):
        if block != _ZEROS[: len(block)]:
            return position + len(block) - len(block.lstrip(b"\0"))
        position += len(block)
    return position
