"""Connections to the data base: how they are opened, and what goes wrong in one line."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.core.text import shown
from initadvisor.host.files import BARRED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_WAIT_S = 5.0
"""How long to wait for another process; what is written at once takes milliseconds."""

MOVED_ASIDE = "whatever is measured next moves it aside and begins a new one"
"""The remedy for what is found whenever a data base is opened for writing."""

_BY_HAND = "move it away, and a new one is begun; or set another STATE_DIRECTORY"
"""The remedy for what nobody looks for then."""

_BUSY = (f"another process has held it for {_WAIT_S:.0f} s", "try again when it has ended")
_REASONS: dict[int, tuple[str, str | None]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: ("its file system is full; nothing was changed", "make room, try again"),
    sqlite3.SQLITE_READONLY: (
        "it or its directory may not be written",
        "run it as its owner, or look if the file system is read-only",
    ),
    sqlite3.SQLITE_PERM: (
        "it or its directory may not be written",
        "run it as its owner, or look if the file system is read-only",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it or its journal cannot be opened",
        "look at the rights of both, and if the file system is read-only",
    ),
    sqlite3.SQLITE_IOERR: ("its file system reports an error", "look into the kernel's log"),
}
"""Why a statement failed, by SQLite's primary result code, and what to do about it."""


class DamagedError(InitadvisorError):
    """A data base that is none, or a damaged one."""


def connect(path: Path, how: str) -> sqlite3.Connection:
    """Open the data base at ``path``; ``how`` is SQLite's: ``mode=rwc``, ``mode=ro``.

    Raises ``InitadvisorError`` or ``NeedsRootError`` for what can be told without reading it; the
    rest comes from the first statement.
    """
    is_there(path)
    uri = f"{path.absolute().as_uri()}?{how}"
    return _prepared(sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None))


def connect_memory() -> sqlite3.Connection:
    """Open an empty data base that is gone when it is closed."""
    return _prepared(sqlite3.connect(":memory:", isolation_level=None))


def beside(path: Path, what: str) -> Path:
    """Return the name of a file that SQLite keeps beside a data base: its ``wal``, ``shm``."""
    return path.with_name(f"{path.name}-{what}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool = True) -> Iterator[None]:
    """Do everything in the block or nothing, seeing one state of the data base throughout."""
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite roll back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def explained(action: str, path: Path, *, remedy: str = _BY_HAND) -> Iterator[None]:
    """Raise SQLite's errors as ``InitadvisorError``; ``action``: "read" or "write".

    ``remedy``: what becomes of a file that SQLite takes for none of its own or for a damaged one.
    """
    try:
        yield
    except sqlite3.Error as err:
        code = getattr(err, "sqlite_errorcode", 0) & 0xFF  # the rest extends the primary code
        if code not in _REASONS:  # SQLite calls damage an error of the statement, too
            raise damaged(path, err, remedy=remedy) from err
        why, hint = _REASONS[code]
        msg = f"cannot {action} {path}: {why}"
        raise InitadvisorError(msg, hint=hint) from err
    except UnicodeDecodeError as err:  # an error message that quotes what is no text
        raise damaged(path, "no text where there should be some") from err


def damaged(path: Path | str, why: object, *, remedy: str = _BY_HAND) -> DamagedError:
    """Return the error for a data base that holds what the program never wrote."""
    why = f"it is no data base, or a damaged one ({shown(str(why))})"
    return DamagedError(_unreadable(path, why), hint=remedy)


def is_there(path: Path) -> bool:
    """Tell whether there is a data base; raises for what SQLite has no good words for.

    ``NeedsRootError`` where it is kept from this user, ``InitadvisorError`` for what is no file.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    except PermissionError as err:
        raise _forbidden(path) from err
    except NotADirectoryError as err:
        hint = "STATE_DIRECTORY or XDG_STATE_HOME has to name a directory"
        why = f"{path.parent} is no directory"
        raise InitadvisorError(_unreadable(path, why), hint=hint) from err
    except OSError as err:
        raise InitadvisorError(_unreadable(path, err.strerror)) from err
    if not stat.S_ISREG(status.st_mode):
        raise InitadvisorError(_unreadable(path, "not an ordinary file"), hint=_BY_HAND)
    # Opening the file to see, and closing it, would drop this process's locks on it (fcntl(2)).
    if not os.access(path, os.R_OK):
        raise _forbidden(path)
    return True


def _forbidden(path: Path) -> InitadvisorError:
    if os.geteuid() == 0:
        return InitadvisorError(_unreadable(path, "refused even to root"), hint=BARRED)
    return NeedsRootError(_unreadable(path, "only its owner may"))


def _unreadable(path: Path | str, why: str | None) -> str:
    return f"cannot read {path}: {why}"


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.row_factory = sqlite3.Row
    # Paths are bytes that are mostly, but not always, UTF-8.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection
