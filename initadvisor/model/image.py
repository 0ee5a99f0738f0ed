"""What a reader finds in an initramfs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.model.codec import Codec


class FileKind(StrEnum):
    """What the room in an initramfs goes to."""

    MODULES = "kernel modules"
    FIRMWARE = "firmware"
    PROGRAMS = "binaries and libraries"
    OTHER = "other files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One run of the file that the kernel unpacks in one go: a plain cpio or a compressed stream.

    ``offset`` and ``size_bytes`` locate it in the file, without the zero padding around it;
    ``unpacked_bytes`` is its length after decompression (for a plain cpio: ``size_bytes``);
    ``entries`` counts its cpio entries without the trailers.
    """

    offset: int
    size_bytes: int
    codec: Codec
    unpacked_bytes: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in the image: its path as stored, and its length."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KindUse:
    """How much of the unpacked room one kind of file takes.

    ``compressed_bytes`` is the part of it that was already compressed (``.ko.zst``, ``.fw.xz``)
    before the image's own compression.
    """

    kind: FileKind
    files: int
    size_bytes: int
    compressed_bytes: int


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
