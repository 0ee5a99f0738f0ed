"""Where the parts of a unified kernel image are (UAPI group specification, "UKI").

A UKI is a PE file (Microsoft's "PE Format"); the kernel, the initramfs and the rest are sections.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import ByteRange
from initadvisor.image.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator


OF_THE_INITRAMFS: Final = frozenset({".initrd", ".pcrsig"})
"""Sections that differ where the bytes of the initramfs do: itself, and what is signed of it."""

_STUB = re.compile(r"LoaderInfo: systemd-stub (\d{1,6})")
_ADDS_SINCE = 257
_TAKES_ADDONS_SINCE = 254

_PE_MAGIC = b"PE\0\0"
_PE_OFFSET_FIELD = 0x3C
_COFF_HEADER = struct.Struct("<HHIIIHH")
_SECTION_HEADER = struct.Struct("<8sIIII16x")
_PROFILE = ".profile"
_DIRECTORIES = {b"\x0b\x01": 96, b"\x0b\x02": 112}
"""Where an optional header's data directories start, by its magic (PE32, PE32+)."""

_CHECKSUM = 64
_HEADERS_SIZE = slice(60, 64)
"""Where an optional header has the file's checksum, and how long all headers are."""

_CERTIFICATES = 4
"""The number of the directory that says where signatures are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uki:
    """The parts of a unified kernel image that matter here; ``ucode`` is loaded before ``initrd``.

    ``kernel``: its ``.linux`` section, None in an addon. ``uname``: the kernel's release, and
    ``command_line`` what it starts with, where the image says them. ``signed``: there is a
    signature, whoever made it. ``pcr_signed``: it brings signatures of what PCR 11 will hold.
    ``stub``: the version of systemd's stub, None where it is another.
    """

    initrd: ByteRange
    kernel: ByteRange | None
    ucode: ByteRange | None
    uname: str | None
    command_line: str | None = None
    signed: bool = False
    pcr_signed: bool = False
    stub: int | None = None

    @property
    def stub_adds(self) -> bool:
        """Its stub always loads archives of its own behind the initramfs: /.extra/os-release.

        As systemd's does since 257 (ran: 257.13).
        """
        return self.stub is not None and self.stub >= _ADDS_SINCE

    @property
    def takes_addons(self) -> bool:
        """Its stub adds the words of addons in ``IMAGE.extra.d`` (systemd-stub(7), since 254)."""
        return self.stub is not None and self.stub >= _TAKES_ADDONS_SINCE


def read_uki(file: IO[bytes], size_bytes: int) -> Uki:
    """Find the sections of a UKI.

    Of an image with several profiles, the first is read. Raises ``BadImageError`` for a PE file
    that is damaged or has no ``.initrd``.
    """
    reader = Reader(file, 0, size_bytes)
    count, optional = _headers(reader)
    sections = _first_profile(reader, count)
    if ".initrd" not in sections:
        msg = "PE file without an .initrd section, no unified kernel image,"
        raise BadImageError(msg, offset=0)
    return Uki(
        initrd=sections[".initrd"],
        kernel=sections.get(".linux"),
        ucode=sections.get(".ucode"),
        uname=_text(file, sections.get(".uname"), most_bytes=256),
        command_line=_text(file, sections.get(".cmdline"), most_bytes=4096),
        signed=_certificates(optional) is not None,
        pcr_signed=".pcrsig" in sections,
        stub=_stub(_text(file, sections.get(".sdmagic"), most_bytes=256)),
    )


def _stub(magic: str | None) -> int | None:
    found = _STUB.search(magic or "")
    return int(found[1]) if found else None


def sections_of_uki(file: IO[bytes], size_bytes: int) -> tuple[tuple[str, ByteRange], ...]:
    """Return all sections of a UKI with their names, in order; raises as ``read_uki`` does."""
    reader = Reader(file, 0, size_bytes)
    return tuple(_sections(reader, _headers(reader)[0]))


def _text(file: IO[bytes], section: ByteRange | None, *, most_bytes: int) -> str | None:
    if section is None:
        return None
    size = min(section.size_bytes, most_bytes)
    raw = Reader(file, section.offset, section.offset + size).read()
    text = raw.rstrip(b"\0\n").decode(errors="replace")
    return text if text.isprintable() else None


def _headers(reader: Reader) -> tuple[int, bytes]:
    """Return how many sections there are, and the optional header; leave the reader behind it."""
    dos = reader.exactly(_PE_OFFSET_FIELD + 4, "a PE file's header")
    reader.position = min(int.from_bytes(dos[_PE_OFFSET_FIELD:], "little"), reader.end)
    if reader.exactly(4, "a PE file's header") != _PE_MAGIC:
        msg = "no PE header"
        raise BadImageError(msg, offset=reader.position - 4)
    fields = _COFF_HEADER.unpack(reader.exactly(_COFF_HEADER.size, "a PE file's header"))
    return fields[1], reader.exactly(fields[5], "a PE file's header")


def _certificates(optional: bytes) -> ByteRange | None:
    start = _DIRECTORIES.get(optional[:2])
    if start is None:
        return None
    count = int.from_bytes(optional[start - 4 : start], "little")
    entry = optional[start + 8 * _CERTIFICATES : start + 8 * (_CERTIFICATES + 1)]
    if count <= _CERTIFICATES or len(entry) < 8 or not (any(entry[:4]) and any(entry[4:])):
        return None
    offset, size_bytes = struct.unpack("<II", entry)
    return ByteRange(offset=offset, size_bytes=size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeLayout:
    """What of a PE file its signatures are of: the stretches ``signed``, in this order.

    ``certificates``: where the signatures are, None without.
    """

    size_bytes: int
    certificates: ByteRange | None
    signed: tuple[ByteRange, ...]


def pe_layout(file: IO[bytes], size_bytes: int) -> PeLayout:
    """Return what is signed of a PE file; raises ``BadImageError`` for one that is damaged.

    Everything but the checksum, the entry that says where the signatures are, and these.
    """
    reader = Reader(file, 0, size_bytes)
    count, optional = _headers(reader)
    start = reader.position - len(optional)
    certificates = _certificates(optional)
    if certificates is None:
        return PeLayout(size_bytes=size_bytes, certificates=None, signed=())
    entry = start + _DIRECTORIES[optional[:2]] + 8 * _CERTIFICATES
    headers_end = int.from_bytes(optional[_HEADERS_SIZE], "little")
    cuts = [0, start + _CHECKSUM, start + _CHECKSUM + 4, entry, entry + 8, headers_end]
    table = [_SECTION_HEADER.unpack(reader.exactly(40, "a section table")) for _ in range(count)]
    stored = sorted((offset, size) for *_, size, offset in table if size)
    bounds = [*zip(cuts[::2], cuts[1::2], strict=True), *((at, at + n) for at, n in stored)]
    hashed = headers_end + sum(size for _, size in stored)
    bounds.append((hashed, certificates.offset))
    end = certificates.offset + certificates.size_bytes
    if end != size_bytes or any(not 0 <= low <= high <= size_bytes for low, high in bounds):
        msg = "PE file whose signatures are not behind everything else,"
        raise BadImageError(msg, offset=certificates.offset)
    signed = tuple(ByteRange(offset=low, size_bytes=high - low) for low, high in bounds)
    return PeLayout(size_bytes=size_bytes, certificates=certificates, signed=signed)


def _first_profile(reader: Reader, count: int) -> dict[str, ByteRange]:
    """Return name and place of each section, up to the second profile."""
    found: dict[str, ByteRange] = {}
    for name, part in _sections(reader, count):
        if name == _PROFILE and name in found:
            break
        found[name] = part
    return found


def _sections(reader: Reader, count: int) -> Iterator[tuple[str, ByteRange]]:
    """Yield name and place of each section; they are of no more bytes than the file has."""
    total_bytes = 0
    for _ in range(count):
        raw = reader.exactly(_SECTION_HEADER.size, "a PE file's section table")
        name, virtual, _, stored, offset = _SECTION_HEADER.unpack(raw)
        text = name.rstrip(b"\0").decode(errors="replace")
        size = min(virtual, stored) or stored
        if offset + size > reader.end:
            reader.position = reader.end
            reader.fail_truncated(f"the PE section {text!r}")
        total_bytes += size
        if total_bytes > reader.end:
            msg = "PE file whose sections overlap,"
            raise BadImageError(msg, offset=reader.position)
        yield text, ByteRange(offset=offset, size_bytes=size)
