"""The kernel modules and the firmware in an image."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.image.cpio import S_IFLNK, S_IFMT, S_IFREG
from initadvisor.image.findings import Limits, names_allowance, printable
from initadvisor.image.inventory import is_compressed, normalised
from initadvisor.image.purposes import purpose

if TYPE_CHECKING:
    from initadvisor.image.contents import FileKind
    from initadvisor.image.cpio_reader import Entry


_MODULE = re.compile(rb"lib/modules/([^/]+)/(?:.*/)?([^/]+)\.ko(?:\.\w+)?", re.DOTALL)
_FIRMWARE = re.compile(rb"lib/firmware/(.+?)(?:\.xz|\.zst)?", re.DOTALL)
_FILE_BYTES = 500
_MOST_NAMES = 64


def module_name(text: str) -> str:
    """Return a module's name as the kernel has it: with underscores."""
    return text.replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageModule:
    """A module, of a kernel's ``release``, or firmware, which has none.

    ``names``: of a module its own, of firmware all under which modules may ask for it, below
    lib/firmware, symbolic links included; none where it has too many, or other files are the same.
    ``path``: in the image, safe to print. ``stored_bytes``: its length where it keeps that in the
    image, because it was compressed before or nothing is compressed where it is; else None.
    """

    names: tuple[str, ...]
    path: str
    release: str | None
    kind: FileKind
    size_bytes: int
    stored_bytes: int | None
    compressed: bool


class ModuleListing:
    """Takes every entry of an image (``scan``); the last of a name counts."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._files: dict[bytes, ImageModule] = {}
        self._links: dict[bytes, bytes] = {}
        self._room = names_allowance((limits or Limits()).names_bytes)
        self._plain = True

    def begin_segment(self, codec: Codec) -> None:
        """Take note that the entries that follow come from a new segment."""
        self._plain = codec is Codec.CAT

    def visit(self, entry: Entry) -> None:
        """Take one entry; raises ``LimitReachedError`` for names beyond all measure."""
        kind = entry.mode & S_IFMT
        if kind not in {S_IFREG, S_IFLNK}:
            return
        path = normalised(entry.name).removeprefix(b"usr/")
        module = _MODULE.fullmatch(path)
        firmware = None if module else _FIRMWARE.fullmatch(path)
        if not module and not firmware:
            return
        self._room.take(len(path) + len(entry.head) + _FILE_BYTES)
        self._files.pop(path, None)
        self._links.pop(path, None)
        if kind == S_IFLNK:
            if firmware:
                self._links[path] = _target(path, entry.head)
            return
        directory, _, leaf = path.rpartition(b"/")
        compressed = is_compressed(entry.head)
        alone = module or entry.links <= 1
        self._files[path] = ImageModule(
            names=(module_name(printable(module[2])),) if module else ("",) if alone else (),
            path=printable(normalised(entry.name)),
            release=printable(module[1]) if module else None,
            kind=purpose(directory, leaf, entry.head),
            size_bytes=entry.size_bytes,
            stored_bytes=entry.size_bytes if self._plain or compressed else None,
            compressed=not self._plain,
        )

    def data(self, piece: bytes | memoryview) -> None:
        """Pass over what an entry holds."""

    def trailer(self) -> None:
        """Pass over a trailer."""

    def modules(self) -> tuple[ImageModule, ...]:
        """Return what was found, in the order of the image."""
        leading: dict[bytes, list[bytes]] = defaultdict(list)
        for link, target in self._links.items():
            leading[target].append(link)
        return tuple(
            file
            if file.release or not file.names
            else replace(file, names=_firmware_names(path, leading))
            for path, file in self._files.items()
        )


def _target(link: bytes, target: bytes) -> bytes:
    """Return the path a symbolic link leads to, without a leading ``usr``."""
    path = posixpath.normpath(posixpath.join(b"/", posixpath.dirname(link), target))
    return path.lstrip(b"/").removeprefix(b"usr/")


def _firmware_names(path: bytes, leading: dict[bytes, list[bytes]]) -> tuple[str, ...]:
    """Return by which names a file can be asked for; ``leading``: links, by where they lead."""
    found = [path]
    for one in found:
        end = len(one)
        while end > 0:
            found += [
                other
                for link in leading.get(one[:end], ())
                if (other := link + one[end:]) not in found
            ]
            if len(found) > _MOST_NAMES:
                return ()
            end = one.rfind(b"/", 0, end)
    names = (_FIRMWARE.fullmatch(one) for one in found)
    return tuple(sorted({printable(name[1]) for name in names if name}))
