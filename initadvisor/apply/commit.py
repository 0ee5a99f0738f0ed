"""The moment when a transaction replaces files: nobody else works, the machine stays on.

The image that was replaced last gets a menu entry; entries whose image is gone are removed.
"""

from __future__ import annotations

import contextlib
import logging
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
from initadvisor.trial.markers import forget_previous, note_previous

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    paths = [str(machine_path(host, planned.image.path)) for planned in images]
    _first_planned(host, loader, [(path, path) for path in paths], label="")


def settle_previous_entry(host: Host) -> str | None:
    """Have the entry boot what the latest transaction replaced; without any, there is no entry.

    Returns the image that it boots, as the machine names it. Raises ``InitadvisorError`` where it
    cannot be written or removed; ``RefusedError`` where the boot loader cannot have one. Whoever
    changes what it goes by notes that before (``note_previous``), for the next run to come here.
    """
    image = _settle(host)
    forget_previous(host)
    return image


def _settle(host: Host) -> str | None:
    kept = tuple(_kept(host))
    if not kept:
        _remove(host)
        return None
    transaction = kept[0][0]
    loader = detect_boot_loader(host)
    # Where none can be made any more, an earlier one whose image is gone must not stay.
    remove_stale(host, loader)
    label = ascii(transaction.setting.before).strip("'") if transaction.setting else ""
    pairs = [(change.path, backup) for _, change, backup in kept]
    plan = _first_planned(host, loader, pairs, label=label)
    loader.write(host, plan)
    return plan.request.image


def _remove(host: Host) -> None:
    try:
        loader = detect_boot_loader(host)
    except RefusedError:  # it has never got one
        return
    loader.remove(host, EntryKind.PREVIOUS)


def _kept(host: Host) -> Iterator[tuple[Transaction, FileChange, str]]:
    """Yield the images that the latest transaction replaced, as far as they still stand."""
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
            yield from found
            return


def _first_planned(
    host: Host, loader: BootLoader, pairs: Iterable[tuple[str, str]], *, label: str
) -> TrialPlan:
    """Plan an entry with the first image that the default entry loads."""
    error: InitadvisorError | None = None
    for replaces, image in pairs:
        request = TrialRequest(kind=EntryKind.PREVIOUS, replaces=replaces, image=image, label=label)
        try:
            return loader.trial(host, request)
        except InitadvisorError as err:
            error = error or err
    if error is None:
        msg = "no image is to be replaced"
        raise InitadvisorError(msg)
    raise error


def remove_stale(host: Host, loader: BootLoader) -> tuple[EntryKind, ...]:
    """Remove the entries of ours whose image is gone; return which these were.

    Raises ``InitadvisorError`` where an entry cannot be read or removed.
    """
    stale = []
    for kind in EntryKind:
        image = loader.entry(host, kind)
        if image is not None and not is_file(host, image):
            loader.remove(host, kind)
            stale.append(kind)
    return tuple(stale)
