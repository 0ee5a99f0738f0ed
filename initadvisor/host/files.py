"""Files that appear whole or not at all, and survive a power cut once they have appeared.

And how files are read: ordinary ones only, and past the page cache what is read but once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import itertools
import mmap
import os
import stat
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import ReadableBuffer

    from initadvisor.host import Host


_CHUNK_BYTES = 1 << 20

PARTIAL_PREFIX = ".partial-"
"""What unfinished files are called: never a name that anybody looks for."""

BARRED = "a container, a sandbox or a security module is in the way"
"""Why root is not permitted what it usually is."""


def os_failure(
    err: OSError, what: str, *, only_root: bool = False, hint: str | None = None
) -> InitadvisorError:
    """Return the error that says ``what`` could not be done, and why the system refused it.

    ``only_root``: what is not permitted may be done by root, and is a ``NeedsRootError``; who is
    root already is told that the system refuses even that.
    """
    if only_root and isinstance(err, PermissionError):
        if os.geteuid() != 0:
            return NeedsRootError(f"{what}: only root may")
        return InitadvisorError(f"{what}: refused even to root", hint=hint or BARRED)
    return InitadvisorError(f"{what}: {err.strerror}", hint=hint)


@contextlib.contextmanager
def failing_as(what: str, *, only_root: bool = False, hint: str | None = None) -> Iterator[None]:
    """Raise an ``OSError`` of the block as the error that ``os_failure`` makes of it."""
    try:
        yield
    except OSError as err:
        raise os_failure(err, what, only_root=only_root, hint=hint) from err


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
      0 bytes, with it none of 94. FAT has a file's size and clusters in its directory entry: the
      rename makes another entry the file's, and fsync writes them there (fs/fat/namei_vfat.c,
      vfat_rename);
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


def write_file(path: Path, content: bytes, *, mode: int = 0o600, prefix: str | None = None) -> None:
    """Write a whole file and the directory it is in; raises ``InitadvisorError``.

    ``prefix``: how unfinished ones are called; those of earlier runs go. Only with the lock held.
    """
    make_directory(path.parent)
    with failing_as(f"cannot write {path}"):
        if prefix:
            remove_partial(path.parent, prefix=prefix)
        with whole_file(path, mode=mode, prefix=prefix or PARTIAL_PREFIX) as file:
            file.write(content)


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
    with held_open(path):
        name.rename(path)
        os.fsync(file.fileno())
        sync_directory(path.parent)


def remove_durably(path: Path) -> None:
    """Remove a file so that it does not come back after a power cut; ``OSError`` where it may.

    It is held open until the disk knows that its name is gone. Otherwise FAT may have given up its
    clusters and kept the name: others write there then, and whoever removes the name takes it from
    them.
    """
    _remove_held(path, Path.unlink)


def remove_tree_durably(path: Path) -> None:
    """Remove a file, or a directory with all that is in it, each as ``remove_durably`` does."""
    if not _is_directory(path):
        remove_durably(path)
        return
    for each in sorted(path.iterdir()):
        remove_tree_durably(each)
    _remove_held(path, Path.rmdir)


def _remove_held(path: Path, remove: Callable[[Path], None]) -> None:
    with held_open(path):
        remove(path)
        sync_directory(path.parent)
    sync_directory(path.parent)  # with it, FAT writes which clusters are free (fs/fat/file.c)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


@contextlib.contextmanager
def held_open(path: Path) -> Iterator[None]:
    """Keep the file that ``path`` names in being, if there is one and it may be opened."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            held.enter_context(opened(path, os.O_NONBLOCK | os.O_NOCTTY))
        yield


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Give a descriptor to read from, opened with ``flags`` besides those of reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Named(io.FileIO):
    """A file to read whose errors carry its name, as those of opening it do."""

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "rb")
        self.name = str(path)

    def readinto(self, buffer: ReadableBuffer, /) -> int:
        """Read like any file; raises ``OSError`` with the path in ``filename``."""
        with self._named_errors():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        """Read like any file; raises ``OSError`` with the path in ``filename``."""
        with self._named_errors():
            return super().readall()

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
    with failing_as(f"cannot read {path}", only_root=True):
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
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


