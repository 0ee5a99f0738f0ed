"""The part of a transaction that replaces files, once that is recorded: all of them, or none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.transaction import clearing, files
from initadvisor.transaction.errors import changed_meanwhile, explained
from initadvisor.transaction.files import Holding
from initadvisor.transaction.log import record_event
from initadvisor.transaction.restore import restore_after
from initadvisor.transaction.transaction import TransactionEvent

if TYPE_CHECKING:
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
                    files.put(host, change)
                else:
                    files.settle(host, change)
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
