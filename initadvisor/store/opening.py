"""How the data base's file is opened, and what becomes of one that cannot be used.

It has a write-ahead log and syncs it with every transaction (``synchronous``), so that what is
committed survives a power cut, readers keep nobody from writing, and what a killed writer has left
keeps nobody from reading: with a rollback journal only somebody who may write could finish that.

A log needs two files beside the data base, which readers have to map (sqlite.org/wal.html). SQLite
removes them when the last connection is closed that may write, and users who may not write in the
directory could not open the data base any more. A connection for reading only cannot remove them,
so one is closed last wherever there was one for writing. The files are then there, empty, and all
that is committed is in the data base itself. Where they are missing all the same (it is a copy)
nobody is writing, and it is read as something that does not change.

A data base that cannot be used is moved aside: whole, and never onto anything else.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import shown
from initadvisor.host.files import aside_name, make_directory, sync_directory
from initadvisor.store.connection import (
    MOVED_ASIDE,
    DamagedError,
    beside,
    connect,
    connect_memory,
    damaged,
    explained,
    is_there,
    transaction,
)
from initadvisor.store.schema import NewerError, is_current, migrate, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


_Opening = TypeVar("_Opening")

_CHECKED_BYTES = 16 << 20
"""What is larger takes too long to check each time (observed: 1 ms for each MB); it is checked when
a killed writer has left something behind."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CANNOT_SHARE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A connection; ``looks``: how the files looked if they are read without any lock."""

    connection: sqlite3.Connection
    path: Path
    looks: object = None

    def check(self) -> None:
        """Raise ``InitadvisorError`` if what was read may have changed meanwhile."""
        if self.looks is not None and self.looks != _looks(self.path):
            msg = f"cannot read {self.path}: it was written meanwhile"
            raise InitadvisorError(msg, hint="try again")


@contextlib.contextmanager
def opened_for_writing(path: Path) -> Iterator[Opened]:
    """Open the data base in its newest version; make it where there is none.

    One that is damaged or that a newer program wrote is moved aside, with a word in the log.
    Raises ``InitadvisorError`` where that cannot be, ``NotOursError`` for another program's.
    """
    make_directory(path.parent)
    with explained("write", path):
        connection, keeper = _usable(path)
    try:
        yield Opened(connection=connection, path=path)
    finally:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        keeper.close()


@contextlib.contextmanager
def opened_for_reading(path: Path) -> Iterator[Opened]:
    """Open the data base and write nothing to it; an older one is read from an upgraded copy.

    Where there is none it is empty. Raises ``InitadvisorError`` for one that cannot be used.
    """
    with explained("read", path, remedy=MOVED_ASIDE):
        opened = _of_one_file(_readable, path)
    with contextlib.closing(opened.connection):
        yield opened


