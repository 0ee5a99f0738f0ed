"""What the room in an image goes to, what its files tell about where it comes from.

And what an unpacked image would look like, as far as it decides what the kernel drops: it unpacks
an entry by its path, and where the directory does not exist, opening the file fails and
init/initramfs.c goes on without a word.
"""

from __future__ import annotations

import functools
import heapq
import zlib
from typing import TYPE_CHECKING, NamedTuple

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import FileKind, FindingKind, KindUse, Repeated, StoredFile
from initadvisor.image.cpio import (
    HEADER_BYTES,
    S_IFDIR,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    name_area_bytes,
)
from initadvisor.image.findings import Allowance, Findings, names_allowance, printable
from initadvisor.image.purposes import purpose

if TYPE_CHECKING:
    from initadvisor.image.cpio_reader import Entry


_LARGEST = 10
_RELEASES_MAX = 64
_REPEATED_LEAST_BYTES = 4096
_REPEATED_MAX = 1 << 16
"""More contents than this are not remembered; images have some thousand files."""

_EARLY = (b"kernel/x86/microcode", b"kernel/firmware/acpi")
"""Directories the kernel searches in the image itself, before anything is unpacked: entries need no
parent, but must stand in front and uncompressed (Documentation/arch/x86/microcode.rst,
Documentation/admin-guide/acpi/initrd_table_override.rst)."""

_MARKS = {
    b"buildconfig": "mkinitcpio",
    b"conf/initramfs.conf": "initramfs-tools",
    b"scripts/init-top": "initramfs-tools",
}
_COMPRESSED = (b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")
"""What files compressed with gzip, bzip2, xz, lz4 and zstd start with."""


def is_compressed(head: bytes) -> bool:
    """Tell whether a file that begins so is compressed already."""
    return head.startswith(_COMPRESSED)


class _Directory(NamedTuple):
    """What a file's directory tells about it."""

    release: str | None
    generator: str | None
    early: bool


class _Use:
    """Counters of one kind of file, see ``KindUse``; ``waiting`` is what ``_Shares`` counts."""

    __slots__ = (
        "compressed_bytes",
        "decompressed_bytes",
        "early_compressed_bytes",
        "files",
        "size_bytes",
        "stored_bytes",
        "unpacked_bytes",
        "waiting",
        "waiting_compressed",
    )

    def __init__(self) -> None:
        self.files = self.size_bytes = self.compressed_bytes = self.early_compressed_bytes = 0
        self.unpacked_bytes = self.decompressed_bytes = self.stored_bytes = 0
        self.waiting = self.waiting_compressed = 0


class Inventory:
    """Takes each entry of an image, segment by segment."""

    def __init__(self, names_bytes: int) -> None:
        """``names_bytes`` limits the memory for the names of directories and links."""
        self.generator: str | None = None
        self.file_system: str | None = None
        self.microcode = False
        self._releases: dict[str, int] = {}
        self._tree = Tree(names_bytes)
        self._uses = {kind: _Use() for kind in FileKind}
        self._largest: dict[FileKind, list[tuple[int, bytes]]] = {kind: [] for kind in FileKind}
        self._findings = Findings()
        self._plain = self._in_front = True
        self._owner, self._owner_compressed = self._uses[FileKind.OTHER], False
        self._counted = self._owner_end = self._read_to = 0
        self._repeats = _Repeats()

    def begin_segment(self, codec: Codec, findings: Findings, offset: int) -> None:
        """Say that the entries that follow come from a new segment, at this offset in the file."""
        self._counted = self._owner_end = 0
        self._read_to = offset
        self._plain = codec is Codec.CAT
        self._in_front = self._in_front and self._plain
        self._findings = findings

    def trailer(self) -> None:
        """Take a trailer."""
        self._tree.trailer()

    def visit(self, entry: Entry) -> None:
        """Take one entry."""
        path = normalised(entry.name)
        directory, _, leaf = path.rpartition(b"/")
        place = _directory(directory)
        self._check(entry, path, place)
        self._count_bytes(entry.offset)
        self._owner, self._owner_compressed = self._uses[FileKind.OTHER], False
        self._owner_end = entry.offset + _entry_bytes(entry)
        if entry.mode & S_IFMT == S_IFREG:
            self._count(entry, place, path, purpose(directory, leaf, entry.head))
            self._repeats.begin(entry)
        if mark := _MARKS.get(path) or place.generator:
            self.generator = self.generator or mark
        if place.early and self._in_front:
            self.microcode = True

    def data(self, piece: bytes | memoryview) -> None:
        """Take what an entry holds, or the next part of it."""
        self._repeats.data(piece)

    def checkpoint(self, unpacked_to: int, read_to: int) -> None:
        """Share out what was read of the file, up to ``read_to``, among what was unpacked from it.

        ``unpacked_to``: how far that goes in the segment's content. What was read without anything
        having come out of it yet is left for the next time.
        """
        self._count_bytes(unpacked_to)
        uses = [use for use in self._uses.values() if use.waiting]
        out, compressed = (sum(u.waiting for u in uses), sum(u.waiting_compressed for u in uses))
        size = read_to - self._read_to
        if not out or size < 0:
            return
        self._read_to = read_to
        # What was compressed before keeps its length, as far as there is room for that.
        kept = min(1.0, size / compressed) if compressed else 0.0
        rest = (size - kept * compressed) / (out - compressed) if out > compressed else 0.0
        if rest > kept:
            kept = rest = size / out
        self._repeats.share(kept, rest, plain=self._plain)
        upto, given = 0.0, 0
        for use in uses:
            upto += kept * use.waiting_compressed + rest * (use.waiting - use.waiting_compressed)
            end = size if use is uses[-1] else min(round(upto), size)
            use.stored_bytes += end - given
            given = end
            use.unpacked_bytes += use.waiting
            use.decompressed_bytes += 0 if self._plain else use.waiting
            use.waiting = use.waiting_compressed = 0

    def _count_bytes(self, position: int) -> None:
        """Count the segment's content up to a position for the entry before it.

        What is behind that entry's end is of no file: trailers, zeros, what the kernel skips.
        """
        if (own := min(position, self._owner_end) - self._counted) > 0:
            self._owner.waiting += own
            self._owner.waiting_compressed += own if self._owner_compressed else 0
            self._counted += own
        if position > self._counted:
            self._uses[FileKind.OTHER].waiting += position - self._counted
            self._counted = position

    def kinds(self, image_bytes: int) -> tuple[KindUse, ...]:
        """Return the account of every kind that is there, in an image of this size.

        What no file is stored in counts as other: padding, junk, boot configuration.
        """
        left = image_bytes - sum(use.stored_bytes for use in self._uses.values())
        return tuple(
            KindUse(
                kind=kind,
                files=use.files,
                size_bytes=use.size_bytes,
                compressed_bytes=use.compressed_bytes,
                early_compressed_bytes=use.early_compressed_bytes,
                unpacked_bytes=use.unpacked_bytes,
                decompressed_bytes=use.decompressed_bytes,
                stored_bytes=use.stored_bytes + (left if kind is FileKind.OTHER else 0),
            )
            for kind, use in self._uses.items()
            if use.unpacked_bytes or kind is FileKind.OTHER
        )

    def repeated(self) -> Repeated:
        """Return the account of what is there more than once."""
        return self._repeats.found()

    def largest(self) -> tuple[StoredFile, ...]:
        """Return the largest files of each kind, the largest first."""
        files = [(size, name, kind) for kind, heap in self._largest.items() for size, name in heap]
        return tuple(
            StoredFile(path=printable(name), size_bytes=size, kind=kind)
            for size, name, kind in sorted(files, key=lambda file: (-file[0], file[1]))
        )

    def release(self) -> str | None:
        """Return the kernel release most files belong to."""
        return max(self._releases, key=lambda release: self._releases[release], default=None)

    def _check(self, entry: Entry, path: bytes, place: _Directory) -> None:
        dropped = self._tree.place(path, entry)
        name, findings = entry.name, self._findings
        if place.early:
            if not self._in_front:
                findings.add(FindingKind.LATE_MICROCODE, entry.offset, name)
        elif dropped:
            findings.add(dropped, entry.offset, name)
        if path is not name:
            if name.startswith(b"/"):
                findings.add(FindingKind.ABSOLUTE, entry.offset, name)
            if b".." in name.split(b"/"):
                findings.add(FindingKind.DOT_DOT, entry.offset, name)
        if place.release and place.release not in self._releases and self._releases:
            findings.add(FindingKind.SEVERAL_KERNELS, entry.offset, name)

    def _count(self, entry: Entry, place: _Directory, path: bytes, kind: FileKind) -> None:
        size = entry.size_bytes
        file_system = _file_system(entry.head, path.rpartition(b"/")[2])
        self.file_system = self.file_system or file_system
        self._owner = use = self._uses[kind]
        use.files += 1
        use.size_bytes += size
        if file_system or is_compressed(entry.head):
            self._owner_compressed = True
            use.compressed_bytes += size
            use.early_compressed_bytes += size if self._plain else 0
        if place.release and (
            place.release in self._releases or len(self._releases) < _RELEASES_MAX
        ):
            self._releases[place.release] = self._releases.get(place.release, 0) + 1
        largest = self._largest[kind]
        if len(largest) < _LARGEST:
            heapq.heappush(largest, (size, path))
        elif size > largest[0][0]:
            heapq.heapreplace(largest, (size, path))


def _entry_bytes(entry: Entry) -> int:
    """Return what an entry takes in an archive: header, name, data, padding."""
    size = HEADER_BYTES + name_area_bytes(len(entry.name) + 1) + entry.size_bytes
    return size + -size % 4


class _Repeats:
    """Finds files with the content of an earlier one: of the same length, with the same CRC-32."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()
        self._size = self._left = self._crc = 0
        self._compressed = False
        self._waiting = self._waiting_compressed = 0
        self._files = self._size_bytes = self._decompressed_bytes = 0
        self._stored_bytes = 0.0

    def begin(self, entry: Entry) -> None:
        """Take a regular file, whose data follows."""
        wanted = entry.links <= 1 and entry.size_bytes >= _REPEATED_LEAST_BYTES
        self._size = self._left = entry.size_bytes if wanted else 0
        self._compressed = is_compressed(entry.head)
        self._crc = 0

    def data(self, piece: bytes | memoryview) -> None:
        """Take some of the data."""
        if not self._left:
            return
        self._crc = zlib.crc32(piece, self._crc)
        self._left -= len(piece)
        if self._left:
            return
        content = (self._size, self._crc)
        if content in self._seen:
            self._files += 1
            self._size_bytes += self._size
            if self._compressed:
                self._waiting_compressed += self._size
            else:
                self._waiting += self._size
        elif len(self._seen) < _REPEATED_MAX:
            self._seen.add(content)

    def share(self, kept: float, rest: float, *, plain: bool) -> None:
        """Say which part of their length files take in the image, see ``Inventory.checkpoint``."""
        self._stored_bytes += kept * self._waiting_compressed + rest * self._waiting
        self._decompressed_bytes += 0 if plain else self._waiting + self._waiting_compressed
        self._waiting = self._waiting_compressed = 0

    def found(self) -> Repeated:
        """Return the account of all such files."""
        return Repeated(
            files=self._files,
            size_bytes=self._size_bytes,
            decompressed_bytes=self._decompressed_bytes,
            stored_bytes=round(self._stored_bytes),
        )


@functools.lru_cache(maxsize=256)
def _directory(path: bytes) -> _Directory:
    parts = path.removeprefix(b"usr/").split(b"/")
    release, generator = None, None
    if parts[:2] == [b"lib", b"modules"]:
        release = printable(parts[2]) if len(parts) > 2 else None
    if parts[:2] == [b"lib", b"dracut"]:
        generator = "dracut"
    elif path == b"scripts/init-top":
        generator = "initramfs-tools"
    return _Directory(release, generator, early=path in _EARLY)


def _file_system(head: bytes, leaf: bytes) -> str | None:
    """Name the file system in a file: by its magic, or where that is too far in, by its name."""
    if head.startswith(b"hsqs"):
        return "squashfs"
    return "erofs" if leaf == b"erofs-root.img" else None


_BUILT_IN = (b"", b"dev", b"root")
"""Directories of the kernel's built-in archive (usr/default_cpio_list), unpacked before."""

_LINKS_FOLLOWED_MAX = 40  # MAXSYMLINKS, include/linux/namei.h
_STEPS_MAX = 1 << 22
_NODE_BYTES = 200


class Tree:
    """The directories and symbolic links that exist so far; other files cannot hold any."""

    def __init__(self, names_bytes: int) -> None:
        """``names_bytes`` limits the memory this may take."""
        self._nodes: dict[bytes, bytes | None] = dict.fromkeys(_BUILT_IN)
        self._linked: dict[tuple[tuple[int, int], int, int], bool] = {}
        self._room = names_allowance(names_bytes)
        self._steps = Allowance(_STEPS_MAX, "symbolic links in symbolic links without end")

    def place(self, path: bytes, entry: Entry) -> FindingKind | None:
        """Add an entry at its normalised path; return why the kernel drops it, None if it does not.

        Raises ``LimitReachedError`` when this takes too much memory or too long.
        """
        parent, _, leaf = path.rpartition(b"/")
        kind = entry.mode & S_IFMT
        directory = parent if self._nodes.get(parent, b"") is None else self._resolve(parent)
        if entry.links > 1 and kind not in {S_IFDIR, S_IFLNK}:
            key = (entry.device, entry.inode, kind)
            if not self._linked.setdefault(key, directory is not None):
                return (
                    FindingKind.DROPPED_LINK
                    if directory is not None
                    else FindingKind.MISSING_PARENT
                )
            self._room.take(_NODE_BYTES)
        if directory is None:
            return FindingKind.MISSING_PARENT
        self._put(b"%b/%b" % (directory, leaf) if directory else leaf, kind, entry.head)
        return None

    def trailer(self) -> None:
        """Forget hard links, as the kernel does at each trailer."""
        self._linked.clear()

    def _put(self, path: bytes, kind: int, target: bytes) -> None:
        if kind == S_IFDIR:
            self._room.take(len(path) + _NODE_BYTES)
            self._nodes[path] = None
        elif kind == S_IFLNK:
            self._room.take(len(path) + len(target) + _NODE_BYTES)
            self._nodes[path] = target
        elif path:
            self._nodes.pop(path, None)

    def _resolve(self, path: bytes) -> bytes | None:
        """Return the directory that ``path`` leads to through symbolic links, None for none."""
        here: list[bytes] = []
        left = self._parts(path)
        followed = 0
        while left:
            part = left.pop()
            if part in {b"", b"."}:
                continue
            if part == b"..":
                del here[-1:]
                continue
            target = self._nodes.get(b"/".join([*here, part]), b"")
            if target is None:
                here.append(part)
                continue
            followed += 1
            if not target or followed > _LINKS_FOLLOWED_MAX:
                return None
            if target.startswith(b"/"):
                here.clear()
            left += self._parts(target)
        return b"/".join(here)

    def _parts(self, path: bytes) -> list[bytes]:
        """Return the components of a path, the last one first."""
        parts = path.split(b"/")[::-1]
        self._steps.take(len(parts))
        return parts


def normalised(name: bytes) -> bytes:
    """Return a name without what means nothing: ``./``, double and outer slashes; mostly itself.

    A ``..`` takes away the component before it, at the root nothing.
    """
    if not (name.startswith((b"/", b".")) or b"//" in name or b"/." in name or name[-1:] == b"/"):
        return name
    parts: list[bytes] = []
    for part in name.split(b"/"):
        if part == b"..":
            del parts[-1:]
        elif part not in {b"", b"."}:
            parts.append(part)
    return b"/".join(parts)
