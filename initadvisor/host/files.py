"""Files that appear whole or not at all, and survive a power cut once they have appeared."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from typing_extensions import override

from initadvisor.core.errors import InitadvisorError, NeedsRootError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

    from initadvisor.host import Host


_CHUNK_BYTES = 1 << 20

PARTIAL_PREFIX = ".partial-"
"""What unfinished files are called: never a name that anybody looks for."""


@contextlib.contextmanager
def whole_file(
    path: Path, *, mode: int = 0o644, prefix: str = PARTIAL_PREFIX
) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name beside ``path`` and give it its name at the end.

    If the block raises, nothing is left; a power cut may leave the temporary name, which begins
    with ``prefix``. The order of calls was found to leave no torn file on vfat or ext4 at any crash
    point, on disks that reorder writes, too (tests/guests/cuts/test_replay.py):

    - write, and sync as something new (``sync_new``);
    - rename, and fsync the same file again: without that 72 of 76 power cuts on vfat left a file of
      0 bytes, with it none of 94, for the rename makes a new directory entry;
    - fsync the directory, with what had the name before held open until then: vfat would free its
      clusters before the new entry is sure to be there.
    """
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            sync_new(file, path.parent)
            put_in_place(file, Path(name), path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def write_file(path: Path, content: bytes, *, mode: int = 0o644, prefix: str | None = None) -> None:
    """Write a whole file and the directory it is in; raises ``InitadvisorError``.

    ``prefix``: how unfinished ones are called; those of earlier runs go. Only with the lock held.
    """
    make_directory(path.parent)
    try:
        if prefix:
            remove_partial(path.parent, prefix=prefix)
        with whole_file(path, mode=mode, prefix=prefix or PARTIAL_PREFIX) as file:
            file.write(content)
    except OSError as err:
        msg = f"cannot write {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def quarantine_name(path: Path) -> Path:
    """Return a name that nothing has, for what is in the way: ``path.aside-1``."""
    numbered = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
    return next(name for name in numbered if not os.path.lexists(name))


def quarantine_file(path: Path) -> Path:
    """Have a file out of the way, and return where it is kept; raises ``InitadvisorError``."""
    aside = quarantine_name(path)
    try:
        path.rename(aside)
        sync_directory(path.parent)
    except OSError as err:
        msg = f"cannot rename {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return aside


def sync_new(file: IO[bytes], directory: Path) -> None:
    """Have what was written to a file of a directory that was empty or not there be on the disk.

    With the directory, FAT writes which clusters are taken (fs/fat/file.c), and then with the file
    which of them are its own. The other way round a power cut leaves a name whose clusters are
    free: the kernel takes that for a damaged file system as soon as the name is read or removed,
    and mounts it read-only. The name itself is sure after another ``sync_directory``.
    """
    sync_directory(directory)
    os.fsync(file.fileno())


def put_in_place(file: IO[bytes], name: Path, path: Path) -> None:
    """Give the open, synced ``file`` that is called ``name`` the name ``path``, durably.

    See ``whole_file`` for the order of calls. ``OSError`` says that it may or may not have it.
    """
    with _held_open(path):
        name.rename(path)
        os.fsync(file.fileno())
        sync_directory(path.parent)


def remove_durably(path: Path) -> None:
    """Remove a file so that it does not come back after a power cut; ``OSError`` where it may.

    It is held open until the disk knows that its name is gone. Otherwise FAT may have given up its
    clusters and kept the name: others write there then, and whoever removes the name takes it from
    them.
    """
    with _held_open(path):
        path.unlink()
        sync_directory(path.parent)
    sync_directory(path.parent)  # with it, FAT writes which clusters are free (fs/fat/file.c)


@contextlib.contextmanager
def _held_open(path: Path) -> Iterator[None]:
    """Keep the file that ``path`` names in being, if there is one and it may be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.close(descriptor)


class _Named(io.FileIO):
    """A file to read whose errors carry its name, as those of opening it do."""

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "rb")
        self.name = str(path)

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        """Read like any file; raises ``OSError`` with the path in ``filename``."""
        with self._named_errors():
            return super().readinto(buffer)

    @override
    def readall(self) -> bytes:
        """Read like any file; raises ``OSError`` with the path in ``filename``."""
        with self._named_errors():
            return super().readall()

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move like in any file; raises ``OSError`` with the path in ``filename``."""
        with self._named_errors():
            return super().seek(offset, whence)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as err:
            err.filename = self.name
            raise


def open_regular(path: Path) -> IO[bytes]:
    """Open an ordinary file for reading; symbolic links are followed.

    Raises ``NeedsRootError`` where only root may read it and ``InitadvisorError`` for everything
    else that cannot be read, among it directories, devices and pipes (which would never end).
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except PermissionError as err:
        msg = f"cannot read {path}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        msg = f"cannot read {path}: not an ordinary file"
        raise InitadvisorError(msg)
    return io.BufferedReader(_Named(descriptor, path))


def sha256_of(
    file: IO[bytes], *, offset: int = 0, size_bytes: int | None = None, once: bool = False
) -> str:
    """Return the SHA-256 of a range of ``file``, up to its end unless a length is given.

    ``once``: nobody reads it soon again, so that it is not to stay in memory; see ``read_once``.
    """
    import hashlib

    from initadvisor.host.direct import read_once

    digest = hashlib.sha256()
    read = read_once if once else _read
    for block in read(file, offset=offset, size_bytes=size_bytes):
        digest.update(block)
    return digest.hexdigest()


def _read(file: IO[bytes], *, offset: int, size_bytes: int | None) -> Iterator[bytes]:
    left = sys.maxsize if size_bytes is None else size_bytes
    file.seek(offset)
    while chunk := file.read(min(left, _CHUNK_BYTES)):
        yield chunk
        left -= len(chunk)


def append_range(target: IO[bytes], source: IO[bytes], *, offset: int, size_bytes: int) -> None:
    """Append a range of ``source`` to ``target``; the position of ``source`` does not move.

    Raises ``InitadvisorError`` when ``source`` ends before the range does.
    """
    target.flush()
    end = offset + size_bytes
    while offset < end:
        copied = os.sendfile(target.fileno(), source.fileno(), offset, end - offset)
        if copied == 0:
            msg = f"cannot copy {source.name}: it ended at byte {offset}, before byte {end}"
            raise InitadvisorError(msg)
        offset += copied
    target.seek(0, os.SEEK_END)


def free_bytes(path: Path) -> int:
    """Return the room an ordinary user has on the file system of ``path`` (statvfs f_bavail)."""
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def make_directory(path: Path, *, mode: int = 0o755) -> None:
    """Make a directory and what leads to it; raises ``InitadvisorError`` where that cannot be."""
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as err:
        msg = f"cannot make the directory {path}: {err.strerror}"
        hint = "CACHE_DIRECTORY and STATE_DIRECTORY name other places for what is kept"
        raise InitadvisorError(msg, hint=hint) from err


def remove_partial(directory: Path, *, prefix: str = PARTIAL_PREFIX) -> None:
    """Remove what an interrupted run left; call it only with the lock held of what is so called."""
    import shutil

    for path in directory.glob(f"{prefix}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Have what was renamed in a directory survive a power cut (fsync(2))."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def listing(host: Host, directory: str) -> tuple[Path, ...]:
    """Return what is in a directory of the host, in order of name; nothing if there is none.

    Raises ``NeedsRootError`` where only root may look into it.
    """
    path = host.path(directory)
    try:
        return tuple(sorted(path.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except PermissionError as err:
        msg = f"cannot look into {path}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot look into {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
