"""The moment when a transaction replaces files: nobody else works, the machine stays on.

The image that was replaced last gets a menu entry; entries whose image is gone are removed.
"""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind, TrialRequest
from initadvisor.bootloaders.places import is_file
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.refusals import RefusedError
from initadvisor.host.package_managers import package_managers_held
from initadvisor.host.power import inhibited
from initadvisor.host.storage.mounts import machine_path
from initadvisor.transaction import files
from initadvisor.transaction.files import Holding
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transaction import FileRole, TransactionState
from initadvisor.trial.beside import take_down
from initadvisor.trial.markers import forget_previous, note_previous
from initadvisor.trial.one_boot import first_planned
from initadvisor.trial.ownership import require_no_orphan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from initadvisor.apply.plan_values import PlannedImage
    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import TrialPlan
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange, Transaction
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
    try:
        require_no_orphan(host, detect_boot_loader(host), EntryKind.PREVIOUS)
    except InitadvisorError as err:
        if entry:
            engine.undo(transaction, reason=err.message)
            raise
        _log.warning("the previous image gets no entry in the menu: %s", err.with_hint)
        return engine.commit(transaction)
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


def require_previous_entry(host: Host, images: Iterable[PlannedImage]) -> None:
    """Raise ``UnsafeError`` where no entry could be made for the images that are to be replaced.

    ``RefusedError`` where it is for the boot loader's sake. One image that the default entry loads
    is enough: the others are loaded by nothing that boots by itself.
    """
    loader = detect_boot_loader(host)
    require_no_orphan(host, loader, EntryKind.PREVIOUS)
    paths = [str(machine_path(host, path)) for one in images for path in one.image.paths]
    _first_planned(host, loader, [(path, path) for path in paths], label="")


def settle_previous_entry(host: Host) -> None:
    """Have the entry boot what the latest transaction replaced; without any, there is no entry.

    Raises ``InitadvisorError`` where it cannot be written or removed; ``RefusedError`` where the
    boot loader cannot have one. Whoever changes what it goes by notes that before
    (``note_previous``), for the next run to come here.
    """
    if kept := _kept(host):
        _write(host, kept)
    else:
        _remove(host)
    forget_previous(host)


def try_to_settle_previous_entry(host: Host) -> None:
    """Settle it, or say in the log why not: an entry for what is gone boots nothing by itself."""
    try:
        settle_previous_entry(host)
    except InitadvisorError as err:
        _log.warning("the previous image's entry in the menu is not right: %s", err.with_hint)


def _write(host: Host, kept: Sequence[tuple[Transaction, FileChange, str]]) -> None:
    transaction = kept[0][0]
    loader = detect_boot_loader(host)
    # Where none can be made any more, an earlier one whose image is gone must not stay.
    remove_stale(host, loader)
    label = ascii(transaction.setting.former).strip("'") if transaction.setting else ""
    pairs = [(change.path, backup) for _, change, backup in kept]
    loader.write(host, _first_planned(host, loader, pairs, label=label))


def _remove(host: Host) -> None:
    try:
        loader = detect_boot_loader(host)
    except RefusedError:  # it has never got one
        return
    loader.remove(host, EntryKind.PREVIOUS)


def _kept(host: Host) -> list[tuple[Transaction, FileChange, str]]:
    """Return the images that the latest transaction replaced, as far as they still stand."""
    for transaction in reversed(read_transactions(host)):
        if transaction.state is not TransactionState.COMMITTED:
            continue
        # Where nothing is mounted, nothing can be said of what it holds.
        files.require_mounted(host, transaction)
        found = [
            (transaction, change, change.backup)
            for change in transaction.files
            if change.role is FileRole.IMAGE
            and change.backup is not None
            and change.before is not None
            # Of another kernel it would be, had the generator made the image anew since.
            and files.holding(host, change) is Holding.NEW
            and files.is_kept(host, change)
        ]
        if found:
            return found
    return []


def _first_planned(
    host: Host, loader: BootLoader, pairs: Iterable[tuple[str, str]], *, label: str
) -> TrialPlan:
    """Plan an entry with the first image that the default entry loads."""
    kind = EntryKind.PREVIOUS
    requests = (
        TrialRequest(kind=kind, replaces=replaces, image=image, label=label)
        for replaces, image in pairs
    )
    plans = (partial(loader.trial, host, request) for request in requests)
    return first_planned(plans, without=InitadvisorError("no image is to be replaced"))


def remove_stale(host: Host, loader: BootLoader) -> None:
    """Remove the entries of ours whose image is gone.

    Raises ``InitadvisorError`` where an entry cannot be read or removed.
    """
    for kind in EntryKind:
        image = loader.entry(host, kind)
        if image is not None and not is_file(host, image):
            if kind is EntryKind.TRIAL:
                take_down(host, loader)
            else:
                loader.remove(host, kind)
