"""Several files replaced as one: all new or all old, whatever happens in between.

The order is: record what is planned, have all new contents on the disk under names of their own,
read them back, keep the old contents, record that they are going to be replaced, replace them one
by one. Whoever comes after an interruption finishes if replacing had begun, else clears up.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.host.lock import waited_lock
from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.transaction import (
    Duty,
    FileChange,
    FileRole,
    Transaction,
    TransactionEvent,
    TransactionState,
)
from initadvisor.workflow import transaction_files as files
from initadvisor.workflow.transaction_files import Holding, NewContent
from initadvisor.workflow.transaction_log import (
    forget_transaction,
    log_directory,
    own_transactions,
    read_transactions,
    write_transaction,
)
from initadvisor.workflow.transaction_room import require_room

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.proof import Proof
    from initadvisor.model.transaction import SettingChange
    from initadvisor.workflow.transaction_room import Room

_log = logging.getLogger(__name__)

_WAIT_S = 10.0
_ROLES = tuple(FileRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One file to be replaced, or made where there is none (with ``mode``).

    ``path`` is the machine's. ``new`` is its content, or is called with a path in the same
    directory where it is to make it; ``size_bytes`` is then how large that may become.
    ``keep``: whether the old content stays until it is pruned. Without, there is no way back once
    this file was replaced.
    """

    path: str
    role: FileRole
    new: NewContent
    size_bytes: int = 0
    keep: bool = True
    mode: int = 0o644


@contextlib.contextmanager
def transactions(host: Host, *, wait_s: float = _WAIT_S) -> Iterator[Transactions]:
    """Be the only run that replaces files; raises ``InitadvisorError`` if another one stays."""
    what = "another run that replaces files"
    with waited_lock(log_directory(host) / "lock", what=what, wait_s=wait_s):
        yield Transactions(host)


def pending(host: Host) -> tuple[Transaction, ...]:
    """Return the transactions that are neither finished nor undone; see ``read_transactions``."""
    return _unfinished(read_transactions(host))


