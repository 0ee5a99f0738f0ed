"""A small machine: images and loader entries on one file system, all else on another."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from initadvisor.host import Host
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole

CONFIGURATION = "/etc/generator.conf"
ROLES = {
    "/boot/initrd.img": FileRole.IMAGE,
    "/boot/fallback.img": FileRole.IMAGE,
    CONFIGURATION: FileRole.CONFIGURATION,
    "/boot/entries/previous.conf": FileRole.LOADER_ENTRY,
}
OLD = {
    "/boot/initrd.img": b"old image" * 500,
    "/boot/fallback.img": b"old fallback image" * 300,
    CONFIGURATION: b"COMPRESSION=old\n",
}
NEW = {
    "/boot/initrd.img": b"new image" * 400,
    "/boot/fallback.img": b"new fallback image" * 350,
    CONFIGURATION: b"COMPRESSION=new\n",
    "/boot/entries/previous.conf": b"title previous\n",
}
CONFIGURATION_MODE = 0o604
_ATTRIBUTE = ("user.kept", b"value")

_ROOT = "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
_ESP = "23 22 8:1 / /boot rw - vfat /dev/sda1 rw\n"
_PLACES = ("boot", "etc", "state")


_Seen = tuple[int, int, int]
"""By what a file is known to be the same: device, inode, and when it was last changed."""


@dataclass
class _Saved:
    content: bytes
    mode: int
    attributes: dict[str, bytes]
    names: list[Path]
    seen: _Seen


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What is below ``root``, where ``boot`` may be another file system.

    ``esp``: it is vfat; ``real``: it really is one, which nobody has to imitate. ``exchanges``:
    kernel and file systems can exchange names. ``attributes``: those of the configuration, which it
    is to keep.
    """

    root: Path
    esp: bool
    real: bool = False
    exchanges: bool = True
    saved: list[_Saved] = field(default_factory=list)
    directories: set[Path] = field(default_factory=set)
    attributes: dict[str, bytes] = field(default_factory=dict)

    @property
    def host(self) -> Host:
        """The machine as the program sees it."""
        return Host(root=self.root)

    @property
    def as_vfat(self) -> tuple[Path, ...]:
        """The directories where vfat is imitated."""
        return (self.root / "boot",) if self.esp and not self.real else ()

    def install(self) -> None:
        """Put the old files there, and nothing else."""
        for name in (*_PLACES, "boot/entries", "proc/self"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self.clear()
        (self.root / "proc/self/mountinfo").write_text(_ROOT + (_ESP if self.esp else ""))
        (self.root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        for path, content in OLD.items():
            self.host.path(path).write_bytes(content)
        configuration = self.host.path(CONFIGURATION)
        configuration.chmod(CONFIGURATION_MODE)
        with contextlib.suppress(OSError):  # Linux before 6.6 has none of these on tmpfs
            os.setxattr(configuration, *_ATTRIBUTE)
        self.attributes.clear()
        self.attributes.update(attributes_of(configuration))

    def files(self) -> list[Path]:
        """Return all files there are."""
        return self._found()[0]

    def _found(self) -> tuple[list[Path], list[Path]]:
        """Return all files, and all directories; those that are in others come after them."""
        found, seen = [], []
        directories = [str(self.root / place) for place in _PLACES]
        while directories:
            for entry in os.scandir(directories.pop()):
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                    seen.append(Path(entry.path))
                elif entry.name != "machine-id":
                    found.append(Path(entry.path))
        return found, seen

    def clear(self) -> None:
        """Remove all files."""
        for path in self.files():
            path.unlink()

    def save(self) -> None:
        """Remember all files and directories, for ``restore``."""
        by_inode: dict[tuple[int, int], _Saved] = {}
        files, directories = self._found()
        self.directories.clear()
        self.directories.update(directories)
        for path in files:
            status = path.stat()
            saved = _Saved(
                path.read_bytes(), status.st_mode & 0o7777, attributes_of(path), [], _seen(path)
            )
            by_inode.setdefault((status.st_dev, status.st_ino), saved).names.append(path)
        self.saved[:] = by_inode.values()

    def restore(self) -> None:
        """Have all files as they were when they were remembered, hard links too."""
        files, directories = self._found()
        found = {path: _seen(path) for path in files}
        same = [
            held for held in self.saved if all(found.get(name) == held.seen for name in held.names)
        ]
        for path in found.keys() - {name for held in same for name in held.names}:
            path.unlink()
        for directory in reversed(directories):
            if directory not in self.directories:
                directory.rmdir()
        for held in self.saved:
            if held in same:
                continue
            first, *others = held.names
            first.write_bytes(held.content)
            first.chmod(held.mode)
            for name, value in held.attributes.items():
                os.setxattr(first, name, value)
            for other in others:
                other.hardlink_to(first)
            held.seen = _seen(first)


def replacements(*, keep: bool = True, contents: dict[str, bytes] = NEW) -> list[Replacement]:
    """Return what is to be replaced."""
    return [
        Replacement(path=path, role=ROLES[path], new=content, keep=keep)
        for path, content in contents.items()
    ]


def _seen(path: Path) -> _Seen:
    status = path.stat()
    return (status.st_dev, status.st_ino, status.st_ctime_ns)


def attributes_of(path: Path) -> dict[str, bytes]:
    """Return the extended attributes of a file."""
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError:  # vfat has none
        return {}
