"""What an unpacked image would look like, as far as it decides what the kernel drops.

The kernel unpacks an entry by its path: where the directory does not exist, opening the file fails
and init/initramfs.c goes on without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.image.contents import FindingKind
from initadvisor.image.cpio import S_IFDIR, S_IFLNK, S_IFMT
from initadvisor.image.findings import LimitReachedError

if TYPE_CHECKING:
    from initadvisor.image.cpio_reader import Entry


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
        self._room = names_bytes
        self._steps = _STEPS_MAX

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
                return FindingKind.DROPPED_LINK if directory is not None else _MISSING
            self._take(_NODE_BYTES)
        if directory is None:
            return _MISSING
        self._put(b"%b/%b" % (directory, leaf) if directory else leaf, kind, entry.head)
        return None

    def trailer(self) -> None:
        """Forget hard links, as the kernel does at each trailer."""
        self._linked.clear()

    def _put(self, path: bytes, kind: int, target: bytes) -> None:
        if kind == S_IFDIR:
            self._take(len(path) + _NODE_BYTES)
            self._nodes[path] = None
        elif kind == S_IFLNK:
            self._take(len(path) + len(target) + _NODE_BYTES)
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
        self._steps -= len(parts)
        if self._steps < 0:
            msg = "symbolic links in symbolic links without end"
            raise LimitReachedError(msg)
        return parts

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            msg = "more names than fit the memory set aside for them"
            raise LimitReachedError(msg)


_MISSING = FindingKind.MISSING_PARENT


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
