"""What a reader finds in an initramfs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.codecs import Codec
    from initadvisor.image.stream_facts import StreamFacts


LARGEST_BYTES = 4 << 30
"""Where loaders tell the kernel in 32 bits how large its initramfs is (ramdisk_size in
Documentation/arch/x86/boot.rst), and no machine has one of that size."""


def too_large(size_bytes: int) -> str:
    """Say why a file of this size cannot be an initramfs."""
    return f"{size_bytes / 1e9:.0f} GB are more than loaders load"


class FileKind(StrEnum):
    """What a file in an initramfs is for; ``image/purposes.py`` has the rules."""

    STORAGE = "storage"
    FILE_SYSTEMS = "file systems"
    GRAPHICS = "graphics"
    GRAPHICS_FIRMWARE = "graphics firmware"
    NETWORK = "network"
    NETWORK_FIRMWARE = "network firmware"
    CRYPTO = "crypto"
    SOUND = "sound"
    INPUT = "input"
    MODULES = "other kernel modules"
    FIRMWARE = "other firmware"
    MICROCODE = "microcode"
    HWDB = "hardware database"
    LIBRARIES = "libraries"
    PROGRAMS = "programs"
    SPLASH = "fonts and splash"
    OTHER = "other"


class FindingKind(StrEnum):
    """Something about an archive that a kernel refuses, or that its owner would want to know."""

    MISSING_PARENT = "missing-parent"
    """The entry's directory is not in the archive before it: the kernel drops it silently."""
    DROPPED_LINK = "dropped-link"
    """A hard link to an entry that the kernel dropped; it goes the same way."""
    DOT_DOT = "dot-dot"
    """A name with a ``..`` component."""
    ABSOLUTE = "absolute"
    """A name that starts with a slash; the kernel takes it for the one without."""
    SKIPPED = "skipped"
    """A header the kernel jumps over: no name, a name or link target over 4096 bytes, or data on
    something that is no regular file."""
    UNTERMINATED_NAME = "unterminated-name"
    """The stored name does not end with a NUL byte."""
    BAD_CHECKSUM = "bad-checksum"
    """The data of a crc (070702) entry does not add up to what its header says."""
    CRC_FORMAT = "crc-format"
    """The archive has crc (070702) headers."""
    NO_TRAILER = "no-trailer"
    """The archive ends without a ``TRAILER!!!`` entry: it may have been cut off."""
    MISALIGNED = "misaligned"
    """Something starts at an offset that is no multiple of four where the kernel demands it."""
    UNPADDED_END = "unpadded-end"
    """A compressed archive ends before its last entry is padded to a multiple of four bytes."""
    LEADING_ZEROS = "leading-zeros"
    """The first archive of the image is compressed and starts with zero bytes."""
    EMPTY = "empty"
    """The first archive of the image is compressed and unpacks to nothing."""
    SPLIT = "split"
    """One archive is spread over several compressed streams."""
    LATE_MICROCODE = "late-microcode"
    """Microcode or ACPI tables that the kernel looks for in front, uncompressed, but are not."""
    SEVERAL_KERNELS = "several-kernels"
    """There are modules of more than one kernel release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFinding:
    """How often something was found in a segment, and the first case of it.

    ``offset``: of the entry in the file, for a compressed segment in its unpacked content.
    ``example``: the name of the entry, made safe to print; empty where there is none.
    """

    kind: FindingKind
    count: int
    offset: int
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One run of the file that the kernel unpacks in one go: a plain cpio or a compressed stream.

    ``offset`` and ``size_bytes`` locate it in the file, without the zero padding around it;
    ``padding_bytes`` counts the zeros between it and what comes next. ``unpacked_bytes`` is its
    length after decompression (for a plain cpio: ``size_bytes``); ``entries`` counts its cpio
    entries without the trailers. ``streams`` is how many compressed streams in a row hold this one
    archive (the kernel wants one); ``facts`` has each different description among them once.
    """

    offset: int
    size_bytes: int
    codec: Codec
    unpacked_bytes: int
    entries: int
    padding_bytes: int = 0
    streams: int = 1
    facts: tuple[StreamFacts, ...] = ()
    findings: tuple[ImageFinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in the image: its path as stored but safe to print, its length, what it is for."""

    path: str
    size_bytes: int
    kind: FileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class KindUse:
    """What the files of one kind take.

    ``size_bytes`` is their length, ``compressed_bytes`` the part of it that was already compressed
    (``.ko.zst``, ``.fw.xz``) before the image's own compression, ``early_compressed_bytes`` what of
    that lies in plain segments, where the image's compression does not touch it again.

    With their headers and padding they take ``unpacked_bytes``, of which ``decompressed_bytes``
    come out of compressed segments, and ``stored_bytes`` of the image. Of the last the sum over all
    kinds is the image's size; within what a decompressor takes in at a time it is shared out by
    length, but files that were compressed before are taken to keep theirs.
    """

    kind: FileKind
    files: int
    size_bytes: int
    compressed_bytes: int
    early_compressed_bytes: int
    unpacked_bytes: int
    decompressed_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Files, of a page or more, with the content of an earlier one; no hard links.

    Fields as of ``KindUse``, which counts them, too.
    """

    files: int
    size_bytes: int
    decompressed_bytes: int
    stored_bytes: int


_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRange:
    """A run of bytes in the file."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageContents:
    """What is in an image; offsets count from the start of the file, also in a UKI.

    ``kinds`` has every kind of file that is there and the rest (``OTHER``), ``largest`` up to ten
    files of each, the largest first; ``repeated`` what is there more than once. ``kernel_release``
    is that of the modules inside (the one with most of them), or of a UKI. ``generator`` names the
    program whose marks were recognised: ``mkinitcpio``, ``dracut``, ``initramfs-tools``.
    ``file_system`` names a file system image inside that hides what it holds from this account
    (``squashfs`` or ``erofs``: what dracut's modules of that name make). ``microcode``: there is
    microcode where the kernel looks for it. ``initrd``: the part of the file that is the initramfs,
    for a UKI its ``.initrd`` section. ``junk``: what is left after the last segment and is none.
    ``bootconfig``: boot configuration at the end, which the kernel cuts off before it unpacks.
    ``followed``: a UKI's stub loads more behind it.
    """

    segments: tuple[Segment, ...]
    kinds: tuple[KindUse, ...]
    largest: tuple[StoredFile, ...]
    repeated: Repeated
    kernel_release: str | None
    generator: str | None
    file_system: str | None
    microcode: bool
    initrd: ByteRange
    uki: bool = False
    junk: ByteRange | None = None
    bootconfig: ByteRange | None = None
    followed: bool = False

    @property
    def main(self) -> Segment:
        """The segment that a candidate recompresses: the last one."""
        return self.segments[-1]

    @property
    def ten_largest(self) -> tuple[StoredFile, ...]:
        """The largest files, whatever they are for."""
        return self.largest[:10]

    @property
    def unpacked_bytes(self) -> int:
        """The length of all segments after decompression."""
        return sum(segment.unpacked_bytes for segment in self.segments)

    @property
    def room_bytes(self) -> int:
        """How much memory it takes unpacked, at most: every entry fills up to a page of its own."""
        return self.unpacked_bytes + _PAGE_BYTES * sum(s.entries for s in self.segments)


class Verdict(StrEnum):
    """Would this kernel unpack these bytes?"""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """The verdict and, where it is not a plain yes, why; ``notes`` do not change the verdict."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
