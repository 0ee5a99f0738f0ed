"""Archives are read the way they were written, whatever pieces they come in."""

from __future__ import annotations

import io
import random
import subprocess

import pytest

from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import FindingKind
from initadvisor.image.cpio import HEADER_BYTES, S_IFLNK, CpioWriter, sum_of_bytes
from initadvisor.image.cpio_reader import CpioReader, Entry
from initadvisor.image.findings import Budget, Findings, Limits
from tests.fixtures.images import archive, entry
from tests.fixtures.waiting import HANGS_S


class Reading:
    """A reader, and what it handed on."""

    def __init__(self, *, unpacked: bool = True) -> None:
        self.entries: list[Entry] = []
        self.trailers = 0
        self.findings = Findings()
        self.reader = CpioReader(
            visit=self.entries.append,
            trailer=self._trailer,
            findings=self.findings,
            budget=Budget(Limits()),
            base=1000,
            unpacked=unpacked,
        )

    def _trailer(self) -> None:
        self.trailers += 1

    def kinds(self) -> list[FindingKind]:
        """Return what was found."""
        return [finding.kind for finding in self.findings.all()]


def sample() -> bytes:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        writer.directory("d", mode=0o750)
        writer.file("d/empty", b"")
        writer.file("d/file", b"0123456789", mode=0o600)
        writer.entry("d/link", S_IFLNK | 0o777, b"file")
        writer.entry("d/null", 0o020666, device=(1, 3))
        writer.entry("d/hard", 0o100644, links=2, inode=99)
        writer.entry(b"d/\xff", 0o100644, bytes(5000), links=2, inode=99)
    return file.getvalue()


def test_entries_come_with_their_fields() -> None:
    reading = Reading()
    data = sample()
    assert reading.reader.feed(data) == len(data)
    reading.reader.finish()
    found = {entry.name: entry for entry in reading.entries}
    assert list(found) == [b"d", b"d/empty", b"d/file", b"d/link", b"d/null", b"d/hard", b"d/\xff"]
    assert found[b"d"].mode == 0o040750
    assert (found[b"d/file"].size_bytes, found[b"d/file"].head) == (10, b"01234567")
    assert (found[b"d/link"].mode, found[b"d/link"].head) == (0o120777, b"file")
    assert (found[b"d/hard"].links, found[b"d/hard"].inode) == (2, 99)
    assert reading.trailers == 1
    assert reading.reader.complete
    assert reading.reader.entries == 7
    assert not reading.kinds()


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 109, 110, 111, 4096])
@pytest.mark.parametrize("view", [bytes, memoryview])
def test_pieces_may_be_cut_anywhere(piece_bytes: int, view: type) -> None:
    whole, pieces = Reading(), Reading()
    data = sample() + bytes(100) + sample()
    whole.reader.feed(data)
    for start in range(0, len(data), piece_bytes):
        piece = data[start : start + piece_bytes]
        assert pieces.reader.feed(view(piece)) == len(piece)
    pieces.reader.finish()
    assert pieces.entries == whole.entries
    assert pieces.reader.position == len(data)


def test_a_plain_archive_ends_with_its_trailer() -> None:
    reading = Reading(unpacked=False)
    data = sample()
    assert reading.reader.feed(data + bytes(30)) == len(data)
    reading = Reading(unpacked=False)
    assert reading.reader.feed(data + data) == len(data)


def test_what_is_no_entry_is_left() -> None:
    reading = Reading()
    data = sample()
    assert reading.reader.feed(data + bytes(4) + b"junk") == len(data) + 4


def test_gnu_cpio_reads_what_is_written() -> None:
    listed = subprocess.run(
        ["/usr/bin/cpio", "-it", "--quiet"],
        input=archive({"a/b": b"x", "c": b"y"}),
        capture_output=True,
        check=True,
        timeout=HANGS_S,
    )
    assert listed.stdout.split() == [b"a", b"a/b", b"c"]
    assert not listed.stderr


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 100_000])
def test_sums_are_those_of_every_byte(length: int) -> None:
    data = random.Random(length).randbytes(length)
    assert sum_of_bytes(data) == sum(data)
    assert sum_of_bytes(b"\xff" * length) == 255 * length


def test_checksums_are_compared() -> None:
    data = archive({"a": bytes(range(256)) * 50, "b": b""}, checksums=True)
    right, wrong = Reading(), Reading()
    for start in range(0, len(data), 1000):
        right.reader.feed(data[start : start + 1000])
    wrong.reader.feed(data.replace(b"\x10\x11", b"\x10\x10", 1))
    assert right.kinds() == [FindingKind.CRC_FORMAT]
    assert wrong.kinds() == [FindingKind.CRC_FORMAT, FindingKind.BAD_CHECKSUM]


def test_a_checksum_of_an_empty_file_must_be_zero() -> None:
    data = archive({"a": b""}, checksums=True)
    reading = Reading()
    reading.reader.feed(data[: HEADER_BYTES - 8] + b"00000001" + data[HEADER_BYTES:])
    assert FindingKind.BAD_CHECKSUM in reading.kinds()


BEFORE = entry(b"before\0", b"12345")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"0" * 200, "no cpio header"),
        (b"070707" + b"0" * 200, "old format"),
        (b"070701" + b"x" * 104, "not hexadecimal"),
        (b"070701" + b" " * 104, "not hexadecimal"),
        (b"070701" + b"0x000001" * 13, "not hexadecimal"),
    ],
)
def test_a_bad_header_is_an_error_at_its_offset(data: bytes, reason: str) -> None:
    with pytest.raises(BadImageError, match=f"{reason}.* at offset {1000 + len(BEFORE)}$"):
        Reading(unpacked=False).reader.feed(BEFORE + data)
    with pytest.raises(BadImageError, match=f"{reason}.* {len(BEFORE)} bytes into .* offset 1000$"):
        Reading(unpacked=True).reader.feed(BEFORE + data)


@pytest.mark.parametrize("cut", [1, 50, 109, 110, 111, 119, 120])
def test_an_archive_that_stops_inside_an_entry_is_truncated(cut: int) -> None:
    reading = Reading()
    reading.reader.feed(entry(b"name\0", b"0123456789")[:cut])
    with pytest.raises(BadImageError, match="truncated"):
        reading.reader.finish()


@pytest.mark.parametrize("missing", [1, 2])
def test_padding_may_be_missing_at_the_end(missing: int) -> None:
    reading = Reading()
    reading.reader.feed(entry(b"name\0", b"0123456789")[:-missing])
    reading.reader.finish()
    assert reading.kinds() == [FindingKind.UNPADDED_END]


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_padding_of_the_last_name_may_be_missing(missing: int) -> None:
    reading = Reading()
    data = sample()
    assert data.endswith(b"!!!\0\0\0\0")
    reading.reader.feed(data[:-missing])
    reading.reader.finish()
    assert reading.kinds() == [FindingKind.UNPADDED_END]
    assert reading.trailers == 1


def test_a_name_of_the_greatest_length_is_read_in_any_pieces() -> None:
    data = entry(b"n" * 4095 + b"\0", b"data") + entry(b"l\0", b"t" * 4096, mode=0o120777)
    for piece_bytes in (100, 5000, len(data)):
        reading = Reading()
        for start in range(0, len(data), piece_bytes):
            reading.reader.feed(data[start : start + piece_bytes])
        reading.reader.finish()
        assert [len(entry.name) for entry in reading.entries] == [4095, 1]
        assert len(reading.entries[1].head) == 4096
        assert not reading.kinds()
