"""Begins, verifies, commits, undoes and recovers transactions.

The order is: record what is planned, have all new contents on the disk under names of their own,
read them back, keep the old contents, record that they are going to be replaced, replace them one
by one. Whoever comes after an interruption finishes if replacing had begun, else clears up.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError, raise_all
from initadvisor.host.lock import lock_file, locked
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.store.publish import keep_private, published_after
from initadvisor.transaction import clearing, files
from initadvisor.transaction.files import explained
from initadvisor.transaction.log import (
    clear_partial_records,
    following_number,
    forget_transaction,
    own_records,
    own_transactions,
    read_transactions,
    readable_transactions,
    record_event,
    set_older_aside,
    unfinished,
    write_transaction,
)
from initadvisor.transaction.plan import (
    Replacement,
    free_number,
    in_order,
    plan_changes,
    require_unchanged,
)
from initadvisor.transaction.replace import (
    replace_all,
    require_restorable,
    restore_after,
    restore_all,
)
from initadvisor.transaction.transaction import (
    Duty,
    Transaction,
    TransactionEvent,
    TransactionState,
    droppable,
    next_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from initadvisor.host import Host
    from initadvisor.transaction.plan import SpaceRequirement
    from initadvisor.transaction.transaction import ArmedBoot, SettingChange


_log = logging.getLogger(__name__)

_WAIT_S = 30.0
"""With the lock held images are copied, and the words of trials signed: that takes seconds."""


@contextlib.contextmanager
def transactions(host: Host, *, wait_s: float = _WAIT_S) -> Iterator[Transactions]:
    """Be the only run that replaces files; raises ``InitadvisorError`` if another one stays.

    What an earlier version has recorded in another way is set aside first, and not followed.
    """
    what = "another run that replaces files"
    keep_private(host)
    lock = lock_file(host.state_dir(), "transactions")
    with published_after(host), locked(lock, what=what, wait_s=wait_s):
        set_older_aside(host)
        yield Transactions(host)


def pending(host: Host) -> tuple[Transaction, ...]:
    """Return the transactions that are neither finished nor undone; see ``read_transactions``."""
    return unfinished(read_transactions(host))


class Transactions:
    """What may be done with the lock held. Every method returns the transaction as it is then.

    Given a transaction, a method looks first at what is recorded of it now: it raises
    ``UnsafeError``, with nothing changed, where that is not the state that was given or where what
    is asked for cannot be done in it. They raise ``InitadvisorError`` for what cannot be read or
    written, after undoing the transaction as far as that can be done; ``recover`` of the next run
    does the rest.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def begin(
        self,
        replacements: Sequence[Replacement],
        *,
        purpose: str,
        setting: SettingChange | None = None,
        room: Sequence[SpaceRequirement] = (),
        by_policy: bool = False,
    ) -> Transaction:
        """Plan to replace files and have their new contents on the disk, beside them.

        ``setting``, ``by_policy``: as in ``Transaction``. ``room``: what the makers of contents
        need elsewhere. Raises ``UnsafeError`` before anything is written for links, for what there
        is no room for, and while another one is pending.
        """
        recorded = own_transactions(self._host)
        if waiting := unfinished(recorded):
            msg = f"not replacing anything: transaction {waiting[0].number} is {waiting[0].state}"
            raise UnsafeError(msg, hint="have it finished or undone first")
        ordered = in_order(replacements)
        with explained("plan to replace files"):
            number = free_number(self._host, ordered, least=following_number(self._host))
            planned = plan_changes(self._host, ordered, number=number, room=room)
        transaction = Transaction(
            number=number,
            state=TransactionState.PLANNED,
            purpose=purpose,
            setting=setting,
            began_at_s=int(time.time()),
            files=planned,
            by_policy=by_policy,
        )
        self._record_first(transaction)
        with self._undone_on_error(transaction), explained("write the new contents"):
            staged = tuple(
                replace(change, after=files.stage(self._host, change, item.new))
                for change, item in zip(planned, ordered, strict=True)
            )
            staging = replace(transaction, files=staged)
            return record_event(self._host, staging, TransactionEvent.STAGE)

    def verify(
        self, transaction: Transaction, check: Callable[[Transaction], None] | None = None
    ) -> Transaction:
        """Read the new contents back from the device, and have the caller's ``check`` look at them.

        What the check raises undoes the transaction.
        """
        current = self._current(transaction, TransactionEvent.VERIFY)
        with self._undone_on_error(current), explained("read the new contents back"):
            for change in current.files:
                files.require_staged(self._host, change)
            if check is not None:
                check(current)
            return record_event(self._host, current, TransactionEvent.VERIFY)

    def prove(self, transaction: Transaction, armed: ArmedBoot) -> Transaction:
        """Have it wait for a boot of the staged images; nothing is replaced before ``commit``.

        Also while it waits: the rehearsal is followed by the proof, and either may be armed again.
        It is recorded before anything is armed.
        """
        current = self._current(transaction, TransactionEvent.PROVE)
        return record_event(self._host, replace(current, armed_boot=armed), TransactionEvent.PROVE)

    def commit(self, transaction: Transaction) -> Transaction:
        """Replace all files.

        Raises ``UnsafeError`` if somebody else has replaced one meanwhile or if what is to replace
        it is no longer what was verified, and undoes the transaction then; but with nothing changed
        where a file system is not mounted.
        """
        current = self._current(transaction, TransactionEvent.COMMIT)
        files.require_mounted(self._host, current)
        with self._undone_on_error(current), explained("replace files"):
            self._clear_early_backups(current)
            for change in current.files:
                require_unchanged(self._host, change)
            for change in current.files:
                files.back_up(self._host, change)
            current = record_event(self._host, current, TransactionEvent.COMMIT)
        return replace_all(self._host, current)

    def undo(
        self,
        transaction: Transaction,
        *,
        reason: str,
        leave: Collection[str] = (),
        outcome: TrialOutcome | None = None,
    ) -> Transaction:
        """Have all files as they were before; ``left`` of the result names those that are not.

        ``outcome`` as in ``Transaction``.

        These are those that ``leave`` names: others have changed them, or the caller has built them
        anew. Refused with ``UnsafeError`` where others have changed any other one, while a later
        transaction has replaced the same files, and where a kept content is gone.
        """
        current = self._current(transaction, TransactionEvent.UNDO)
        if current.state.duty is Duty.NOTHING:
            require_restorable(self._host, current, leave)
        undoing = replace(current, reason=reason, left=tuple(leave), outcome=outcome)
        return restore_all(self._host, undoing)

    def recover(self) -> tuple[Transaction, ...]:
        """Finish or undo what earlier runs have left, and return what became of each.

        Each of them is tried, whatever becomes of the others; what went wrong is raised in the end,
        as one ``InitadvisorError``.
        """
        clear_partial_records(self._host)
        done: list[Transaction] = []
        failed: list[InitadvisorError] = []
        for found in own_records(self._host):
            try:
                if isinstance(found, InitadvisorError):
                    raise found
                done += self._recovered(found)
            except InitadvisorError as err:
                failed.append(err)
        raise_all(failed)
        return tuple(done)

    def prune(self, *, keep: int = 0) -> tuple[Transaction, ...]:
        """Drop what is kept for going back, but for the latest ``keep``; return what was dropped.

        See ``droppable``. Where a file system is not mounted, they stay until it is; another
        system's stay for good.
        """
        dropped = []
        for transaction in droppable(own_transactions(self._host), keep):
            try:
                files.require_own(self._host, transaction)
                files.require_mounted(self._host, transaction)
            except UnsafeError as err:
                _log.warning("transaction %d is not dropped yet: %s", transaction.number, err)
                continue
            with explained("drop what is kept"):
                for change in transaction.files:
                    clearing.clear_backup(self._host, change)
                if clearing.remove_duplicate_names(self._host, transaction):
                    continue  # or nobody would know any more what these names are
            forget_transaction(self._host, transaction)
            dropped.append(transaction)
        return tuple(dropped)

    def _current(self, transaction: Transaction, event: TransactionEvent) -> Transaction:
        """Return what is recorded of it; raises ``UnsafeError`` where the event cannot happen."""
        number = transaction.number
        recorded = {t.number: t for t in readable_transactions(self._host)}.get(number)
        if recorded is None:
            msg = f"cannot {event} transaction {number}: there is no record of it"
            raise UnsafeError(msg)
        if next_state(recorded.state, event) is None:
            msg = f"cannot {event} transaction {number}: it is {recorded.state}"
            raise UnsafeError(msg)
        if recorded.state is not transaction.state:
            msg = f"cannot {event} transaction {number}: it was {transaction.state} and is "
            msg += f"{recorded.state} now"
            raise UnsafeError(msg, hint="look at it again, then decide again")
        files.require_own(self._host, recorded)
        return recorded

    def _record_first(self, transaction: Transaction) -> None:
        try:
            write_transaction(self._host, transaction)
        except InitadvisorError:
            # The error may have come after the record was there; nothing was done about it yet.
            with contextlib.suppress(InitadvisorError):
                forget_transaction(self._host, transaction)
            raise

    def _recovered(self, found: Transaction) -> tuple[Transaction, ...]:
        """Do what is left to do about a transaction; nothing, if it is finished or waits."""
        interrupted = found.after(TransactionEvent.INTERRUPT)
        if interrupted.state.duty is not Duty.NOTHING:
            files.require_own(self._host, interrupted)
        match interrupted.state.duty:
            case Duty.REPLACE:
                return (replace_all(self._host, interrupted),)
            case Duty.RESTORE:
                reason = found.reason or "it was interrupted"
                begun = found.state is TransactionState.ROLLING_BACK
                outcome = found.outcome if begun else TrialOutcome.NOT_TRIED
                undoing = replace(found, reason=reason, outcome=outcome)
                return (restore_all(self._host, undoing),)
            case Duty.WAIT:
                with explained("clear up"):
                    self._clear_early_backups(interrupted)
                return ()
            case Duty.NOTHING:
                with explained("clear up"), contextlib.suppress(UnsafeError):
                    files.require_own(self._host, interrupted)
                    clearing.remove_duplicate_names(self._host, interrupted)
                return ()

    def _clear_early_backups(self, transaction: Transaction) -> None:
        """Remove what a commit that was killed has left before it was recorded.

        It would be a second name of a file that has nobody else's.
        """
        for change in transaction.files:
            clearing.clear_backup(self._host, change)

    @contextlib.contextmanager
    def _undone_on_error(self, transaction: Transaction) -> Iterator[None]:
        try:
            yield
        except BaseException as err:  # Ctrl-C is no reason to leave anything, either
            restore_after(self._host, transaction, err)
            raise
