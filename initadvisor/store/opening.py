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

A data base that cannot be used, because it is damaged or of another layout, is moved aside: whole,
and never onto anything else. The new one gets its boots, where their records are whole.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import sqlite3
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.text import shown
from initadvisor.host.files import (
    PARTIAL_PREFIX,
    make_directory,
    put_in_place,
    remove_partial,
    sync_directory,
)
from initadvisor.host.lock import lock_file, locked
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
from initadvisor.store.schema import OtherLayoutError, has_tables, make_tables
from initadvisor.store.seals import show_whole_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_log = logging.getLogger(__name__)

_Opening = TypeVar("_Opening")

FILE_NAME = "initadvisor.sqlite"

LOCK = "store"
"""Held while a data base is replaced by its copy, or one that cannot be used is moved aside."""

_WAIT_S = 60.0

_CHECKED_BYTES = 16 << 20
"""What is larger takes too long to check each time (observed: 1 ms for each MB); it is checked when
a killed writer has left something behind."""

_BESIDE = ("wal", "shm", "journal")
_COPY = f"{PARTIAL_PREFIX}store-"

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
    """Open the data base; make it where there is none.

    One that is damaged or of another layout is moved aside, with a word in the log.
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
    """Open the data base and write nothing to it.

    Where there is none it is empty. Raises ``InitadvisorError`` for one that cannot be used.
    """
    with explained("read", path, remedy=MOVED_ASIDE):
        opened = _of_one_file(_readable, path)
    with contextlib.closing(opened.connection):
        yield opened


def _usable(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return a connection for writing, and the one for reading that is to be closed after it."""
    if _is_open_to_others(path):
        what = "another run that closes the data base to others"
        with locked(lock_file(path.parent, LOCK), what=what, wait_s=_WAIT_S):
            if _is_open_to_others(path):
                _close_to_others(path)
    try:
        return _of_one_file(_writable, path)
    except (DamagedError, OtherLayoutError):
        what = "another run that moves the data base aside"
        with locked(lock_file(path.parent, LOCK), what=what, wait_s=_WAIT_S):
            try:
                return _writable(path)  # another process may have been quicker
            except (DamagedError, OtherLayoutError) as err:
                return _begun_anew(path, because=err.message)


