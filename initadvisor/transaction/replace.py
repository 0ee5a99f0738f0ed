"""The parts of a transaction that replace files, and that give them their old content back.

It is recorded before that; all files are replaced, or none.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import sync_named
from initadvisor.host.replace import require_changeable
from initadvisor.transaction import clearing, exchanging, files
from initadvisor.transaction.files import Holding, changed_meanwhile, explained
from initadvisor.transaction.log import own_transactions, record_event
from initadvisor.transaction.transaction import TransactionEvent, TransactionState

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange, Transaction


def replace_all(host: Host, transaction: Transaction) -> Transaction:
    """Replace every file that was not yet, and record that it was done.

    An ``InitadvisorError`` has them restored first, unless one was replaced whose old content
    nobody kept; that is left to the next run, as is everything after any other exception (Ctrl-C).
    """
    files.require_mounted(host, transaction)
    with explained("part files that a power cut has joined"):
        clearing.part(host, transaction)
    try:
        with explained("replace files"):
            to_put = _still_to_put(host, transaction)
            for change in transaction.files:
                if change in to_put:
                    exchanging.put(host, change)
                else:
                    sync_named(host.path(change.path))  # who put it there may not have done so
            for change in transaction.files:
                if files.holding(host, change) is Holding.OTHER:
                    raise changed_meanwhile(change)
            for change in transaction.files:
                clearing.clear_staged(host, change)
            return record_event(host, transaction, TransactionEvent.FINISH)
    except InitadvisorError as err:
        # A second error leaves it to the next run; the first one is the one to be told.
        with contextlib.suppress(OSError, InitadvisorError):
            if _can_go_back(host, transaction):
                restore_after(host, transaction, err)
        raise


def _still_to_put(host: Host, transaction: Transaction) -> tuple[FileChange, ...]:
    """Return what was not yet put in place, and that all of it can be, before any of it is.

    What was staged may be days old: a boot was waited for, or the power was cut.
    """
    to_put = []
    for change in transaction.files:
        held = files.holding(host, change)
        if held is not Holding.OLD:
            exchanging.keep_others(host, change, held)
        if held is Holding.OTHER and not files.is_emptied(host, change):
            raise changed_meanwhile(change)
        if held is not Holding.NEW and not _is_same(change):
            files.require_staged(host, change)
            to_put.append(change)
    return tuple(to_put)


def _is_same(change: FileChange) -> bool:
    """Tell whether old and new are the same; a file that holds that stays as it is."""
    return change.before is not None and change.before.content == change.after


def _can_go_back(host: Host, transaction: Transaction) -> bool:
    """Tell whether no file was replaced whose old content nobody kept."""
    return all(
        change.backup is not None
        or change.before is None
        or files.holding(host, change) is not Holding.NEW
        for change in transaction.files
    )


_log = logging.getLogger(__name__)


_BEFORE_COMMIT = frozenset(
    {
        TransactionState.PLANNED,
        TransactionState.STAGED,
        TransactionState.VERIFIED,
        TransactionState.PROVING,
    }
)
"""Nothing is replaced yet, and of what is to be kept there may be half."""


class _Outcome(StrEnum):
    """What became of one file."""

    RESTORED = "restored"
    LEFT = "left"
    LOST = "lost"


def restore_all(host: Host, transaction: Transaction) -> Transaction:
    """Give every file its old content back, in whatever state the transaction is.

    Files that ``left`` names or that others have changed are left; of the latter, what is kept for
    them, too. What names images comes before the images. Raises ``InitadvisorError``; the next run
    then goes on with it.
    """
    files.require_mounted(host, transaction)
    with explained("part files that a power cut has joined"):
        clearing.part(host, transaction)
    if transaction.state in _BEFORE_COMMIT:
        with explained("clear up"):
            for change in transaction.files:
                clearing.clear_backup(host, change)  # or it may be half of one
    undoing = record_event(host, transaction, TransactionEvent.UNDO)
    left, lost = [], []
    with explained("restore files"):
        for change in reversed(undoing.files):
            match _restored(host, change, leave=change.path in undoing.left):
                case _Outcome.LEFT:
                    left.append(change.path)
                case _Outcome.LOST:
                    lost.append(change.path)
                case _Outcome.RESTORED:
                    pass
    if lost:
        _log.warning("what was in %s before is lost", ", ".join(lost))
    event = TransactionEvent.LOSE if lost else TransactionEvent.RESTORE
    return record_event(host, replace(undoing, left=tuple(left)), event)


def _restored(host: Host, change: FileChange, *, leave: bool) -> _Outcome:
    held = files.holding(host, change)
    exchanging.keep_others(host, change, held)
    # The staged name may lead to what the disk still knows by the file's, and to what is kept.
    sync_named(host.path(change.path))
    clearing.clear_staged(host, change)
    if leave:
        clearing.clear_backup(host, change)
        return _Outcome.LEFT
    if held is Holding.OTHER and files.is_emptied(host, change) and files.is_kept(host, change):
        held = Holding.NEW
    match held:
        case Holding.OLD:
            clearing.clear_backup(host, change)
            return _Outcome.RESTORED
        case Holding.NEW:
            if not files.is_kept(host, change):
                return _Outcome.LOST
            if not exchanging.put_back(host, change):
                return _Outcome.LEFT
            clearing.clear_backup(host, change)
            return _Outcome.RESTORED
        case Holding.OTHER:
            if not files.is_kept(host, change):
                clearing.clear_backup(host, change)
            return _Outcome.LEFT


def restore_after(host: Host, transaction: Transaction, err: BaseException) -> None:
    """Restore after an error, which is the one to be told; what fails now is left to recover."""
    try:
        restore_all(host, replace(transaction, reason=str(err) or type(err).__name__))
    except InitadvisorError as again:
        _log.warning("not undone yet: %s", again.with_hint)


def require_restorable(host: Host, transaction: Transaction, leave: Collection[str]) -> None:
    """Raise ``UnsafeError`` where a file that was replaced cannot have its old content.

    Those that ``leave`` names do not count.
    """
    wanted = [change for change in transaction.files if change.path not in leave]
    _require_latest(host, transaction, {change.path for change in wanted})
    files.require_mounted(host, transaction)
    with explained("look at what is to be restored"):
        for change in wanted:
            held = files.holding(host, change)
            if held is Holding.OTHER:
                raise changed_meanwhile(change)
            if held is Holding.NEW and not files.is_kept(host, change):
                raise _gone(transaction, change)
            if held is Holding.NEW:
                require_changeable(host.path(change.path))


def _require_latest(host: Host, transaction: Transaction, paths: Collection[str]) -> None:
    for later in own_transactions(host):
        if (
            later.number > transaction.number
            and later.state is not TransactionState.UNDONE
            # What kept nothing cannot be undone; it was to be as before, or of another kernel.
            and any(change.path in paths and change.backup for change in later.files)
        ):
            msg = f"not undoing transaction {transaction.number}: {later.number} came after it"
            raise UnsafeError(msg, hint=f"undo {later.number} first")


def _gone(transaction: Transaction, change: FileChange) -> UnsafeError:
    msg = f"not undoing transaction {transaction.number}: what was in {change.path} before is gone"
    return UnsafeError(msg, hint="have the generator make it anew")