def _usable(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return a connection for writing, and the one for reading that is to be closed after it."""
    try:
        return _of_one_file(_newest, path)
    except (DamagedError, NewerError):
        with alone_in(path.parent):
            try:
                return _newest(path)  # another process may have been quicker
            except (DamagedError, NewerError) as err:
                quarantine(path, because=err.message)
            return _newest(path)


def _newest(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Open a data base that can be used as it is or after an upgrade.

    It is looked at first by a connection that cannot change it.
    """
    with contextlib.ExitStack() as stack, explained("write", path, remedy=MOVED_ASIDE):
        if is_there(path):
            keeper = stack.enter_context(_closed_on_error(_looked_at(path)))
            _check(keeper, path)
            connection = stack.enter_context(_closed_on_error(connect(path, "mode=rw")))
        else:
            connection = stack.enter_context(_closed_on_error(connect(path, "mode=rwc")))
            keeper = stack.enter_context(_closed_on_error(connect(path, "mode=ro")))
        _make_durable(connection)
        migrate(connection, str(path))
        _tables(keeper)  # only what has been read from holds the log
        return connection, keeper


def _of_one_file(open_it: Callable[[Path], _Opening], path: Path) -> _Opening:
    """Open what has this name; again where another process has moved that aside meanwhile."""
    while True:
        file = _file(path)
        try:
            return open_it(path)
        except (sqlite3.Error, OSError, InitadvisorError):
            if file in {None, _file(path)}:
                raise


def _readable(path: Path) -> Opened:
    if not is_there(path):
        with _closed_on_error(connect_memory()) as empty:
            migrate(empty, str(path))
            return Opened(connection=empty, path=path)
    looks = None
    try:
        connection = _looked_at(path)
    except sqlite3.OperationalError as err:
        if err.sqlite_errorcode & 0xFF not in _CANNOT_SHARE or beside(path, "wal").exists():
            raise
        looks = _looks(path)
        connection = _looked_at(path, "immutable=1")
    with _closed_on_error(connection):
        connection.execute("PRAGMA query_only = ON")
        _check_length(connection, path)
        if is_current(connection, str(path)):
            return Opened(connection=connection, path=path, looks=looks)
        with contextlib.closing(connection), _closed_on_error(connect_memory()) as copy:
            connection.backup(copy)
            migrate(copy, str(path))
            return Opened(connection=copy, path=path)


def _looked_at(path: Path, how: str = "mode=ro") -> sqlite3.Connection:
    """Open for reading only, and read what tells that it can be.

    What a killed writer of an earlier version has left (a rollback journal) only a connection that
    may write can undo, and nothing can be read before (sqlite.org/lockingv3.html).
    """
    if beside(path, "journal").exists():
        with contextlib.closing(connect(path, "mode=rw")) as undoing:
            _tables(undoing)
    with _closed_on_error(connect(path, how)) as connection:
        _tables(connection)
        return connection


def _tables(connection: sqlite3.Connection) -> int:
    [count] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return int(count)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise for what must not be written to: see ``version_of``; ``DamagedError`` for damage."""
    version_of(connection, str(path))
    _check_length(connection, path)
    if path.stat().st_size <= _CHECKED_BYTES or _size_bytes(beside(path, "wal")):
        [words] = connection.execute("PRAGMA quick_check(1)").fetchone()
        if words != "ok":
            raise damaged(path, words, remedy=MOVED_ASIDE)


def _check_length(connection: sqlite3.Connection, path: Path) -> None:
    """Raise ``DamagedError`` for a file that ends within a page.

    SQLite itself finds missing pages, but takes what is missing of the last one for zeros.
    """
    with transaction(connection, write=False):
        [page_bytes] = connection.execute("PRAGMA page_size").fetchone()
        _tables(connection)
        size_bytes = path.stat().st_size
    if size_bytes % page_bytes:
        why = f"its {size_bytes} bytes are no whole number of pages"
        raise damaged(path, why, remedy=MOVED_ASIDE)


def _make_durable(connection: sqlite3.Connection) -> None:
    """Keep a log, and sync it with every transaction.

    While somebody else uses a data base that has none yet it stays without. Then ``EXTRA`` also
    syncs the directory, without which a committed journal may come back
    (sqlite.org/pragma.html#pragma_synchronous).
    """
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as err:
        if err.sqlite_errorcode & 0xFF not in _BUSY:
            raise
    connection.execute("PRAGMA synchronous = EXTRA")


def _looks(path: Path) -> object:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size, beside(path, "wal").exists()


def _file(path: Path) -> object:
    """Tell files of one name apart; None where there is none or that cannot be told."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


_log = logging.getLogger(__name__)


@contextlib.contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for this directory (flock(2))."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def quarantine(path: Path, *, because: str) -> Path:
    """Give a data base another name and say so; to be called by one process at a time.

    What belongs to it goes first: a log that stayed would be taken for that of the next data base
    of this name. Interrupted, it is finished by whoever comes next.
    """
    aside = aside_name(path)
    for what in ("wal", "shm", "journal"):
        with contextlib.suppress(FileNotFoundError):
            beside(path, what).rename(beside(aside, what))
    path.rename(aside)
    sync_directory(path.parent)
    _log.warning("%s", shown(f"{because}; it was moved to {aside}, and a new one is begun"))
    return aside
