"""The records of transactions: one small file each, replaced whole with every step.

Plain files rather than rows of the data base, so that what is half done can be found and read
whatever became of the measurements, by a later version, and by people.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.serialisation import ReadLimits
from initadvisor.host.files import remove_partial, sync_directory, whole_file
from initadvisor.host.owner import owned_name, owner_of_name
from initadvisor.host.record_files import LATEST_S, PATH, OlderRecordError, RecordFiles
from initadvisor.host.replace import file_error
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import (
    ArmedBoot,
    Duty,
    FileChange,
    Transaction,
    TransactionEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from initadvisor.host import Host


_LEFT = "look for .initadvisor-* beside images and configuration, which is what it may have left"
_LONGEST_PATH = 4096


def _require_sound(found: Transaction, number: int) -> None:
    """Raise ``ValueError`` for what this program has not written: it says what is to be removed."""
    if found.number != number:
        msg = f"it is numbered {found.number!r}"
        raise ValueError(msg)
    if not 0 <= found.began_at_s < LATEST_S:
        msg = f"{found.began_at_s} is no time"
        raise ValueError(msg)
    for index, change in enumerate(found.files):
        if (name := _unsound_name(change, number, index)) is not None:
            msg = f"{name!r} is no name that belongs to its file {index}"
            raise ValueError(msg)


def _unsound_name(change: FileChange, number: int, index: int) -> str | None:
    """Return the first of a file's names that cannot be right."""
    path = change.path
    if len(path) > _LONGEST_PATH or not PATH.fullmatch(path):
        return path
    name = owned_name(owner_of_name(change.staged) or "", f"{number}-{index}")
    stem = f"{path.rpartition('/')[0]}/{name}"
    if change.staged != f"{stem}.new":
        return change.staged
    return change.backup if change.backup not in {None, f"{stem}.old"} else None


_TRANSACTIONS = RecordFiles(
    kind=Transaction,
    name="transaction",
    schema=4,
    check=_require_sound,
    if_damaged=f"{_LEFT}, then move the file away",
    if_older=_LEFT,
    if_newer="use that version to finish or undo it",
    names=(ArmedBoot, TrialOutcome),
    limits=ReadLimits(least=-(1 << 63), most=(1 << 64) - 1),
)
"""Time stamps of files may be before 1970, and numbers of inodes have all 64 bits."""


def log_directory(host: Host) -> Path:
    """Return where the records are to be written."""
    return _TRANSACTIONS.directory(host)


def read_transactions(host: Host) -> tuple[Transaction, ...]:
    """Return all recorded transactions, the earliest first; a user sees root's.

    Those of an older layout are not among them; see ``set_older_aside``. Raises ``UnsafeError`` for
    what a newer version has recorded, ``NeedsRootError`` where only root may look, and
    ``InitadvisorError`` for a record that cannot be read.
    """
    return _all(read_records(host))


def read_records(host: Host) -> tuple[Transaction | InitadvisorError, ...]:
    """Return the same, with the error in the place of each record that cannot be read."""
    try:
        return _read(host.state_file("transactions") or log_directory(host))
    except InitadvisorError as err:
        return (err,)


def own_transactions(host: Host) -> tuple[Transaction, ...]:
    """Return what is recorded where this run records, too; see ``read_transactions``."""
    return _all(own_records(host))


def readable_transactions(host: Host) -> tuple[Transaction, ...]:
    """Return those of them that can be read: others must not keep anybody from finishing these."""
    return tuple(r for r in own_records(host) if not isinstance(r, InitadvisorError))


def own_records(host: Host) -> tuple[Transaction | InitadvisorError, ...]:
    """Return what is recorded where this run records, too; see ``read_records``."""
    return _read(log_directory(host))


def unfinished(recorded: Iterable[Transaction]) -> tuple[Transaction, ...]:
    """Return those that are neither finished nor undone."""
    return tuple(t for t in recorded if t.state.duty is not Duty.NOTHING)


def record_event(host: Host, transaction: Transaction, event: TransactionEvent) -> Transaction:
    """Record what an event makes of a transaction, and return that; see ``write_transaction``."""
    after = transaction.after(event)
    write_transaction(host, after)
    return after


def write_transaction(host: Host, transaction: Transaction) -> None:
    """Record a transaction so that it survives a power cut; raises ``InitadvisorError``.

    After an error either the earlier record stands there or this one.
    """
    path = _TRANSACTIONS.path(host, transaction.number)
    try:
        _make_durable(path.parent)
        with whole_file(path, mode=0o600) as file:
            file.write(_TRANSACTIONS.text(transaction))
    except OSError as err:
        raise file_error(err, f"cannot record the transaction in {path}") from err


def forget_transaction(host: Host, transaction: Transaction) -> None:
    """Remove the record of a transaction of which nothing else is left."""
    path = _TRANSACTIONS.path(host, transaction.number)
    try:
        path.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as err:
        raise file_error(err, f"cannot remove {path}") from err


def set_older_aside(host: Host) -> None:
    """Move records of an older layout out of the way, with a word in the log; with the lock held.

    Nothing that they name is touched. Raises ``InitadvisorError`` where one cannot be renamed.
    """
    _TRANSACTIONS.set_older_aside(log_directory(host), advice=f": {_LEFT}")


def following_number(host: Host) -> int:
    """Return the number of the next transaction: above those that were set aside, too."""
    return _TRANSACTIONS.following_number(host)


def clear_partial_records(host: Host) -> None:
    """Remove what a run that was killed has left of a record; only with the lock held."""
    try:
        remove_partial(log_directory(host))
    except OSError as err:
        msg = f"cannot clear up {log_directory(host)}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _make_durable(directory: Path) -> None:
    """Make the directory and what leads to it; none of them is to be lost in a power cut."""
    missing = [d for d in (directory, *directory.parents) if not d.is_dir()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    for path in (directory.parent, directory.parent.parent):
        if os.access(path, os.R_OK):
            sync_directory(path)


def _all(records: Iterable[Transaction | InitadvisorError]) -> tuple[Transaction, ...]:
    found = []
    for record in records:
        if isinstance(record, Transaction):
            found.append(record)
        elif not isinstance(record, OlderRecordError):
            raise record
    return tuple(found)


def _read(directory: Path) -> tuple[Transaction | InitadvisorError, ...]:
    try:
        return _TRANSACTIONS.all(directory)
    except InitadvisorError as err:
        return (err,)
