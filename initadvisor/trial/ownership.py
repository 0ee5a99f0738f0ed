"""What this program has left on partitions and in the firmware of which no record here tells.

Of another system that shares them, it is left alone: only its owner knows what it is for. Of this
system it is an orphan: a snapshot took the state directory back, but not ``/boot``. That goes only
when somebody says so.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.bootloaders.places import is_file
from initadvisor.campaign.record import read_campaign
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.generators.detect import detect_generator
from initadvisor.host.files import listing
from initadvisor.host.owner import is_named_like_ours, owner_of_host, owner_of_name
from initadvisor.host.record_files import DamagedRecordError, OlderRecordError
from initadvisor.host.storage.mounts import machine_path
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import TransactionState
from initadvisor.trial.markers import noted_entry, previous_noted
from initadvisor.trial.slot import slot_beside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import OwnedEntry
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction


_log = logging.getLogger(__name__)

_STOP = "initadvisor trial stop"
_DROP = "initadvisor rollback --drop --confirm"
REMOVED_BY = {EntryKind.TRIAL: _STOP, EntryKind.PREVIOUS: _DROP}
"""What removes this system's entries of which no record tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """A file (its path on this machine) or a boot entry (as the loader calls it).

    ``owner`` is None where the name does not say it. ``removed_by``: the command that removes an
    orphan of this system, empty for what is another's.
    """

    name: str
    owner: str | None
    is_entry: bool
    removed_by: str = ""


def unrecorded(host: Host) -> tuple[Unrecorded, ...]:
    """Return what no record of this system tells of, entries first.

    What cannot be looked at is not among it, and nothing is an orphan while a record cannot be
    read. Without root entries are not looked at.
    """
    # Files and entries before records: who makes them records that first.
    entries, paths = _entries(host), tuple(_paths(host))
    try:
        own, known = owner_of_host(host), _Known(host)
    except InitadvisorError as err:
        _log.info("what is left without a record is not known: %s", err.message)
        own, known = None, None
    found = []
    for entry in entries:
        if own is None or entry.owner != own:
            found.append(Unrecorded(name=entry.identifier, owner=entry.owner, is_entry=True))
        elif known and not known.tells_of(entry):
            remedy = REMOVED_BY[entry.kind]
            name = entry.identifier
            found.append(Unrecorded(name=name, owner=own, is_entry=True, removed_by=remedy))
    for path in paths:
        owner = owner_of_name(path)
        if own is None or owner != own:
            found.append(Unrecorded(name=path, owner=owner, is_entry=False))
        elif known and not known.tells_of_file(path):
            remedy = _STOP if path == slot_beside(host, path) else _DROP
            found.append(Unrecorded(name=path, owner=own, is_entry=False, removed_by=remedy))
    return tuple(found)


def orphans_of_changes(host: Host) -> tuple[Unrecorded, ...]:
    """Return what this system's changes have left and no record tells of; not a trial's."""
    return tuple(found for found in unrecorded(host) if found.removed_by == _DROP)


def require_no_orphan(host: Host, loader: BootLoader, kind: EntryKind) -> None:
    """Raise ``UnsafeError`` where this system has an entry of a kind of which no record tells.

    Whoever went on would replace it, and it may be armed.
    """
    if orphan := orphaned_entry(host, loader, kind):
        msg = f"no record tells of the boot entry {orphan}, which this system has written"
        raise UnsafeError(msg, hint=f"{REMOVED_BY[kind]} removes it")


def orphaned_entry(host: Host, loader: BootLoader, kind: EntryKind) -> str | None:
    """Return what the loader calls this system's entry of a kind of which no record tells.

    None where there is none, or the image of a previous one is gone: it boots nothing. Raises
    ``InitadvisorError`` where that cannot be read.
    """
    own = owner_of_host(host)
    entries = [e for e in loader.owned_entries(host) if (e.owner, e.kind) == (own, kind)]
    if kind is EntryKind.PREVIOUS:
        entries = [e for e in entries if e.image is not None and is_file(host, e.image)]
    known = _Known(host) if entries else None
    return next((e.identifier for e in entries if known and not known.tells_of(e)), None)


class _Known:
    """What the records of this system tell of; raises ``InitadvisorError`` for unreadable ones."""

    def __init__(self, host: Host) -> None:
        transactions = _transactions(host)
        self._trial = (
            _campaign_is_on(host)
            or noted_entry(host) is not None
            or any(t.state is TransactionState.PROVING for t in transactions)
        )
        self._previous_noted = previous_noted(host)
        changes = [change for t in transactions for change in t.files]
        self._stems = tuple(change.staged.removesuffix("new") for change in changes)
        self._backups = {change.backup for change in changes}

    def tells_of(self, entry: OwnedEntry) -> bool:
        match entry.kind:
            case EntryKind.TRIAL:
                return self._trial
            case EntryKind.PREVIOUS:
                return self._previous_noted or entry.image in self._backups

    def tells_of_file(self, path: str) -> bool:
        name = PurePosixPath(path).name
        if name.startswith(".partial-"):  # goes when the next one is written
            return True
        return path.startswith(self._stems) or (self._trial and name.endswith("-trial"))


def _campaign_is_on(host: Host) -> bool:
    """Tell whether one may have armed a boot; what a bad record is about is not known."""
    try:
        return not read_campaign(host).state.is_over
    except DamagedRecordError:
        return True


def _transactions(host: Host) -> Sequence[Transaction]:
    found: list[Transaction] = []
    for record in read_records(host):
        if isinstance(record, InitadvisorError):
            if not isinstance(record, OlderRecordError):
                raise record
        else:
            found.append(record)
    return found


def _entries(host: Host) -> tuple[OwnedEntry, ...]:
    try:
        return detect_boot_loader(host).owned_entries(host) if host.is_root else ()
    except InitadvisorError as err:
        _log.info("the entries of other systems are not known: %s", err.message)
        return ()


def _paths(host: Host) -> Iterator[str]:
    """Yield what is named like ours beside images and what was replaced."""
    for directory in sorted(set(_directories(host))):
        try:
            for path in listing(host, directory):
                if is_named_like_ours(path.name):
                    yield f"{directory.rstrip('/')}/{path.name}"
        except NeedsRootError as err:
            _log.info("%s", err.message)


def _directories(host: Host) -> Iterable[str]:
    yield "/boot"
    try:
        generator = detect_generator(host)
        for image in generator.images(host) if generator else ():
            yield from (str(machine_path(host, path).parent) for path in image.paths)
    except InitadvisorError as err:
        _log.info("the images of this machine are not known: %s", err.message)
    for record in read_records(host):
        if not isinstance(record, InitadvisorError):
            yield from (str(PurePosixPath(change.path).parent) for change in record.files)
