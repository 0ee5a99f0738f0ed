"""Gives up going back: what is kept for it is removed, and the previous image's menu entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.host.privilege import require_root
from initadvisor.model.transaction import droppable
from initadvisor.workflow.previous_entry import settle_previous_entry
from initadvisor.workflow.status import backups
from initadvisor.workflow.transaction import transactions
from initadvisor.workflow.transaction_log import own_transactions, read_transactions
from initadvisor.workflow.trial_notes import note_previous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.model.status import Backup
    from initadvisor.model.transaction import Transaction


def kept(host: Host, *, keep: int = 0) -> tuple[Backup, ...]:
    """Return the files that are kept for more than the ``keep`` latest changes."""
    return _backups(host, read_transactions(host), keep)


def drop(host: Host, *, keep: int = 0) -> tuple[Backup, ...]:
    """Remove them and the records of what is over; return those that stay, and why is logged.

    The menu entry goes last: until then it names an image that is gone, which boots nothing by
    itself. Raises ``NeedsRootError``, and ``InitadvisorError`` where something cannot be removed.
    """
    require_root(host, "remove what is kept")
    with transactions(host) as engine:
        note_previous(host)
        engine.prune(keep=keep)
        stay = _backups(host, own_transactions(host), keep)
        settle_previous_entry(host)
    return stay


def _backups(host: Host, recorded: Sequence[Transaction], keep: int) -> tuple[Backup, ...]:
    found, _ = backups(host, recorded)
    numbers = {transaction.number for transaction in droppable(recorded, keep)}
    return tuple(backup for backup in found if backup.transaction in numbers)