class Transactions:
    """What may be done with the lock held. Every method returns the transaction as it is then.

    They raise ``InitadvisorError`` for what cannot be read or written, after undoing the
    transaction as far as that can be done; ``recover`` of the next run does the rest.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def begin(
        self,
        replacements: Sequence[Replacement],
        *,
        purpose: str,
        setting: SettingChange | None = None,
        room: Sequence[Room] = (),
    ) -> Transaction:
        """Plan to replace files and have their new contents on the disk, beside them.

        ``setting``: what the transaction is about. ``room``: what the makers of contents need
        elsewhere. Raises ``UnsafeError`` before anything
        is written for links, for what there is no room for, and while another one is pending.
        """
        recorded = own_transactions(self._host)
        if waiting := _unfinished(recorded):
            msg = f"not replacing anything: transaction {waiting[0].number} is {waiting[0].state}"
            raise UnsafeError(msg, hint="have it finished or undone first")
        number = max((t.number for t in recorded), default=0) + 1
        ordered = sorted(replacements, key=lambda item: _ROLES.index(item.role))
        with _explained("plan to replace files"):
            planned = tuple(self._planned(item, number, i) for i, item in enumerate(ordered))
            _require_distinct(self._host, planned)
            require_room(self._host, planned, ordered, room)
        transaction = Transaction(
            number=number,
            state=TransactionState.PLANNED,
            purpose=purpose,
            setting=setting,
            began_at_s=int(time.time()),
            files=planned,
        )
        write_transaction(self._host, transaction)
        with self._undone_on_error(transaction), _explained("write the new contents"):
            staged = tuple(
                replace(change, after=files.stage(self._host, change, item.new))
                for change, item in zip(planned, ordered, strict=True)
            )
            return self._recorded(replace(transaction, files=staged), TransactionEvent.STAGE)

    def verify(
        self, transaction: Transaction, check: Callable[[Transaction], None] | None = None
    ) -> Transaction:
        """Read the new contents back from the device, and have the caller's ``check`` look at them.

        What the check raises undoes the transaction.
        """
        with self._undone_on_error(transaction), _explained("read the new contents back"):
            for change in transaction.files:
                if files.content(self._host.path(change.staged)) != change.after:
                    msg = f"what the disk holds in {change.staged} is not what was written"
                    raise UnsafeError(msg, hint="the disk or its file system may be failing")
            if check is not None:
                check(transaction)
            return self._recorded(transaction, TransactionEvent.VERIFY)

    def prove(self, transaction: Transaction, proof: Proof) -> Transaction:
        """Have it wait for a boot of the staged images; nothing is replaced before ``commit``.

        Also while it waits: the rehearsal is followed by the proof, and either may be armed again.
        It is recorded before anything is armed.
        """
        return self._recorded(replace(transaction, proof=proof), TransactionEvent.PROVE)

    def commit(self, transaction: Transaction) -> Transaction:
        """Replace all files; raises ``UnsafeError`` if somebody else has replaced one meanwhile."""
        with self._undone_on_error(transaction), _explained("replace files"):
            for change in transaction.files:
                self._require_unchanged(change)
            for change in transaction.files:
                files.back_up(self._host, change)
            transaction = self._recorded(transaction, TransactionEvent.COMMIT)
        return self._finish(transaction)

    def undo(
        self, transaction: Transaction, *, reason: str, leave: Collection[str] = ()
    ) -> Transaction:
        """Have all files as they were before; ``left`` of the result names those that are not.

        These are those that ``leave`` names: others have changed them, or the caller has built them
        anew. Refused with ``UnsafeError`` where others have changed any other one, while a later
        transaction has replaced the same files, and where a kept content is gone.
        """
        if transaction.state is TransactionState.COMMITTED:
            with _explained("look at what is to be restored"):
                self._require_restorable(transaction, leave)
        return self._restore(replace(transaction, reason=reason, left=tuple(leave)))

    def recover(self) -> tuple[Transaction, ...]:
        """Finish or undo what earlier runs have left, and return what became of each."""
        done = []
        for found in _unfinished(own_transactions(self._host)):
            transaction = found.after(TransactionEvent.INTERRUPT)
            match transaction.state.duty:
                case Duty.REPLACE:
                    done.append(self._finish(transaction))
                case Duty.RESTORE:
                    reason = found.reason or "it was interrupted"
                    done.append(self._restore(replace(found, reason=reason)))
                case Duty.WAIT | Duty.NOTHING:
                    pass
        return tuple(done)

    def prune(self, *, keep: int = 0) -> tuple[Transaction, ...]:
        """Drop what is kept for going back, but for the latest ``keep``; return what was dropped.

        The earliest go first, so that what stays can still be gone back over.
        """
        settled = [t for t in own_transactions(self._host) if t.state.duty is Duty.NOTHING]
        back = [t for t in settled if t.state is not TransactionState.UNDONE]
        kept = {t.number for t in back[-keep:]} if keep else set()
        dropped = tuple(t for t in settled if t.number not in kept)
        for transaction in dropped:
            with _explained("drop what is kept"):
                for change in transaction.files:
                    files.clear_backup(self._host, change)
            forget_transaction(self._host, transaction)
        return dropped

    def _planned(self, item: Replacement, number: int, index: int) -> FileChange:
        path = self._host.path(item.path)
        stem = f"{item.path.rpartition('/')[0]}/.initadvisor-{number}-{index}"
        # A dot in front: shells, generators and loaders that take all files of a directory do not
        # take these, and none of them ends like what they look for.
        return FileChange(
            path=item.path,
            role=item.role,
            staged=f"{stem}.new",
            backup=f"{stem}.old" if item.keep else None,
            before=files.identity(path, inodes=files.has_links(self._host, path.parent)),
            mode=item.mode,
        )

    def _recorded(self, transaction: Transaction, event: TransactionEvent) -> Transaction:
        after = transaction.after(event)
        write_transaction(self._host, after)
        return after

    def _finish(self, transaction: Transaction) -> Transaction:
        try:
            with _explained("replace files"):
                for change in transaction.files:
                    self._put(change)
                for change in transaction.files:
                    files.clear_staged(self._host, change)
                return self._recorded(transaction, TransactionEvent.FINISH)
        except InitadvisorError as err:
            # An error of the disk here, too, leaves it to the next run.
            with contextlib.suppress(OSError):
                if self._can_go_back(transaction):
                    self._restore_after(transaction, err)
            raise

    def _put(self, change: FileChange) -> None:
        held = files.holding(self._host, change)
        if held is Holding.OTHER:
            raise _meanwhile(change)
        same = change.before is not None and change.before.content == change.after
        if held is Holding.NEW or same:
            files.settle(self._host, change)
        else:
            files.put(self._host, change)

    def _can_go_back(self, transaction: Transaction) -> bool:
        """Tell whether no file was replaced whose old content nobody kept."""
        return all(
            change.backup is not None
            or change.before is None
            or files.holding(self._host, change) is not Holding.NEW
            for change in transaction.files
        )

    def _restore(self, transaction: Transaction) -> Transaction:
        transaction = self._recorded(transaction, TransactionEvent.UNDO)
        left, lost = [], []
        with _explained("restore files"):
            for change in reversed(transaction.files):
                if change.path in transaction.left:
                    left.append(change.path)
                    files.clear_backup(self._host, change)
                    files.clear_staged(self._host, change)
                    continue
                match files.holding(self._host, change):
                    case Holding.OLD:
                        files.settle(self._host, change)
                        files.clear_backup(self._host, change)
                    case Holding.NEW if not files.put_back(self._host, change):
                        lost.append(change.path)
                    case Holding.OTHER:
                        left.append(change.path)
                    case _:
                        pass
                files.clear_staged(self._host, change)
        if lost:
            _log.warning("what was in %s before is lost", ", ".join(lost))
        event = TransactionEvent.LOSE if lost else TransactionEvent.RESTORE
        return self._recorded(replace(transaction, left=tuple(left)), event)

    @contextlib.contextmanager
    def _undone_on_error(self, transaction: Transaction) -> Iterator[None]:
        try:
            yield
        except BaseException as err:  # Ctrl-C is no reason to leave anything, either
            self._restore_after(transaction, err)
            raise

    def _restore_after(self, transaction: Transaction, err: BaseException) -> None:
        """Undo after an error, which is the one to be told; what fails now is left to recover."""
        try:
            self._restore(replace(transaction, reason=str(err) or type(err).__name__))
        except InitadvisorError as again:
            _log.warning("not undone yet: %s", again)

    def _require_unchanged(self, change: FileChange) -> None:
        path = self._host.path(change.path)
        inodes = change.before is not None and change.before.inode is not None
        if files.identity(path, inodes=inodes) != change.before:
            raise _meanwhile(change)

    def _require_restorable(self, transaction: Transaction, leave: Collection[str]) -> None:
        paths = {change.path for change in transaction.files} - set(leave)
        for later in own_transactions(self._host):
            if (
                later.number > transaction.number
                and later.state is not TransactionState.UNDONE
                and not paths.isdisjoint(change.path for change in later.files)
            ):
                msg = f"not undoing transaction {transaction.number}: {later.number} came after it"
                raise UnsafeError(msg, hint=f"undo {later.number} first")
        for change in transaction.files:
            if change.path in leave:
                continue
            held = files.holding(self._host, change)
            if held is Holding.OTHER:
                raise _meanwhile(change)
            if held is Holding.NEW and not self._is_kept(change):
                msg = f"not undoing transaction {transaction.number}: what was in {change.path} "
                msg += "before is gone"
                raise UnsafeError(msg, hint="have the generator make it anew")

    def _is_kept(self, change: FileChange) -> bool:
        if change.before is None:
            return True
        path: Path | None = self._host.path(change.backup) if change.backup else None
        return path is not None and files.content(path) == change.before.content


def _unfinished(recorded: Sequence[Transaction]) -> tuple[Transaction, ...]:
    return tuple(t for t in recorded if t.state.duty is not Duty.NOTHING)


def _meanwhile(change: FileChange) -> UnsafeError:
    msg = f"not replacing {change.path}: it was changed meanwhile, not by this program"
    return UnsafeError(msg, hint="begin again, from what is there now")


def _require_distinct(host: Host, changes: Sequence[FileChange]) -> None:
    """Refuse one file under two names: on vfat ``A`` and ``a`` are the same."""
    seen: set[object] = set()
    for change in changes:
        path = host.path(change.path)
        place: object = change.path
        if change.before is not None:
            status = path.stat()
            place = (status.st_dev, status.st_ino)
        if place in seen:
            msg = f"not replacing {change.path}: it is named twice"
            raise UnsafeError(msg)
        seen.add(place)


@contextlib.contextmanager
def _explained(action: str) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        where = f" ({err.filename})" if err.filename else ""
        msg = f"cannot {action}{where}: {err.strerror or err}"
        raise InitadvisorError(msg) from err
