"""Reading one segment: a plain archive, or a compressed one with the streams that hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import FindingKind, Segment
from initadvisor.image.cpio_reader import CpioReader
from initadvisor.image.decompressors.decompress import MAGIC_BYTES, codec_of, open_stream
from initadvisor.image.decompressors.unzstd import is_skippable
from initadvisor.image.findings import Findings, LimitReachedError
from initadvisor.image.stream_facts import ZstdFacts

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.cpio_reader import Entry
    from initadvisor.image.findings import Budget
    from initadvisor.image.inventory import Inventory
    from initadvisor.image.reader import Reader
    from initadvisor.image.stream_facts import StreamFacts


class Tap(Protocol):
    """Sees what is unpacked as it comes, and may take the time."""

    def __call__(
        self, offset: int, stream: Generator[bytes | memoryview, None, StreamFacts]
    ) -> Generator[bytes | memoryview, None, StreamFacts]:
        """Hand on a stream of the compressed segment that starts at ``offset`` in the file."""
        ...


class EntryVisitor(Protocol):
    """Sees the entries of an image with all that they hold."""

    def begin_segment(self, codec: Codec) -> None:
        """Take note that the entries that follow come from a new segment."""
        ...

    def visit(self, entry: Entry) -> None:
        """Take one entry."""
        ...

    def data(self, piece: bytes | memoryview) -> None:
        """Take a piece of what the last entry holds; it is valid during the call."""
        ...

    def trailer(self) -> None:
        """Take a trailer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentReader:
    """Reads segments of one image.

    What is in them goes to the inventory, through the tap, and to the witness if there is one.
    """

    inventory: Inventory
    budget: Budget
    tap: Tap | None = None
    visitor: EntryVisitor | None = None

    def read(self, reader: Reader, codec: Codec, *, first: bool, misaligned: bool) -> Segment:
        """Read the segment that starts where ``reader`` is.

        ``first`` tells that nothing but zeros was before it in the image, ``misaligned`` that it
        starts where the kernel demands an offset that is a multiple of four, and it is none.
        """
        findings = Findings()
        start = reader.position
        if misaligned:
            findings.add(FindingKind.MISALIGNED, start)
        self.inventory.begin_segment(codec, findings)
        if self.visitor:
            self.visitor.begin_segment(codec)
        archive = CpioReader(
            visit=self._visit if self.visitor else self.inventory.visit,
            trailer=self._trailer if self.visitor else self.inventory.trailer,
            findings=findings,
            budget=self.budget,
            base=start,
            unpacked=codec is not Codec.CAT,
            data=self.visitor.data if self.visitor else None,
        )
        try:
            facts: dict[StreamFacts, None] = {}
            streams = 1
            if codec is Codec.CAT:
                _read_plain(reader, archive)
            else:
                facts, streams = self._unpack(reader, codec, archive, findings, first=first)
            archive.finish()
        except LimitReachedError as err:
            raise BadImageError(str(err), offset=start) from err
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
        self.inventory.visit(entry)
        if self.visitor:
            self.visitor.visit(entry)

    def _trailer(self) -> None:
        self.inventory.trailer()
        if self.visitor:
            self.visitor.trailer()

    def _unpack(
        self, reader: Reader, codec: Codec, archive: CpioReader, findings: Findings, *, first: bool
    ) -> tuple[dict[StreamFacts, None], int]:
        """Feed the archive from as many streams as it takes; return the facts, each once."""
        start, streams = reader.position, 0
        facts: dict[StreamFacts, None] = {}
        going_on = True
        while going_on:
            self.budget.stream()
            stream = open_stream(codec, reader, verify=True)
            if self.tap:
                stream = self.tap(start, stream)
            last = self._feed(stream, archive, findings, start=start, first=first)
            facts[last] = None
            skipped = isinstance(last, ZstdFacts) and last.skippable
            streams += not skipped
            going_on = _goes_on(reader, codec, inside=skipped or not archive.between_entries)
            if going_on and not archive.between_entries:
                findings.add(FindingKind.SPLIT, archive.position)
        if first and not archive.position:
            findings.add(FindingKind.EMPTY, 0)
        return facts, streams

    def _feed(
        self,
        stream: Generator[bytes | memoryview, None, StreamFacts],
        archive: CpioReader,
        findings: Findings,
        *,
        start: int,
        first: bool,
    ) -> StreamFacts:
        while True:
            try:
                piece = next(stream)
            except StopIteration as end:
                facts: StreamFacts = end.value
                return facts
            self.budget.unpack(len(piece))
            if first and not archive.position and piece[0] == 0:
                findings.add(FindingKind.LEADING_ZEROS, 0)
            if archive.feed(piece) < len(piece):
                msg = f"junk {archive.position} bytes into what is unpacked from the segment"
                raise BadImageError(msg, offset=start)


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
