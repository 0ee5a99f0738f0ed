"""The moment when a transaction replaces files: nobody else works, the machine stays on."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from initadvisor.apply.previous_entry import settle_previous_entry
from initadvisor.core.errors import InitadvisorError
from initadvisor.host.package_managers import package_managers_held
from initadvisor.host.power import inhibited
from initadvisor.trial.markers import forget_previous, note_previous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction
    from initadvisor.transaction.transactions import Transactions


_log = logging.getLogger(__name__)


@contextlib.contextmanager
def undisturbed(host: Host) -> Iterator[None]:
    """Keep package managers out, and the machine from shutting down or going to sleep.

    Raises ``UnsafeError`` where a package manager is at work and stays so.
    """
    with package_managers_held(host), inhibited(host, "replacing the initramfs"):
        yield


def commit(
    host: Host, engine: Transactions, transaction: Transaction, *, entry: bool = True
) -> Transaction:
    """Replace the files, and give the image that was replaced an entry of its own.

    To be called in ``undisturbed``. Where that entry cannot be made and ``entry`` demands it, all
    is undone. Raises what ``Transactions.commit`` does, and ``UnsafeError`` for the entry.
    """
    note_previous(host)  # settled by the next run, should this one end in between
    committed = engine.commit(transaction)
    try:
        settle_previous_entry(host)
    except InitadvisorError as err:
        if not entry:
            _log.warning("the previous image has no entry in the menu: %s", err.with_hint)
            forget_previous(host)
            return committed
        reason = f"the previous image could not get an entry in the menu: {err.message}"
        engine.undo(committed, reason=reason)
        raise
    return committed
