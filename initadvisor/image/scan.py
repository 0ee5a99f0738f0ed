"""From an image to what is in it: one pass, bounded memory, bounded time.

It is read segment by segment: a segment is a plain archive, or a compressed one with the streams
that hold it. Boot configuration appended to the image (Documentation/admin-guide/bootconfig.rst)
the kernel cuts off before it unpacks what is left (init/main.c, get_boot_config_from_initrd).
"""

from __future__ import annotations

import dataclasses
import io
from typing import IO, TYPE_CHECKING, Protocol

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import ByteRange, FindingKind, ImageContents, Segment
from initadvisor.image.cpio_reader import CpioReader
from initadvisor.image.decompressors.decompress import MAGIC_BYTES, codec_of, open_stream
from initadvisor.image.decompressors.unzstd import is_skippable
from initadvisor.image.findings import Budget, Findings, LimitReachedError, Limits
from initadvisor.image.inventory import Inventory
from initadvisor.image.reader import Reader
from initadvisor.image.stream_facts import ZstdFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.cpio_reader import Entry
    from initadvisor.image.stream_facts import StreamFacts


def scan(
    file: IO[bytes],
    *,
    limits: Limits | None = None,
    tap: Tap | None = None,
    listing: Listing | None = None,
) -> ImageContents:
    """Read an initramfs, or the one in a unified kernel image; the file must be seekable.

    Everything a kernel would unpack is accepted, and what it would refuse as long as it can be
    read: ``image.lint`` tells the two apart. What is unpacked goes through ``tap``, and every entry
    to ``listing``.

    Raises ``BadImageError`` for what is truncated, damaged, no initramfs at all, or over the
    limits.
    """
    size_bytes = file.seek(0, io.SEEK_END)
    scanner = _Scanner(file, limits or Limits(), tap, listing)
    if Reader(file, 0, size_bytes).peek(2) == b"MZ":
        from initadvisor.image.pe import read_uki

        uki = read_uki(file, size_bytes)
        for part in (uki.ucode, uki.initrd):
            if part:
                scanner.read(part)
        found = scanner.contents(uki.initrd, release=uki.uname, uki=True)
        return dataclasses.replace(found, followed=uki.stub_adds)
    bootconfig = find_bootconfig(file, size_bytes)
    whole = ByteRange(offset=0, size_bytes=bootconfig.offset if bootconfig else size_bytes)
    scanner.read(whole)
    return scanner.contents(whole, bootconfig=bootconfig)


