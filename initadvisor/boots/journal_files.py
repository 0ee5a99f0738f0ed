"""The journal's files: the system's own, a directory's, or those that are named."""

from __future__ import annotations

import logging
import stat
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

from initadvisor.core.errors import LOADING_FAILURES, InitadvisorError, LibraryError, NeedsRootError
from initadvisor.core.text import shown
from initadvisor.host.files import BARRED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from initadvisor.host import Host


_log = logging.getLogger(__name__)

_SYSTEM = ("/var/log/journal", "/run/log/journal")
_SUFFIXES = (".journal", ".journal~")
"""journald renames a file that it found unclean to the latter; most of it can still be read."""

_MAGIC = b"LPKSHHRH"


class JournalReader(Protocol):
    """What is used of python-systemd's reader; every method may raise ``OSError``.

    Its methods with an underscore convert nothing: an entry's text and time take 3 us by them, 26
    by ``get_next()`` (observed with python-systemd 235).
    """

    data_threshold: int

    def add_match(self, match: str, /) -> None: ...
    def flush_matches(self) -> None: ...
    def seek_head(self) -> None: ...
    def seek_tail(self) -> None: ...
    def seek_realtime(self, realtime_us: int, /) -> None: ...
    def query_unique(self, name: str, /) -> Iterable[object]: ...
    def close(self) -> None: ...
    def _next(self, skip: int = 1, /) -> bool: ...
    def _previous(self, skip: int = 1, /) -> bool: ...
    def _get(self, name: str, /) -> bytes: ...
    def _get_realtime(self) -> int: ...
    def _get_monotonic(self) -> tuple[int, bytes]: ...


class _MakeReader(Protocol):
    def __call__(self, *, files: list[str]) -> JournalReader: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSource:
    """Where to read: a directory, files, or without either the running system's journal.

    ``latest``: of the latter only so many files, those that were written last.
    """

    directory: Path | None = None
    files: tuple[Path, ...] = ()
    latest: int | None = None

    @property
    def is_named(self) -> bool:
        """Whether somebody asked for just this journal."""
        return self.directory is not None or bool(self.files)


def open_journal(host: Host, source: JournalSource) -> tuple[JournalReader | None, list[str]]:
    """Open every file that can be, with a warning for each other one; None for no file at all.

    Raises ``NeedsRootError`` where there are files but none may be read, ``InitadvisorError``
    where python-systemd is not installed, or what is named is not there or no journal at all.
    """
    make_reader = _reader_class()
    problems: dict[Path, str] = {}
    good: list[str] = []
    forbidden: list[Path] = []
    for path in _candidates(host, source, forbidden):
        try:
            problem = _problem(path, make_reader)
        except PermissionError:
            forbidden.append(path)
            continue
        if problem is None:
            good.append(str(path))
        else:
            problems[path] = problem
    if forbidden and not good:
        msg = f"cannot read the journal: {forbidden[0]}: permission denied"
        if host.is_root:
            msg = f"cannot read the journal: {forbidden[0]}: refused even to root"
            raise InitadvisorError(msg, hint=BARRED)
        raise NeedsRootError(msg, hint="run this as root or as a member of group systemd-journal")
    if source.is_named and not good:
        raise _nothing_to_read(source, problems)
    problems |= dict.fromkeys(forbidden, "permission denied")
    warnings = [f"{path} was left out: {problem}" for path, problem in problems.items()]
    return make_reader(files=good) if good else None, warnings


def _nothing_to_read(source: JournalSource, problems: Mapping[Path, str]) -> InitadvisorError:
    """Return the error where nothing of what was named can be read: one line for each file.

    All but one go to the log, whose lines they are.
    """
    if not problems:
        return InitadvisorError(f"cannot read the journal: {source.directory} has no journal files")
    *others, (path, problem) = problems.items()
    for other, reason in others:
        _log.error("%s", shown(f"cannot read the journal: {other}: {reason}"))
    return InitadvisorError(f"cannot read the journal: {path}: {problem}")


def _problem(path: Path, make_reader: _MakeReader) -> str | None:
    """Return why a file cannot be used, None for one that can."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO would wait for ever
            return "not an ordinary file"
        with path.open("rb"):  # libsystemd does not tell what it may not open from what is damaged
            pass
        reader = make_reader(files=[str(path)])
        try:
            reader.seek_head()
            return None if reader._next() else "no entry in it can be read"
        finally:
            reader.close()
    except PermissionError:
        raise
    except (OSError, ValueError) as err:
        with path.open("rb") as file:
            if not is_journal(file):
                return "neither a journal nor a kernel log that tells of an initramfs"
        return f"a damaged journal ({_words(err)})"


def is_journal(file: IO[bytes]) -> bool:
    """Tell whether an open file begins as those of journald do (systemd, journal-def.h)."""
    beginning = file.read(len(_MAGIC))
    file.seek(0)
    return beginning == _MAGIC


def _candidates(host: Host, source: JournalSource, forbidden: list[Path]) -> Iterator[Path]:
    if source.files:
        for path in source.files:
            if not path.exists():
                msg = f"cannot read the journal: {path} does not exist"
                raise InitadvisorError(msg)
            yield path
    elif source.directory is not None:
        if not source.directory.is_dir():
            msg = f"cannot read the journal: {source.directory} is no directory"
            raise InitadvisorError(msg)
        yield from _below(source.directory, forbidden)
    else:
        paths = list(_systems_own(host, forbidden))
        if source.latest is not None:
            paths = sorted(paths, key=_written_ns)[-source.latest :]
        yield from paths


def _systems_own(host: Host, forbidden: list[Path]) -> Iterator[Path]:
    """Only this machine's, and only the system's: users' own journals have no kernel messages."""
    machine_id = (host.read_text("/etc/machine-id") or "").strip()
    for place in _SYSTEM:
        directory = host.path(place) / machine_id
        if directory.is_dir():
            yield from (
                path for path in _below(directory, forbidden) if path.name.startswith("system")
            )


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _below(directory: Path, forbidden: list[Path]) -> Iterator[Path]:
    """Yield the journal files of a directory and of those in it, as journalctl finds them."""
    try:
        entries = sorted(directory.iterdir())
        inner = [path for entry in entries if entry.is_dir() for path in sorted(entry.iterdir())]
    except PermissionError:
        forbidden.append(directory)
        return
    yield from (path for path in (*entries, *inner) if path.name.endswith(_SUFFIXES))


def _reader_class() -> _MakeReader:
    try:
        from systemd import journal
    except LOADING_FAILURES as err:
        raise LibraryError(err, "read the journal") from err
    make_reader: _MakeReader = journal.Reader
    return make_reader


def _words(err: Exception) -> str:
    return (err.strerror if isinstance(err, OSError) else None) or str(err) or type(err).__name__
