"""Every call that a program makes to the file system, to be made to fail or to be the last.

What is replaced is Python's way to the kernel: the functions of ``os``, ``fcntl.flock`` and files
that are opened by name. Closing is left alone: the file systems in question report nothing there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any

from initadvisor.host import renames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_WRITING = (
    *("write", "pwrite", "sendfile", "fsync", "rename", "replace", "link", "unlink", "mkdir"),
    *("rmdir", "fchown", "fchmod", "setxattr", "removexattr", "ftruncate"),
)
_READING = (
    *("open", "stat", "lstat", "fstat", "statvfs", "listxattr", "getxattr", "preadv", "pread"),
    *("posix_fadvise", "access", "scandir", "listdir"),
)
WRITING = frozenset({*_WRITING, "renameat2"})
"""Calls that change something, and may have done so although they say they have failed."""

WITHOUT_ERRORS = frozenset({"access", "posix_fadvise"})
"""They do not fail with an error of the disk: one returns a bool, the other is mere advice."""

_ATTRIBUTES = frozenset({"listxattr", "getxattr", "setxattr", "removexattr"})
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)


class KilledError(BaseException):
    """The process is gone: nothing that it does after this reaches the disk."""


class Moment(StrEnum):
    """When at a call something happens."""

    BEFORE = "before"
    HALF = "half"
    """Of what is written, half is."""
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens at a call: it fails with ``error`` (errno), or without one the process ends.

    ``lasting``: all later calls fail, too.
    """

    moment: Moment = Moment.BEFORE
    error: int | None = None
    lasting: bool = False

    def __str__(self) -> str:
        if self.error is None:
            return f"killed {self.moment}"
        until = " and ever after" if self.lasting else ""
        return f"{errno.errorcode[self.error]} {self.moment}{until}"


def _no_longer() -> None:
    raise KilledError


@dataclass
class Calls:
    """The calls about ``root`` and what is below it.

    There is a ``fault`` at the one with number ``at`` (from 0). ``calls`` are the names of those
    made so far. ``as_vfat``: the directories where there are no hard links and no attributes, as on
    vfat. ``exchanges``: kernel and file systems can exchange names. ``die`` ends the process; it
    need not return. ``meanwhile``: what somebody else does before each call, whose number it gets.
    """

    root: Path
    at: int = -1
    fault: Fault = field(default_factory=Fault)
    as_vfat: Sequence[Path] = ()
    die: Callable[[], None] = _no_longer
    exchanges: bool = True
    meanwhile: Callable[[int], None] | None = None
    calls: list[str] = field(default_factory=list)
    killed: bool = False
    _is_others: bool = False
    _below: str = field(init=False)
    _below_vfat: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._below = f"{self.root}/"
        self._below_vfat = tuple(f"{directory}/" for directory in self.as_vfat)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Have all calls come here first."""
        calls: list[tuple[Any, str, Callable[..., Any]]] = [
            (os, name, self._wrapped(name, getattr(os, name))) for name in (*_WRITING, *_READING)
        ]
        calls.append((renames, "renameat2", self._wrapped("renameat2", renames.renameat2)))
        calls.append((fcntl, "flock", self._wrapped("flock", fcntl.flock)))
        calls.append((os, "fdopen", self._fdopen))
        calls.append((io, "open", self._opened(io.open)))
        real = [(module, name, getattr(module, name)) for module, name, _ in calls]
        try:
            for module, name, call in calls:
                setattr(module, name, call)
            yield
        finally:
            for module, name, call in real:
                setattr(module, name, call)

    def happen(self, name: str, do: Callable[[], Any], half: Callable[[], Any] | None) -> Any:  # noqa: ANN401
        """Do a call, unless it is the one with the fault."""
        if self.killed:
            raise KilledError
        number = len(self.calls)
        self.calls.append(name)
        if self.meanwhile is not None:
            self._is_others = True
            self.meanwhile(number)
            self._is_others = False
        is_due = number == self.at or (self.fault.lasting and 0 <= self.at < number)
        if not is_due or (self.fault.error is not None and name in WITHOUT_ERRORS):
            return do()
        if self.fault.moment is Moment.HALF and half is not None:
            half()
        elif self.fault.moment is Moment.AFTER:
            do()
        if self.fault.error is not None:
            raise OSError(self.fault.error, os.strerror(self.fault.error))
        self.killed = True
        self.die()
        raise KilledError

    def path_of(self, what: object) -> str | None:
        """Return which file or directory a call is about, None for one of others."""
        path = None if self._is_others else _path_of(what)
        return path if path and f"{path}/".startswith(self._below) else None

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
            path = self.path_of(args[0]) if args else None
            if path is None:
                return real(*args, **keywords)
            if not self.killed:
                self._refuse_as_vfat(name, path)
            return self.happen(name, lambda: real(*args, **keywords), _half(name, real, args))

        return call

    def _refuse_as_vfat(self, name: str, path: str) -> None:
        if name == "renameat2" and not self.exchanges:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        if not path.startswith(self._below_vfat):
            return
        if name == "link":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        if name in _ATTRIBUTES:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), path)

    def _fdopen(self, descriptor: int, mode: str, buffering: int = -1) -> IO[bytes]:
        raw: Any = _Raw(descriptor, mode.replace("b", ""), self)
        if buffering == 0:
            unbuffered: IO[bytes] = raw
            return unbuffered
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedReader(raw)
        file: IO[bytes] = buffered
        return file

    def _opened(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, mode: str = "r", *args: Any, **keywords: Any) -> Any:  # noqa: ANN401
            path = self.path_of(file)
            if path is None:
                return real(file, mode, *args, **keywords)
            assert mode.startswith("r"), "what is written goes through os.open"
            raw: Any = _Raw(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "r", self)
            buffered: Any = io.BufferedReader(raw)
            if "b" in mode:
                return buffered
            return io.TextIOWrapper(
                buffered, encoding=keywords.get("encoding"), errors=keywords.get("errors")
            )

        return call


class _Raw(io.FileIO):
    """A file whose reads and writes are calls like others; those of a buffer are not Python's."""

    def __init__(self, descriptor: int, mode: str, calls: Calls) -> None:
        # "w" truncates nothing here, as with os.fdopen: the descriptor is open already.
        super().__init__(descriptor, mode)
        self._calls = calls
        self._is_below = calls.path_of(descriptor) is not None

    def write(self, data: Any, /) -> int:  # noqa: ANN401
        return os.write(self.fileno(), data)

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401
        read = super().readinto
        count: int = self._happen(lambda: read(buffer))
        return count

    def readall(self) -> bytes:
        read = super().readall
        content: bytes = self._happen(read)
        return content

    def _happen(self, do: Callable[[], Any]) -> Any:  # noqa: ANN401
        return self._calls.happen("read", do, None) if self._is_below else do()


def _path_of(what: object) -> str | None:
    if isinstance(what, int):
        try:
            return os.readlink(f"/proc/self/fd/{what}")  # noqa: PTH115
        except OSError:
            return None
    return os.fspath(what) if isinstance(what, (str, os.PathLike)) else None


def _half(name: str, real: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any] | None:
    """Return what does a call by half, None where there is no half."""
    match name:
        case "write" | "pwrite":
            return lambda: real(args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
        case "sendfile":
            return lambda: real(*args[:3], args[3] // 2)
        case _:
            return None