class _Scanner:
    """Reads the stretches of a file that a boot loader hands to the kernel in a row.

    What is in them goes to the inventory, through the tap, and to the listing if there is one.
    """

    def __init__(
        self, file: IO[bytes], limits: Limits, tap: Tap | None, listing: Listing | None
    ) -> None:
        self._file = file
        self._limits = limits
        self._inventory = Inventory(limits.names_bytes)
        self._budget = Budget(limits)
        self._tap = tap
        self._listing = listing
        self._segments: list[Segment] = []
        self._junk: ByteRange | None = None
        self._size_bytes = 0

    def read(self, part: ByteRange) -> None:
        """Read all segments of one stretch, up to its end or to something that is no segment."""
        self._size_bytes += part.size_bytes
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
            self._segments.append(self._segment(reader, codec, misaligned=misaligned))
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
            kinds=inventory.kinds(self._size_bytes + (bootconfig.size_bytes if bootconfig else 0)),
            largest=inventory.largest(),
            repeated=inventory.repeated(),
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

    def _segment(self, reader: Reader, codec: Codec, *, misaligned: bool) -> Segment:
        """Read the segment that starts where ``reader`` is.

        ``misaligned`` tells that it starts where the kernel demands an offset that is a multiple of
        four, and it is none.
        """
        findings = Findings()
        start = reader.position
        if misaligned:
            findings.add(FindingKind.MISALIGNED, start)
        self._inventory.begin_segment(codec, findings, start)
        if self._listing:
            self._listing.begin_segment(codec)
        archive = CpioReader(
            visit=self._visit if self._listing else self._inventory.visit,
            trailer=self._trailer if self._listing else self._inventory.trailer,
            findings=findings,
            budget=self._budget,
            base=start,
            unpacked=codec is not Codec.CAT,
            data=self._data if self._listing else self._inventory.data,
        )
        try:
            facts: dict[StreamFacts, None] = {}
            streams = 1
            if codec is Codec.CAT:
                _read_plain(reader, archive)
            else:
                facts, streams = self._unpack(reader, codec, archive, findings)
            archive.finish()
        except LimitReachedError as err:
            raise BadImageError(str(err), offset=start) from err
        self._inventory.checkpoint(archive.position, reader.position)
        if archive.entries and not archive.complete:
            findings.add(FindingKind.NO_TRAILER, archive.position)
        return Segment(
            offset=start,
            size_bytes=reader.position - start,
            codec=codec,
            unpacked_bytes=archive.position,
            entries=archive.entries,
            streams=streams,
            facts=tuple(facts),
            findings=findings.all(),
        )

    def _visit(self, entry: Entry) -> None:
        self._inventory.visit(entry)
        if self._listing:
            self._listing.visit(entry)

    def _trailer(self) -> None:
        self._inventory.trailer()
        if self._listing:
            self._listing.trailer()

    def _data(self, piece: bytes | memoryview) -> None:
        self._inventory.data(piece)
        if self._listing:
            self._listing.data(piece)

    def _unpack(
        self, reader: Reader, codec: Codec, archive: CpioReader, findings: Findings
    ) -> tuple[dict[StreamFacts, None], int]:
        """Feed the archive from as many streams as it takes; return the facts, each once."""
        start, streams = reader.position, 0
        facts: dict[StreamFacts, None] = {}
        going_on = True
        while going_on:
            self._budget.streams.take()
            stream = open_stream(codec, reader, verify=True)
            if self._tap:
                stream = self._tap(start, stream)
            last = self._feed(stream, archive, findings, reader, start)
            facts[last] = None
            skipped = isinstance(last, ZstdFacts) and last.skippable
            streams += not skipped
            going_on = _goes_on(reader, codec, inside=skipped or not archive.between_entries)
            if going_on and not archive.between_entries:
                findings.add(FindingKind.SPLIT, archive.position)
        if not self._segments and not archive.position:
            findings.add(FindingKind.EMPTY, 0)
        return facts, streams

    def _feed(
        self,
        stream: Generator[bytes | memoryview, None, StreamFacts],
        archive: CpioReader,
        findings: Findings,
        reader: Reader,
        start: int,
    ) -> StreamFacts:
        read_to = reader.position
        while True:
            try:
                piece = next(stream)
            except StopIteration as end:
                facts: StreamFacts = end.value
                return facts
            if reader.position != read_to:
                # All that was read before this was used for the pieces before.
                self._inventory.checkpoint(archive.position, read_to)
                read_to = reader.position
            self._budget.unpacked.take(len(piece))
            if not self._segments and not archive.position and piece[0] == 0:
                findings.add(FindingKind.LEADING_ZEROS, 0)
            if archive.feed(piece) < len(piece):
                msg = f"junk {archive.position} bytes into what is unpacked from the segment"
                raise BadImageError(msg, offset=start)


class Tap(Protocol):
    """Sees what is unpacked as it comes, and may take the time."""

    def __call__(
        self, offset: int, stream: Generator[bytes | memoryview, None, StreamFacts]
    ) -> Generator[bytes | memoryview, None, StreamFacts]:
        """Hand on a stream of the compressed segment that starts at ``offset`` in the file."""
        ...


class Listing(Protocol):
    """Takes every entry of an image, in order."""

    def begin_segment(self, codec: Codec) -> None:
        """Take note that the entries that follow come from a new segment."""
        ...

    def visit(self, entry: Entry) -> None:
        """Take one entry; raises ``LimitReachedError`` for names beyond all measure."""
        ...

    def data(self, piece: bytes | memoryview) -> None:
        """Take a piece of the data of the last entry; it is valid during the call."""
        ...

    def trailer(self) -> None:
        """Take a trailer."""
        ...


def _read_plain(reader: Reader, archive: CpioReader) -> None:
    while data := reader.read():
        if left := len(data) - archive.feed(data):
            reader.position -= left
            return


def _goes_on(reader: Reader, codec: Codec, *, inside: bool) -> bool:
    """Tell whether what follows directly belongs to the same segment.

    The kernel would say no; but an archive that stops inside an entry goes on in the next stream
    (bgzip, pbzip2), and skippable frames around zstd's are no segments.
    """
    head = reader.peek(MAGIC_BYTES)
    if is_skippable(head):
        return codec is Codec.ZSTD
    return inside and codec_of(head) is codec


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
