"""``rollback``: plans and does the way back to before the latest transaction, or gives it up.

To give it up is to remove what is kept for it, and the previous image's menu entry.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from initadvisor.apply.build import rebuilt_images, require_as_built
from initadvisor.apply.commit import (
    settle_previous_entry,
    try_to_settle_previous_entry,
    undisturbed,
)
from initadvisor.apply.loaded import same_copies
from initadvisor.apply.proving import withdraw
from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import RefusedError
from initadvisor.core.text import decoded
from initadvisor.generators.detect import generator_of_image
from initadvisor.host.storage.mounts import machine_path
from initadvisor.rewrite.files import FileEdit
from initadvisor.transaction import clearing, files
from initadvisor.transaction.backups import backups
from initadvisor.transaction.files import Holding
from initadvisor.transaction.log import own_transactions, read_transactions
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import Duty, FileRole, TransactionState, droppable
from initadvisor.transaction.transactions import transactions
from initadvisor.trial.markers import note_previous
from initadvisor.trial.ownership import orphans_of_changes, require_no_orphan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.apply.plan_values import RebuiltImage
    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host
    from initadvisor.lab.verify import BuildingObserver
    from initadvisor.transaction.backups import Backup
    from initadvisor.transaction.transaction import SettingChange, Transaction
    from initadvisor.transaction.transactions import Transactions


_log = logging.getLogger(__name__)

_REASON = "rolled back"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """What came of it. ``unverified``: why no kernel was asked about images that were rebuilt."""

    transaction: Transaction
    unverified: str = ""


def plan_rollback(host: Host) -> RollbackPlan | None:
    """Return what would be done, None where there is nothing to go back to.

    Raises ``UnsafeError`` where the configuration was changed by somebody else since, or an
    interrupted transaction has to be finished first.
    """
    recorded = read_transactions(host)
    for transaction in recorded:
        if transaction.state.duty is Duty.WAIT:
            return RollbackPlan(transaction=transaction, waiting=True)
        if transaction.state.duty is not Duty.NOTHING:
            msg = f"not going back: transaction {transaction.number} was interrupted"
            raise UnsafeError(msg, hint="initadvisor settle finishes or undoes it")
    committed = [t for t in recorded if t.state is TransactionState.COMMITTED and t.setting]
    return _planned(host, committed[-1]) if committed else None


def rollback(
    host: Host,
    plan: RollbackPlan,
    *,
    unverified: bool = False,
    reason: str = _REASON,
    observer: BuildingObserver,
) -> RolledBack:
    """Do what was planned; ``reason`` is what is remembered of why.

    ``unverified``: also where no kernel can be asked whether it unpacks what has to be rebuilt.
    Images are replaced before the configuration, so that whoever comes in between boots one that is
    whole. Raises ``UnsafeError`` where something has changed since the plan was made, and what
    building and replacing raise; the next run goes on where this one was interrupted.
    """
    transaction = plan.transaction
    host.require_root("go back")
    if plan.waiting:
        with transactions(host) as engine:
            return RolledBack(transaction=withdraw(host, engine, transaction, reason=reason))
    if not plan.rebuilt:
        with transactions(host) as engine, undisturbed(host):
            return RolledBack(transaction=_undo(host, engine, plan, reason))
    setting = _setting_of(transaction)
    with rebuilt_images(
        host,
        generator_of_image(setting.generator),
        plan.rebuilt,
        _old_texts(host, transaction),
        unverified=unverified,
        observer=observer,
    ) as (images, doubt):
        observer.doing("replacing configuration and images")
        with transactions(host) as engine, undisturbed(host):
            _replace(host, engine, plan, images)
            undone = _undo(host, engine, plan, reason)
            return RolledBack(transaction=undone, unverified=doubt)


def _planned(host: Host, transaction: Transaction) -> RollbackPlan:
    restored: list[str] = []
    anew: list[str] = []
    for change in transaction.files:
        match files.holding(host, change):
            case Holding.OLD:
                pass
            case Holding.NEW if files.is_kept(host, change):
                restored.append(change.path)
            case _ if change.role is FileRole.IMAGE:
                anew.append(change.path)
            case Holding.NEW:
                msg = f"cannot go back: what was in {change.path} before is not in {change.backup} "
                raise _cannot_restore(transaction, f"{msg}any more, or is damaged")
            case Holding.OTHER:
                msg = f"not going back: {change.path} was changed since, not by initadvisor"
                raise _cannot_restore(transaction, msg)
    installed = _installed(host, transaction) if anew else {}
    rebuilt = dict.fromkeys(
        (
            *(installed[path] for path in anew if path in installed),
            *_made_since(host, transaction),
        )
    )
    made = {str(machine_path(host, path)) for image in rebuilt for path in image.paths}
    return RollbackPlan(
        transaction=transaction,
        restored=tuple(path for path in restored if path not in made),
        rebuilt=tuple(rebuilt),
        gone=tuple(path for path in anew if path not in installed),
    )


def _cannot_restore(transaction: Transaction, message: str) -> UnsafeError:
    setting = _setting_of(transaction)
    hint = f"initadvisor apply {setting.before!r} changes the setting in what it is now"
    if setting.variant:
        hint = f"take the line of {setting.variant} out, and have the images made anew"
    return UnsafeError(message, hint=hint)


def _installed(host: Host, transaction: Transaction) -> Mapping[str, InstalledImage]:
    """Return the images by each of their paths, with those copies that were replaced with them."""
    generator = generator_of_image(_setting_of(transaction).generator)
    changed = {host.path(change.path) for change in transaction.files}
    images = (
        replace(image, copies=tuple(path for path in image.copies if path in changed))
        for image in generator.images(host)
    )
    return {str(machine_path(host, path)): image for image in images for path in image.paths}


def _made_since(host: Host, transaction: Transaction) -> tuple[InstalledImage, ...]:
    """Return the images that were made with what is taken back, and were not replaced with it.

    They are of kernels that came since. Rescue images stay, as those do that are older.
    """
    generator = generator_of_image(_setting_of(transaction).generator)
    changed = {change.path for change in transaction.files}
    edits = [
        FileEdit(path=str(host.path(change.path)), before=None, after="")
        for change in transaction.files
        if change.role is FileRole.CONFIGURATION
    ]
    found = []
    for image in generator.affected(host, edits):
        paths = {str(machine_path(host, path)) for path in image.paths}
        if image.fallback or changed & paths:
            continue
        try:
            if int(image.path.stat().st_mtime) > transaction.began_at_s:
                found.append(replace(image, copies=same_copies(image)))
        except OSError as err:
            msg = f"cannot look at {err.filename}: {err.strerror}"
            raise InitadvisorError(msg) from err
    return tuple(found)


def _setting_of(transaction: Transaction) -> SettingChange:
    if transaction.setting is None:
        msg = f"transaction {transaction.number} is not about a setting"
        raise InitadvisorError(msg)
    return transaction.setting


def _old_texts(host: Host, transaction: Transaction) -> Mapping[Path, str]:
    """Return what the configuration held before; a file that was not there reads as empty."""
    texts: dict[Path, str] = {}
    for change in transaction.files:
        if change.role is not FileRole.CONFIGURATION:
            continue
        texts[host.path(change.path)] = ""
        if change.before is None or change.backup is None:
            continue
        held = files.holding(host, change)
        kept = host.path(change.path if held is Holding.OLD else change.backup)
        try:
            texts[host.path(change.path)] = decoded(kept.read_bytes())
        except OSError as err:
            msg = f"cannot read {kept}: {err.strerror}"
            raise InitadvisorError(msg) from err
    return texts


def _replace(
    host: Host, engine: Transactions, plan: RollbackPlan, images: Sequence[RebuiltImage]
) -> None:
    """Replace the images that were made anew, keeping nothing: the state is to be the old one."""
    replacements = tuple(
        Replacement(
            path=str(machine_path(host, path)),
            role=FileRole.IMAGE,
            new=partial(files.copy, image.staged),
            size_bytes=image.size_bytes,
            keep=False,
        )
        for image in images
        for path in image.image.paths
    )
    purpose = f"rebuild to undo transaction {plan.transaction.number}"
    begun = engine.begin(replacements, purpose=purpose)
    check = partial(require_as_built, host, images, meanwhile="it was rebuilt")
    engine.commit(engine.verify(begun, check))


def _undo(host: Host, engine: Transactions, plan: RollbackPlan, reason: str) -> Transaction:
    made = {str(machine_path(host, path)) for image in plan.rebuilt for path in image.paths}
    leave = [change.path for change in plan.transaction.files if change.path in made]
    noted = _note_previous(host)
    undone = engine.undo(plan.transaction, reason=reason, leave=[*leave, *plan.gone])
    if noted:
        try_to_settle_previous_entry(host)
    return undone


def _note_previous(host: Host) -> bool:
    """Note that the entry is to be settled; not so where no record tells of the one that stands."""
    try:
        require_no_orphan(host, detect_boot_loader(host), EntryKind.PREVIOUS)
    except InitadvisorError as err:
        if not isinstance(err, RefusedError):  # of a loader that has no entry
            _log.warning("the previous image's entry stays as it is: %s", err.with_hint)
            return False
    note_previous(host)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """What would become of each file; paths are the machine's.

    ``restored``: the very files from before come back. ``rebuilt``: images that others have made
    since (a kernel upgrade, another kernel), or of which nothing was kept; they are made with the
    old configuration. ``gone``: images that are there no more, with their kernel. ``waiting``:
    nothing was replaced yet, and the boot that the transaction waits for is taken back.
    """

    transaction: Transaction
    restored: tuple[str, ...] = ()
    rebuilt: tuple[InstalledImage, ...] = ()
    gone: tuple[str, ...] = ()
    waiting: bool = False


def kept(host: Host, *, keep: int = 0) -> tuple[Backup, ...]:
    """Return the files that are kept for more than the ``keep`` latest changes."""
    return _backups(host, read_transactions(host), keep)


def drop(host: Host, *, keep: int = 0) -> tuple[Backup, ...]:
    """Remove them and the records of what is over; return those that stay, and why is logged.

    So go the files that this system has left and no record tells of. The menu entry goes after what
    is recorded: until then it names an image that is gone, which boots nothing by itself. Raises
    ``NeedsRootError``, and ``InitadvisorError`` where something cannot be removed.
    """
    host.require_root("remove what is kept")
    with transactions(host) as engine:
        note_previous(host)
        engine.prune(keep=keep)
        stay = _backups(host, own_transactions(host), keep)
        settle_previous_entry(host)
        for orphan in orphans_of_changes(host):
            if not orphan.is_entry:
                with files.explained(f"remove {orphan.name}"):
                    clearing.clear_orphan(host, orphan.name)
    return stay


def _backups(host: Host, recorded: Sequence[Transaction], keep: int) -> tuple[Backup, ...]:
    found, _ = backups(host, recorded)
    numbers = {transaction.number for transaction in droppable(recorded, keep)}
    return tuple(backup for backup in found if backup.transaction in numbers)
