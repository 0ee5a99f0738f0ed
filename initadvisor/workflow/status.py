"""Looks up what is configured, what this boot used, what is pending and what is kept."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.generators.detect import detect_generator
from initadvisor.measure.record import running_boot_id
from initadvisor.model.boot_entry import EntryKind
from initadvisor.model.boot_record import RecordSource
from initadvisor.model.errors import InitadvisorError, NeedsRootError
from initadvisor.model.status import Backup, Entries, RunningBoot, Status
from initadvisor.model.transaction import Duty, TransactionState
from initadvisor.store.store import open_store
from initadvisor.workflow import transaction_files as files
from initadvisor.workflow.campaign_log import read_campaign
from initadvisor.workflow.transaction_log import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.campaign import Campaign
    from initadvisor.model.generator import ConfiguredSetting
    from initadvisor.model.transaction import Content, FileChange, Transaction

_SMALL_BYTES = 1 << 20
"""Configurations are compared every time, images only when asked for."""

_NOT_MEASURED = "this boot was not measured: initadvisor measure does it"
_AS_ROOT = "only root may look at the boot loader"


def status(host: Host, *, check: bool = False) -> Status:
    """Return what there is; what cannot be read, or not by this user, is said in words.

    ``check``: have also what is kept of large files read whole, which takes time.
    """
    notes: list[str] = []
    generator, image, configured = _configured(host, notes)
    records = read_records(host)
    recorded = tuple(r for r in records if not isinstance(r, InitadvisorError))
    notes += [str(r) for r in records if isinstance(r, InitadvisorError)]
    kept, doubts = backups(host, recorded, check=check)
    notes += doubts
    return Status(
        generator=generator,
        image=image,
        configured=configured,
        running=_running(host),
        transactions=recorded,
        pending=tuple(t for t in recorded if t.state.duty is not Duty.NOTHING),
        backups=kept,
        entries=_entries(host),
        campaign=_campaign(host, notes),
        notes=tuple(notes),
    )


def backups(
    host: Host, recorded: Sequence[Transaction], *, check: bool = False
) -> tuple[tuple[Backup, ...], tuple[str, ...]]:
    """Return the files that transactions keep, and what is wrong with those that they do not.

    Small files are compared with what is recorded of them; others by their size, unless ``check``.
    """
    doubts: list[str] = []
    return tuple(_backups(host, recorded, doubts, check=check)), tuple(doubts)


def _configured(
    host: Host, notes: list[str]
) -> tuple[str | None, Path | None, ConfiguredSetting | None]:
    generator = detect_generator(host)
    if generator is None:
        notes.append(f"no generator of initramfs images was found below {host.root}")
        return None, None, None
    image: Path | None = None
    try:
        images = generator.images(host)
        if not images:
            notes.append(f"no image of {generator.NAME} was found")
            return generator.NAME, None, None
        image = images[0].path
        configured = generator.configured(host, images[0].kernel_release)
    except InitadvisorError as err:
        notes.append(err.message)
        return generator.NAME, image, None
    return generator.NAME, image, configured


def _campaign(host: Host, notes: list[str]) -> Campaign | None:
    try:
        latest = read_campaign(host)
    except InitadvisorError as err:
        notes.append(err.with_hint)
        return None
    return latest if latest.number else None


def _running(host: Host) -> RunningBoot:
    try:
        boot_id = running_boot_id(host)
        with open_store(host, readonly=True) as store:
            latest = store.boots(source=RecordSource.UNIT, limit=1)
    except InitadvisorError as err:
        return RunningBoot(words=err.message)
    if not latest or latest[0].boot_id != boot_id:
        return RunningBoot(words=_NOT_MEASURED)
    found = latest[0].attribution
    return RunningBoot(
        words=found.words,
        certainty=found.certainty,
        image=found.image.path if found.image else None,
        setting=latest[0].setting,
    )


def _backups(
    host: Host, recorded: Sequence[Transaction], notes: list[str], *, check: bool
) -> Iterator[Backup]:
    held: dict[str, Content | None] = {}
    for index, transaction in enumerate(recorded):
        if transaction.state is TransactionState.UNDONE:
            continue
        after = [t for t in recorded[index + 1 :] if t.state is TransactionState.COMMITTED]
        later = [change for t in after for change in t.files]
        for change in transaction.files:
            if change.backup is None or change.before is None:
                continue
            path, kept = host.path(change.backup), change.before.content
            try:
                size_bytes = path.lstat().st_size
                compared = check or size_bytes <= _SMALL_BYTES
                found = Backup(
                    path=change.backup,
                    of=change.path,
                    transaction=transaction.number,
                    size_bytes=size_bytes,
                    current=_leads_back(host, change, later, held),
                    compared=compared,
                    problem=_damage(path, kept, compare=compared),
                )
            except FileNotFoundError:
                if (reason := _not_mounted(host, transaction)) is not None:
                    notes.append(reason)
                elif transaction.state is TransactionState.COMMITTED:
                    notes.append(
                        f"{change.backup}, kept by transaction {transaction.number}, is gone"
                    )
            except (InitadvisorError, OSError) as err:
                notes.append(f"{change.backup} cannot be looked at: {err}")
            else:
                yield found


def _leads_back(
    host: Host,
    change: FileChange,
    later: Sequence[FileChange],
    held: dict[str, Content | None],
) -> bool:
    """Tell whether undoing what came later, one by one, gives what this change made of the file.

    ``held``: what files hold, as far as it was read already: images are large.
    """
    if change.path not in held:
        held[change.path] = files.content(host.path(change.path))
    made = change.after
    for following in later:
        if following.path == change.path:
            if following.before is None or following.before.content != made:
                return False
            made = following.after
    return made is not None and held[change.path] == made


def _damage(path: Path, kept: Content, *, compare: bool) -> str:
    """Say in what a file is not what was kept, "" where it seems to be."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return "it is no ordinary file any more"
    if status.st_size != kept.size_bytes:
        return f"it has {status.st_size} bytes, not {kept.size_bytes}"
    if compare and files.content(path) != kept:
        return "it has another content"
    return ""


def _not_mounted(host: Host, transaction: Transaction) -> str | None:
    try:
        files.require_mounted(host, transaction)
    except InitadvisorError as err:
        return err.message
    return None


def _entries(host: Host) -> Entries:
    try:
        loader = detect_boot_loader(host)
        return Entries(
            loader=loader.NAME,
            trial=loader.entry(host, EntryKind.TRIAL),
            previous=loader.entry(host, EntryKind.PREVIOUS),
            next_boot=loader.armed(host),
        )
    except NeedsRootError:
        return Entries(problem=_AS_ROOT)
    except InitadvisorError as err:
        return Entries(problem=err.message)
