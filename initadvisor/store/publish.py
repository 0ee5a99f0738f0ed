"""The copy of root's state that everybody may read: written whole, after whatever wrote the state.

The state itself only root may look into. Whoever can open a file can lock it, also for reading
only (flock(2), fcntl(2)), and would keep root waiting: an armed boot could not be taken back in
time. Nothing of the copy is ever opened by root but to be replaced.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.serialisation import to_plain
from initadvisor.host.cached import read_cached
from initadvisor.host.files import (
    PARTIAL_PREFIX,
    failing_as,
    keep_others_out,
    remove_partial,
    remove_whole,
    require_own_directory,
    whole_file,
    write_file,
)
from initadvisor.host.lock import lock_file, locked
from initadvisor.store.connection import beside, explained
from initadvisor.store.opening import FILE_NAME, opened_for_reading

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host


_log = logging.getLogger(__name__)

_RECORDS = ("transactions", "campaigns")
_CALIBRATION = "calibration.json"
"""As in ``data.tables``, which takes long to import."""

_POLICY = "policy.json"
_STAMP = "published.json"
_SNAPSHOT = f"{PARTIAL_PREFIX}published-"
_WAIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stamp:
    """When the copy last changed, in seconds since 1970, and how the data base looked then."""

    at_s: int
    looks: tuple[str, ...] = ()


def keep_private(host: Host) -> None:
    """Have nobody but root look into the machine's state, where that is what this run writes.

    Raises ``UnsafeError`` where others may write to it: what is in it may be theirs.
    """
    if host.keeps_machine_state:
        keep_others_out(host.state_dir(), doing="keeping anything in")


@contextlib.contextmanager
def published_after(host: Host) -> Iterator[None]:
    """Publish what the block has left in the state, however it ends; see ``publish``."""
    try:
        yield
    finally:
        publish(host)


def publish(host: Host) -> None:
    """Bring the copy up to date, where this run's state is the machine's.

    That it cannot be is a warning: what was done is done, and the copy says how old it is.
    """
    if not host.keeps_machine_state or not host.state_dir().is_dir():
        return
    try:
        lock = lock_file(host.state_dir(), "published")
        with locked(lock, what="publishing what is kept", wait_s=_WAIT_S):
            _publish(host)
    except (InitadvisorError, OSError, sqlite3.Error) as err:
        _log.warning("users without root do not see what was done: %s", err)


def published_at_s(host: Host) -> int | None:
    """Return since when what this user sees is so, in seconds since 1970; None if it is no copy.

    It is when the copy last changed, 0 where that cannot be told. Raises ``NeedsRootError`` where
    there is no copy yet; see ``Host.state_file``.
    """
    copy = host.published_dir()
    seen = (host.state_file(name) for name in (FILE_NAME, *_RECORDS))
    if not any(path and path.is_relative_to(copy) for path in seen):
        return None
    stamp = read_cached(copy / _STAMP, _Stamp)
    return stamp.at_s if stamp else 0


def _publish(host: Host) -> None:
    state, copy = host.state_dir(), host.published_dir()
    began_at_s = int(time.time())
    _open_to_all(copy.parent)
    _open_to_all(copy)
    remove_partial(copy)
    before = read_cached(copy / _STAMP, _Stamp)
    looks = _looks(state / FILE_NAME)
    changes = [before is None]
    if not looks:
        remove_whole(copy / FILE_NAME)
    elif before is None or before.looks != looks or not (copy / FILE_NAME).exists():
        _copy_database(state / FILE_NAME, copy / FILE_NAME)
        changes.append(True)
    changes += [_copy_small(state / name, copy / name, "[0-9]*.json") for name in _RECORDS]
    changes += [_copy_small(state, copy, name) for name in (_CALIBRATION, _POLICY)]
    if any(changes):
        stamp = json.dumps(to_plain(_Stamp(at_s=began_at_s, looks=looks))).encode()
        write_file(copy / _STAMP, stamp, mode=0o644)


def _open_to_all(directory: Path) -> None:
    with failing_as(f"cannot make the directory {directory}"):
        directory.mkdir(parents=True, exist_ok=True)
        require_own_directory(directory, doing="publishing anything in")
        if directory.stat().st_mode & 0o055 != 0o055:
            directory.chmod(0o755)


def _looks(database: Path) -> tuple[str, ...]:
    """Tell one content of the data base from another; nothing where there is none."""
    found = []
    for path in (database, beside(database, "wal")):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if status.st_size:
                found.append(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}")
    return tuple(found)


def _copy_database(database: Path, copy: Path) -> None:
    """Copy what is committed into a file that needs no log beside it."""
    remove_partial(database.parent, prefix=_SNAPSHOT)
    with tempfile.NamedTemporaryFile(prefix=_SNAPSHOT, dir=database.parent) as snapshot:
        with (
            explained("publish", database),
            opened_for_reading(database) as opened,
            contextlib.closing(sqlite3.connect(snapshot.name)) as copying,
        ):
            copying.execute("PRAGMA synchronous = OFF")  # what is published is synced
            opened.connection.backup(copying)
            copying.execute("PRAGMA journal_mode = DELETE")
        with whole_file(copy) as file:
            shutil.copyfileobj(snapshot, file)


def _copy_small(source: Path, copy: Path, pattern: str) -> bool:
    """Have the same small files in two directories, and tell whether that changed anything."""
    if source.is_dir():
        _open_to_all(copy)
    there = {path.name: path.read_bytes() for path in source.glob(pattern)}
    here = {path.name: path.read_bytes() for path in copy.glob(pattern)}
    remove_partial(copy)
    for name in here.keys() - there.keys():
        remove_whole(copy / name)
    for name, content in there.items():
        if here.get(name) != content:
            write_file(copy / name, content, mode=0o644)
    return here != there
