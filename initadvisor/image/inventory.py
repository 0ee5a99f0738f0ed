"""What the room in an image goes to, what its files tell about where it comes from.

And what an unpacked image would look like, as far as it decides what the kernel drops: it unpacks
an entry by its path, and where the directory does not exist, opening the file fails and
init/initramfs.c goes on without a word.
"""

from __future__ import annotations

import functools
import heapq
import re
from typing import TYPE_CHECKING, NamedTuple

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import FileKind, FindingKind, KindUse, StoredFile
from initadvisor.image.cpio import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from initadvisor.image.findings import Allowance, Findings, names_allowance, printable

if TYPE_CHECKING:
    from initadvisor.image.cpio_reader import Entry


_LARGEST = 10
_RELEASES_MAX = 64
_ELF = b"\x7fELF"
_LIBRARY = re.compile(rb"\.so(\.|$)")

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


class _Directory(NamedTuple):
    """What a file's directory tells about it."""

    kind: FileKind
    release: str | None
    generator: str | None
    early: bool


class _Use:
    """Counters of one kind of file; see ``KindUse``."""

    __slots__ = ("compressed_bytes", "early_compressed_bytes", "files", "size_bytes")

    def __init__(self) -> None:
        self.files = self.size_bytes = self.compressed_bytes = self.early_compressed_bytes = 0


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
        self._largest: list[tuple[int, bytes]] = []
        self._findings = Findings()
        self._plain = self._in_front = True

    def begin_segment(self, codec: Codec, findings: Findings) -> None:
        """Say that the entries that follow come from a new segment."""
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
        if entry.mode & S_IFMT == S_IFREG:
            self._count(entry, place, path, leaf)
        if mark := _MARKS.get(path) or place.generator:
            self.generator = self.generator or mark
        if place.early and self._in_front:
            self.microcode = True

    def kinds(self) -> tuple[KindUse, ...]:
        """Return the account of every kind."""
        return tuple(
            KindUse(
                kind=kind,
                files=use.files,
                size_bytes=use.size_bytes,
                compressed_bytes=use.compressed_bytes,
                early_compressed_bytes=use.early_compressed_bytes,
            )
            for kind, use in self._uses.items()
        )

    def largest(self) -> tuple[StoredFile, ...]:
        """Return the largest files, the largest first."""
        return tuple(
            StoredFile(path=printable(name), size_bytes=size)
            for size, name in sorted(self._largest, key=lambda file: (-file[0], file[1]))
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

    def _count(self, entry: Entry, place: _Directory, path: bytes, leaf: bytes) -> None:
        size = entry.size_bytes
        kind = place.kind
        if kind is FileKind.OTHER and (entry.head.startswith(_ELF) or _LIBRARY.search(leaf)):
            kind = FileKind.PROGRAMS
        file_system = _file_system(entry.head, leaf)
        self.file_system = self.file_system or file_system
        use = self._uses[kind]
        use.files += 1
        use.size_bytes += size
        if file_system or entry.head.startswith(_COMPRESSED):
            use.compressed_bytes += size
            use.early_compressed_bytes += size if self._plain else 0
        if place.release and (
            place.release in self._releases or len(self._releases) < _RELEASES_MAX
        ):
            self._releases[place.release] = self._releases.get(place.release, 0) + 1
        if len(self._largest) < _LARGEST:
            heapq.heappush(self._largest, (size, path))
        elif size > self._largest[0][0]:
            heapq.heapreplace(self._largest, (size, path))


def kind_by_path(path: str) -> FileKind:
    """Return what a path tells of a file's kind; ``OTHER``, too, where only its content would."""
    name = path.encode(errors="replace")
    kind = _directory(name.rpartition(b"/")[0]).kind
    return FileKind.PROGRAMS if kind is FileKind.OTHER and _LIBRARY.search(name) else kind


@functools.lru_cache(maxsize=256)
def _directory(path: bytes) -> _Directory:
    parts = path.removeprefix(b"usr/").split(b"/")
    release, generator, kind = None, None, FileKind.OTHER
    if parts[:2] == [b"lib", b"modules"]:
        kind = FileKind.MODULES
        release = printable(parts[2]) if len(parts) > 2 else None
    elif parts[:2] == [b"lib", b"firmware"] or path.startswith(b"kernel/"):
        kind = FileKind.FIRMWARE
    elif not {b"bin", b"sbin", b"libexec"}.isdisjoint(parts):
        kind = FileKind.PROGRAMS
    if parts[:2] == [b"lib", b"dracut"]:
        generator = "dracut"
    elif path == b"scripts/init-top":
        generator = "initramfs-tools"
    return _Directory(kind, release, generator, early=path in _EARLY)


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
