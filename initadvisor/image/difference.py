"""What two images unpack to, and in what that differs.

How it is stored does not count: in which segment, in which order, with what time stamps and inode
numbers. The one exception are files that the kernel itself looks for in front of everything,
uncompressed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from initadvisor.core.codecs import Codec
from initadvisor.image.cpio import S_IFLNK, S_IFMT, S_IFREG
from initadvisor.image.findings import Limits, names_allowance, printable
from initadvisor.image.inventory import normalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from initadvisor.image.cpio_reader import Entry


class Aspect(StrEnum):
    """In what an entry is another one than before."""

    TYPE = "type"
    MODE = "mode"
    OWNER = "owner"
    SIZE = "size"
    CONTENT = "content"
    LINK_TARGET = "link target"
    DEVICE = "device"
    PLACE = "place"
    """It stands in front and uncompressed, where the kernel looks for it, in one of them only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedEntry:
    """An entry that both images have; ``path`` is safe to print."""

    path: str
    aspects: tuple[Aspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDifference:
    """Paths, safe to print and in their order, that only one image has, and those that changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[ChangedEntry, ...] = ()

    @property
    def removed_files(self) -> tuple[str, ...]:
        """What was removed, without the directories that went with it."""
        parents = {path.rpartition("/")[0] for path in self.removed}
        return tuple(path for path in self.removed if path not in parents)

    @property
    def count(self) -> int:
        """How many paths differ."""
        return len(self.added) + len(self.removed) + len(self.changed)


_SEARCHED_IN_FRONT = b"kernel/"
"""Where microcode and ACPI tables are (Documentation/arch/x86/microcode.rst)."""

_ENTRY_BYTES = 500
_EMPTY = hashlib.sha256().digest()


class _Content(NamedTuple):
    """The data of a regular file, shared by all the names it has."""

    size_bytes: int
    sha256: bytes


class _Listed(NamedTuple):
    """One path: what it is, and whether it stands in front uncompressed where that matters."""

    mode: int
    owner: tuple[int, int]
    content: _Content
    target: bytes
    node: tuple[int, int]
    in_front: bool


_NONE = _Content(0, _EMPTY)


class ImageListing:
    """Takes every entry of an image with its data (``scan``); the last of a name counts."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._paths: dict[bytes, _Listed] = {}
        self._room = names_allowance((limits or Limits()).names_bytes)
        self._linked: dict[tuple[tuple[int, int], int], list[_Content]] = {}
        self._shared: dict[bytes, list[_Content]] = {}
        self._current: Entry | None = None
        self._digest = hashlib.sha256()
        self._in_front = True

    def begin_segment(self, codec: Codec) -> None:
        """Take note that the entries that follow come from a new segment."""
        self.trailer()
        self._in_front = self._in_front and codec is Codec.CAT

    def visit(self, entry: Entry) -> None:
        """Take one entry; raises ``LimitReachedError`` for names beyond all measure."""
        self._finish()
        self._room.take(len(entry.name) + len(entry.head) + _ENTRY_BYTES)
        self._current = entry
        self._digest = hashlib.sha256()

    def data(self, piece: bytes | memoryview) -> None:
        """Take a piece of the data of the last entry; it is valid during the call."""
        self._digest.update(piece)

    def trailer(self) -> None:
        """Forget which names are one file, as the kernel does at each trailer."""
        self._finish()
        self._linked.clear()

    def paths(self, *, ignored: Collection[str] = ()) -> dict[bytes, _Listed]:
        """Return what is listed but for some paths."""
        self._finish()
        left_out = {path.encode() for path in ignored}
        return {
            path: listed._replace(content=self._shared[path][0]) if path in self._shared else listed
            for path, listed in self._paths.items()
            if path not in left_out
        }

    def _finish(self) -> None:
        """Enter the last entry, whose data has been seen by now."""
        entry, self._current = self._current, None
        if entry is None:
            return
        path, kind = normalised(entry.name), entry.mode & S_IFMT
        content = _NONE
        if kind == S_IFREG:
            content = _Content(entry.size_bytes, self._digest.digest())
        self._paths[path] = _Listed(
            mode=entry.mode,
            owner=entry.owner,
            content=content,
            target=entry.head if kind == S_IFLNK else b"",
            node=entry.node,
            in_front=self._in_front or not path.startswith(_SEARCHED_IN_FRONT),
        )
        self._shared.pop(path, None)
        if kind == S_IFREG and entry.links > 1:
            group = self._linked.setdefault((entry.device, entry.inode), [content])
            if entry.size_bytes:  # the content stands with one of the names only
                group[:] = [content]
            self._shared[path] = group


def difference(
    before: ImageListing, after: ImageListing, *, ignored: Collection[str] = ()
) -> ImageDifference:
    """Return what ``after`` has otherwise than ``before``; ``ignored`` are paths inside."""
    old, new = before.paths(ignored=ignored), after.paths(ignored=ignored)
    return ImageDifference(
        added=tuple(printable(path) for path in sorted(new.keys() - old.keys())),
        removed=tuple(printable(path) for path in sorted(old.keys() - new.keys())),
        changed=tuple(
            ChangedEntry(path=printable(path), aspects=tuple(_aspects(old[path], new[path])))
            for path in sorted(old.keys() & new.keys())
            if old[path] != new[path]
        ),
    )


def _aspects(old: _Listed, new: _Listed) -> Iterator[Aspect]:
    if old.mode & S_IFMT != new.mode & S_IFMT:
        yield Aspect.TYPE
    if old.mode & ~S_IFMT != new.mode & ~S_IFMT:
        yield Aspect.MODE
    if old.owner != new.owner:
        yield Aspect.OWNER
    if old.content.size_bytes != new.content.size_bytes:
        yield Aspect.SIZE
    elif old.content.sha256 != new.content.sha256:
        yield Aspect.CONTENT
    if old.target != new.target:
        yield Aspect.LINK_TARGET
    if old.node != new.node:
        yield Aspect.DEVICE
    if old.in_front != new.in_front:
        yield Aspect.PLACE
