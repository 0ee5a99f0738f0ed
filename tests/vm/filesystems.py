"""Files inside vfat and ext4 file systems in an image, without mounting them.

What is written is read back and compared: debugfs(8) tells nobody when it fails.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from tests.vm import tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SUPERBLOCK = 1024
_INCOMPATIBLE_FEATURES = _SUPERBLOCK + 0x60
_NEEDS_RECOVERY = 0x4
_REPAIRED = (0, 1, 2)
"""e2fsck(8): nothing to do; errors corrected; corrected, and the system should be rebooted."""


class WriteFailedError(Exception):
    """What was written into a file system is not what is in it."""


class Files(Protocol):
    """A file system in an image; paths are absolute, as in the guest from its mount point."""

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy files of this machine in; the directories above them are made.

        Raises ``WriteFailedError``.
        """
        ...

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file, or a directory with all below it, to ``target``, which does not exist.

        Raises ``FileNotFoundError``.
        """
        ...

    def dump(self, files: Mapping[str, Path]) -> None:
        """Copy files out, each to where it does not exist; what is not there is left out."""
        ...

    def names(self, directory: str) -> list[str]:
        """Return what is in a directory, nothing where there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vfat:
    """A FAT file system, read and written by mtools(1)."""

    image: Path
    offset_bytes: int = 0

    def put(self, files: Mapping[str, Path]) -> None:
        """See ``Files.put``."""
        for directory in _directories(files):
            if not self._exists(directory):
                self._run("mmd", f"::{directory}")
        for path, source in files.items():
            self._run("mcopy", "-o", "-m", source, f"::{path}")
        _verify(self, files)

    def fetch(self, path: str, target: Path) -> None:
        """See ``Files.fetch``."""
        try:
            self._run("mcopy", "-n", "-s", "-m", f"::{path}", target)
        except tools.ToolError as err:
            raise FileNotFoundError(path) from err

    def dump(self, files: Mapping[str, Path]) -> None:
        """See ``Files.dump``."""
        for path, target in files.items():
            with contextlib.suppress(FileNotFoundError):
                self.fetch(path, target)

    def names(self, directory: str) -> list[str]:
        """See ``Files.names``."""
        try:
            listing = self._run("mdir", "-b", "-a", f"::{directory}").decode()
        except tools.ToolError:
            return []
        return sorted(PurePosixPath(line).name for line in listing.splitlines())

    def paths(self) -> list[str]:
        """Return all files."""
        listing = self._run("mdir", "-/", "-b", "-a", "::/").decode()
        return [path.removeprefix("::") for path in listing.splitlines() if path[-1] != "/"]

    def remove(self, path: str) -> None:
        """Delete a file. Raises ``ToolError`` where there is none."""
        self._run("mdel", f"::{path}")

    def _exists(self, directory: str) -> bool:
        try:
            self._run("mdir", "-b", f"::{directory}")
        except tools.ToolError:
            return False
        return True

    def _run(self, program: str, *arguments: str | Path) -> bytes:
        return tools.run(program, "-i", f"{self.image}@@{self.offset_bytes}", *arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ext4:
    """An ext4 file system, read and written by debugfs(8); its journal is replayed before that."""

    image: Path
    offset_bytes: int = 0

    def put(self, files: Mapping[str, Path]) -> None:
        """See ``Files.put``; modes are those of the sources, everything belongs to root."""
        self.recover()
        requests: list[tuple[str, ...]] = [
            ("mkdir", directory) for directory in _directories(files)
        ]
        for path, source in files.items():
            requests += [("rm", path), ("write", str(source), path)]
        self._request(*requests, options=("-w",))
        _verify(self, files)

    def fetch(self, path: str, target: Path) -> None:
        """See ``Files.fetch``."""
        self.recover()
        with tempfile.TemporaryDirectory(dir=target.parent) as directory:
            self._request(("rdump", path, directory))
            made = Path(directory) / PurePosixPath(path).name
            if not made.exists():
                raise FileNotFoundError(path)
            made.rename(target)

    def dump(self, files: Mapping[str, Path]) -> None:
        """See ``Files.dump``."""
        self.recover()
        self._request(*(("dump", path, str(target)) for path, target in files.items()))

    def names(self, directory: str) -> list[str]:
        """See ``Files.names``."""
        self.recover()
        listing = self._request(("ls", "-p", directory)).decode()
        fields = [line.split("/") for line in listing.splitlines() if line.startswith("/")]
        return sorted(field[5] for field in fields if field[5] not in {"", ".", ".."})

    def remove(self, path: str) -> None:
        """Delete a file, where there is one."""
        self.recover()
        self._request(("rm", path), options=("-w",))

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link, and the directories above it."""
        self.recover()
        made = [("mkdir", directory) for directory in _directories({path: Path(target)})]
        self._request(*made, ("symlink", path, target), options=("-w",))
        stated = self._request(("stat", path)).decode()
        if f'Fast link dest: "{target}"' not in stated:
            msg = f"{path} is not the link that was written into {self}: {stated}"
            raise WriteFailedError(msg)

    def recover(self) -> None:
        """Replay the journal and repair what needs no questions, after an unclean stop.

        Raises ``ToolError`` when e2fsck leaves errors.
        """
        with self.image.open("rb") as file:
            file.seek(self.offset_bytes + _INCOMPATIBLE_FEATURES)
            features = int.from_bytes(file.read(4), "little")
        if features & _NEEDS_RECOVERY:
            self.check()

    def check(self) -> None:
        """Run ``e2fsck -fp``. Raises ``ToolError`` when errors are left."""
        tools.run("e2fsck", "-fp", self._device, good=_REPAIRED)

    @contextlib.contextmanager
    def repaired(self, undo: Path) -> Iterator[None]:
        """Have it checked as long as the context is; ``undo`` is where what that changes is kept.

        Raises ``ToolError`` when errors are left.
        """
        try:
            tools.run("e2fsck", "-fp", "-z", undo, self._device, good=_REPAIRED)
            yield
        finally:
            if undo.exists():
                tools.run("e2undo", undo, self._device)

    def _request(self, *requests: tuple[str, ...], options: tuple[str, ...] = ()) -> bytes:
        """Have debugfs do things; it quotes as the ss library of e2fsprogs wants it."""
        lines = [" ".join(f'"{word}"' for word in request) + "\n" for request in requests]
        script = "".join(lines).encode()
        return tools.run("debugfs", *options, "-f", "-", self._device, stdin=script)

    @property
    def _device(self) -> str:
        # e2fsck forgets the offset when it has replayed a journal and opens the file again.
        return f"{self.image}?offset={self.offset_bytes}" if self.offset_bytes else str(self.image)


def write(files: Files, path: str, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write one file of this content. Raises ``WriteFailedError``."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "content"
        source.write_bytes(content.encode() if isinstance(content, str) else content)
        source.chmod(mode)
        files.put({path: source})


def read(files: Files, path: str) -> bytes:
    """Return what is in a file. Raises ``FileNotFoundError``."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "content"
        files.fetch(path, target)
        return target.read_bytes()


def put_tree(files: Files, source: Path, target: str) -> None:
    """Copy a directory of this machine with all below it, less Python's caches; symbolic links only
    where there are such.
    """
    found = {
        f"{target}/{path.relative_to(source)}": path
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files.put({path: original for path, original in found.items() if not original.is_symlink()})
    for path, original in found.items():
        if original.is_symlink():
            assert isinstance(files, Ext4)
            files.link(path, str(original.readlink()))


def _directories(files: Mapping[str, Path]) -> Iterator[str]:
    """Name every directory above the files, each after the one it is in."""
    known = {PurePosixPath("/")}
    for path in files:
        for parent in reversed(PurePosixPath(path).parents):
            if parent not in known:
                known.add(parent)
                yield str(parent)


def _verify(files: Files, written: Mapping[str, Path]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        copies = {path: Path(directory) / str(number) for number, path in enumerate(written)}
        files.dump(copies)
        for path, source in written.items():
            if not copies[path].exists() or copies[path].read_bytes() != source.read_bytes():
                msg = f"{path} is not what was written into {files}"
                raise WriteFailedError(msg)
