"""From an image to what is in it: one pass, bounded memory, bounded time."""

from __future__ import annotations

import dataclasses
import io
from typing import IO, TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.bootconfig import find_bootconfig
from initadvisor.image.contents import ByteRange, ImageContents
from initadvisor.image.decompressors.decompress import MAGIC_BYTES, codec_of
from initadvisor.image.findings import Budget, Limits
from initadvisor.image.inventory import Inventory
from initadvisor.image.reader import Reader
from initadvisor.image.segment import SegmentReader

if TYPE_CHECKING:
    from initadvisor.image.contents import Segment
    from initadvisor.image.segment import EntryVisitor, Tap


def scan(
    file: IO[bytes],
    *,
    limits: Limits | None = None,
    tap: Tap | None = None,
    visitor: EntryVisitor | None = None,
) -> ImageContents:
    """Read an initramfs, or the one in a unified kernel image; the file must be seekable.

    Everything a kernel would unpack is accepted, and what it would refuse as long as it can be
    read: ``image.lint`` tells the two apart. What is unpacked goes through ``tap``, and every entry
    to ``visitor``.

    Raises ``BadImageError`` for what is truncated, damaged, no initramfs at all, or over the
    limits.
    """
    size_bytes = file.seek(0, io.SEEK_END)
    scanner = _Scanner(file, limits or Limits(), tap, visitor)
    if Reader(file, 0, size_bytes).peek(2) == b"MZ":
        from initadvisor.image.pe import read_uki

        uki = read_uki(file, size_bytes)
        for part in (uki.ucode, uki.initrd):
            if part:
                scanner.read(part)
        return scanner.contents(uki.initrd, release=uki.uname, uki=True)
    bootconfig = find_bootconfig(file, size_bytes)
    whole = ByteRange(offset=0, size_bytes=bootconfig.offset if bootconfig else size_bytes)
    scanner.read(whole)
    return scanner.contents(whole, bootconfig=bootconfig)


class _Scanner:
    """Reads the stretches of a file that a boot loader hands to the kernel in a row."""

    def __init__(
        self, file: IO[bytes], limits: Limits, tap: Tap | None, visitor: EntryVisitor | None
    ) -> None:
        self._file = file
        self._limits = limits
        self._inventory = Inventory(limits.names_bytes)
        self._reader = SegmentReader(
            inventory=self._inventory, budget=Budget(limits), tap=tap, visitor=visitor
        )
        self._segments: list[Segment] = []
        self._junk: ByteRange | None = None

    def read(self, part: ByteRange) -> None:
        """Read all segments of one stretch, up to its end or to something that is no segment."""
        reader = Reader(self._file, part.offset, part.offset + part.size_bytes)
        previous: Codec | None = None
        while self._pass_padding(reader, behind_segment=previous is not None):
            start = reader.position
            head = reader.peek(MAGIC_BYTES)
            codec = Codec.CAT if head.startswith(b"0") else codec_of(head)
            if codec is None:
                self._junk = ByteRange(offset=start, size_bytes=reader.left)
                return
            if len(self._segments) == self._limits.segments:
                msg = f"more than {self._limits.segments} segments"
                raise BadImageError(msg, offset=start)
            misaligned = (start - part.offset) % 4 != 0 and Codec.CAT in {codec, previous}
            segment = self._reader.read(
                reader, codec, first=not self._segments, misaligned=misaligned
            )
            self._segments.append(segment)
            previous = codec

    def contents(
        self,
        initrd: ByteRange,
        *,
        release: str | None = None,
        uki: bool = False,
        bootconfig: ByteRange | None = None,
    ) -> ImageContents:
        """Return what was found; raises ``BadImageError`` where that is no initramfs."""
        if not self._segments:
            msg = "no initramfs: neither a cpio archive nor a known compression"
            if not self._junk:
                msg = "no initramfs: " + ("only zero bytes" if initrd.size_bytes else "empty")
            raise BadImageError(msg, offset=self._junk.offset if self._junk else initrd.offset)
        inventory = self._inventory
        return ImageContents(
            segments=tuple(self._segments),
            kinds=inventory.kinds(),
            largest=inventory.largest(),
            kernel_release=inventory.release() or release,
            generator=inventory.generator,
            file_system=inventory.file_system,
            microcode=inventory.microcode,
            initrd=initrd,
            uki=uki,
            junk=self._junk,
            bootconfig=bootconfig,
        )

    def _pass_padding(self, reader: Reader, *, behind_segment: bool) -> bool:
        """Pass zeros, which belong to the segment before them; tell whether anything is left."""
        start = reader.position
        padding = reader.skip_zeros(self._limits.padding_bytes)
        if padding > self._limits.padding_bytes:
            msg = f"more than {self._limits.padding_bytes} bytes of zero padding"
            raise BadImageError(msg, offset=start)
        if behind_segment:
            self._segments[-1] = dataclasses.replace(self._segments[-1], padding_bytes=padding)
        return reader.left > 0