def _begun_anew(path: Path, *, because: str) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Move what cannot be used aside, and begin a new one with the boots that are whole."""
    from initadvisor.records.boot import UnfitRecordError
    from initadvisor.store import boots
    from initadvisor.store.salvage import whole_records

    records = whole_records(path)
    quarantine(path, because=because, kept=len(records))
    connection, keeper = _writable(path)
    with _closed_on_error(keeper), _closed_on_error(connection), transaction(connection):
        for record in records:
            with contextlib.suppress(UnfitRecordError):  # of an older version
                boots.add(connection, record)
    return connection, keeper


def _is_open_to_others(path: Path) -> bool:
    """Tell whether others may open our data base, or what belongs to it, and so lock it."""
    for file in (path, *(beside(path, what) for what in _BESIDE)):
        with contextlib.suppress(OSError):  # why it cannot be used is said when it is opened
            status = file.lstat()
            if (
                stat.S_ISREG(status.st_mode)
                and status.st_uid == os.geteuid()
                and stat.S_IMODE(status.st_mode) & 0o077
            ):
                return True
    return False


def _close_to_others(path: Path) -> None:
    """Put a copy that nobody else can open in the place of what others may have open already.

    It is copied as files are, without asking SQLite: that would wait for the others' locks. What
    was committed is in the copy of the log, if not in that of the data base. A power cut between
    two steps leaves the new data base with the old log, which has nothing that it does not have.
    """
    remove_partial(path.parent, prefix=_COPY)
    with tempfile.TemporaryDirectory(prefix=_COPY, dir=path.parent) as name:
        copy = Path(name) / path.name
        for what in ("", "-wal", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{what}", f"{copy}{what}")
                Path(f"{copy}{what}").chmod(0o600)
        try:
            with contextlib.closing(connect(copy, "mode=rw")) as connection:
                if has_tables(connection, str(path)):
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (sqlite3.Error, DamagedError, OtherLayoutError, UnicodeDecodeError):
            return  # it is moved aside as soon as it is opened
        with copy.open("rb") as file:
            os.fsync(file.fileno())
            put_in_place(file, copy, path)
        for what in _BESIDE:
            beside(path, what).unlink(missing_ok=True)
        sync_directory(path.parent)


def _writable(path: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Open what is there, or make it; a connection that cannot change it looks at it first."""
    with contextlib.ExitStack() as stack, explained("write", path, remedy=MOVED_ASIDE):
        if is_there(path):
            keeper = stack.enter_context(_closed_on_error(_looked_at(path)))
            _check(keeper, path)
            connection = stack.enter_context(_closed_on_error(connect(path, "mode=rw")))
        else:
            # What SQLite makes beside it gets the same rights.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            connection = stack.enter_context(_closed_on_error(connect(path, "mode=rwc")))
            keeper = stack.enter_context(_closed_on_error(connect(path, "mode=ro")))
        _make_durable(connection)
        make_tables(connection, str(path))
        _tables(keeper)  # only what has been read from holds the log
        show_whole_rows(connection)
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
        return _empty(path)
    looks = None
    try:
        connection = _looked_at(path)
    except sqlite3.OperationalError as err:
        if err.sqlite_errorcode & 0xFF not in _CANNOT_SHARE or beside(path, "wal").exists():
            raise
        looks = _looks(path)
        connection = _looked_at(path, "immutable=1")
    with _closed_on_error(connection):
        _check_length(connection, path)
        if has_tables(connection, str(path)):
            show_whole_rows(connection)
            connection.execute("PRAGMA query_only = ON")
            return Opened(connection=connection, path=path, looks=looks)
    connection.close()
    return _empty(path)


def _empty(path: Path) -> Opened:
    with _closed_on_error(connect_memory()) as connection:
        make_tables(connection, str(path))
        show_whole_rows(connection)
        return Opened(connection=connection, path=path)


def _looked_at(path: Path, how: str = "mode=ro") -> sqlite3.Connection:
    """Open for reading only, and read what tells that it can be.

    What a killed writer has left that had no log yet (a rollback journal) only a connection that
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
    """Raise for what must not be written to: see ``has_tables``; ``DamagedError`` for damage."""
    has_tables(connection, str(path))
    _check_length(connection, path)
    if path.stat().st_size <= _CHECKED_BYTES or _size_bytes(beside(path, "wal")):
        # The first raises for pages that cannot be read. What it says of an index can be mended.
        connection.execute("PRAGMA integrity_check(1)").fetchone()
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


def quarantine(path: Path, *, because: str, kept: int = 0) -> Path:
    """Give a data base another name and say so; to be called by one process at a time.

    ``kept``: how many boots of it the new one gets.

    What belongs to it goes first: a log that stayed would be taken for that of the next data base
    of this name. Interrupted, it is finished by whoever comes next: what looking at the data base
    made anew meanwhile, an empty log and the index, takes the place of nothing that went before.
    """
    held = [what for what in ("wal", "journal") if _size_bytes(beside(path, what))]
    numbered = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
    aside = next(
        name
        for name in numbered
        if not any(map(os.path.lexists, (name, *(beside(name, what) for what in held))))
    )
    for what in ("wal", "shm", "journal"):
        with contextlib.suppress(FileNotFoundError):
            if os.path.lexists(beside(aside, what)):
                beside(path, what).unlink()
            else:
                beside(path, what).rename(beside(aside, what))
    path.rename(aside)
    sync_directory(path.parent)
    used = f"the {kept} boots of it that are whole are kept" if kept else "nothing of it is used"
    became = f"it was moved to {aside}, a new one is begun, and {used}"
    _log.warning("%s", shown(f"{because}; {became}"))
    return aside