def make_directory(path: Path) -> None:
    """Make a directory and what leads to it; raises ``InitadvisorError`` where that cannot be.

    What has to be made nobody else may look into: whoever can open a file can lock it, and so keep
    others waiting. (The XDG Base Directory Specification wants 0700 for users' ones, too.)
    """
    hint = "CACHE_DIRECTORY and STATE_DIRECTORY name other places for what is kept"
    with failing_as(f"cannot make the directory {path}", hint=hint):
        missing = itertools.takewhile(lambda d: not d.exists(), (path, *path.parents))
        for directory in reversed([*missing]):
            directory.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(exist_ok=True)  # says it where something else has the name


def require_own_directory(path: Path, *, doing: str) -> None:
    """Raise ``UnsafeError`` for what is no directory that only this user may write to.

    ``doing``: what is not done then. A symbolic link has to be this user's as well as what it
    leads to. ``OSError`` where there is nothing, or where it is root's and this is not root.
    """
    link, status = path.lstat(), path.stat()
    owners = {link.st_uid, status.st_uid}
    if owners == {0} and os.geteuid():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    open_to_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(status.st_mode) or owners != {os.geteuid()} or open_to_others:
        msg = f"not {doing} {path}: it is no directory that only root may write to"
        raise UnsafeError(msg, hint="see what is in it; then make it one of root's with mode 0700")


def keep_others_out(path: Path, *, doing: str) -> None:
    """Have nobody else look into a directory, which is made where there is none.

    Raises as ``require_own_directory`` and ``make_directory`` do.
    """
    make_directory(path)
    with failing_as(f"cannot use {path}", only_root=True):
        require_own_directory(path, doing=doing)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)


def remove_partial(directory: Path, *, prefix: str = PARTIAL_PREFIX) -> None:
    """Remove what an interrupted run left; call it only with the lock held of what is so called."""
    for path in directory.glob(f"{prefix}*"):
        remove_whole(path)


def remove_whole(path: Path) -> None:
    """Remove a file or a link, if there is one, or a directory with all that is in it."""
    import shutil

    if _is_directory(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Have what was renamed in a directory survive a power cut (fsync(2))."""
    with opened(path, os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


def sync_named(path: Path) -> None:
    """Have it survive a power cut that a name leads to a file, or to nothing.

    FAT has where a file lies in its directory entry, which fsync of the file writes.
    """
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(path.lstat().st_mode):
            with opened(path, os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
                os.fsync(descriptor)
    sync_directory(path.parent)


def listing(host: Host, directory: str) -> tuple[Path, ...]:
    """Return what is in a directory of the host, in order of name; nothing if there is none.

    Raises ``NeedsRootError`` where only root may look into it.
    """
    path = host.path(directory)
    with failing_as(f"cannot look into {path}", only_root=True):
        try:
            return tuple(sorted(path.iterdir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()


def is_same_file(path: Path, other: Path) -> bool:
    """Tell whether both names lead to one file that exists."""
    try:
        return path.samefile(other)
    except OSError:
        return False


@contextlib.contextmanager
def direct_reads(file: IO[bytes]) -> Iterator[bool]:
    """Make reads of a file go past the page cache within the block; tell whether they do.

    What is read once then neither takes memory nor drives others' out. Memory for the page cache is
    charged to the control group that reads first, and stays charged.

    They do not where the file system cannot do that (O_DIRECT in open(2)). Within the block the
    file is to be read by ``os.preadv``, from multiples of a page into whole pages.
    """
    descriptor = file.fileno()
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        yield _made_direct(descriptor, flags)
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def _made_direct(descriptor: int, flags: int) -> bool:
    """Set the flag and try one read: some file systems take the one and refuse the other."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            os.preadv(descriptor, [page], 0)
    except OSError:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
        return False
    return True


def read_once(
    file: IO[bytes], *, offset: int = 0, size_bytes: int | None = None
) -> Iterator[memoryview]:
    """Yield a range of ``file`` in blocks, up to its end unless a length is given.

    Past the page cache where that can be done. A block is good until the next one is asked for; the
    position of ``file`` does not move.
    """
    end = os.fstat(file.fileno()).st_size
    if size_bytes is not None:
        end = min(end, offset + size_bytes)
    position = offset - offset % mmap.PAGESIZE
    with direct_reads(file), mmap.mmap(-1, _CHUNK_BYTES) as block, memoryview(block) as content:
        while position < end and (count := os.preadv(file.fileno(), [block], position)):
            with content[max(offset - position, 0) : min(count, end - position)] as wanted:
                yield wanted
            position += count
