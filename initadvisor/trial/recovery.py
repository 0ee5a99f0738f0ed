"""Clears up after campaigns of which no record tells: it was damaged, or removed.

What is ours is known by what the machine itself shows: the boot loader's entry and selection by
their names, the trial slots by theirs beside the images of this machine.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.campaign.record import read_campaign, read_campaigns, set_older_aside
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.refusals import RefusedError
from initadvisor.generators.detect import detect_generator
from initadvisor.host.record_files import DamagedRecordError, OlderRecordError
from initadvisor.host.renames import quarantine_file
from initadvisor.host.storage.mounts import machine_path
from initadvisor.transaction.log import readable_transactions
from initadvisor.transaction.transaction import TransactionState
from initadvisor.trial.one_boot import entry_loader, remove_entry
from initadvisor.trial.slot import clear_slot, slot_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.bootloaders import BootLoader
    from initadvisor.host import Host


_log = logging.getLogger(__name__)


def without_damaged_record(host: Host) -> tuple[str, ...]:
    """Set a latest record that cannot be read aside, nothing of it left; return what was done.

    Only with the lock of transactions held. Raises ``InitadvisorError`` where something of it
    cannot be removed: the record stays then.
    """
    done: list[str] = []
    while (damaged := _damaged(host)) is not None:
        done += clear_unrecorded(host)
        aside = quarantine_file(damaged.path)
        done.append(f"{damaged.message}; it is kept as {aside.name}")
    return tuple(done)


def without_older_records(host: Host) -> None:
    """Set records of an older layout aside, with a word in the log; nothing goes by what they say.

    Where the latest is one, what may be armed is cleared up as it is without a record. Only with
    the lock of transactions held. Raises ``InitadvisorError`` like ``without_damaged_record``.
    """
    found = read_campaigns(host)
    if found and isinstance(found[-1], OlderRecordError):
        for line in clear_unrecorded(host):
            _log.info("%s", line)
    set_older_aside(host)


def clear_unrecorded(host: Host) -> tuple[str, ...]:
    """Remove a campaign's selection, entry and images wherever they may be; return what there was.

    What a proving boot has armed is none of it. Only with the lock of transactions held, and where
    no campaign that can be read stands. Raises ``InitadvisorError``.
    """
    done = []
    if (loader := _loader(host)) is not None:
        if loader.disarm(host):
            done.append("the next boot is the default entry's again: a trial's was armed")
        if remove_entry(host, loader):
            done.append("the trial's boot entry was removed")
    for slot in filled_slots(host):
        clear_slot(host, slot)
        done.append(f"{host.path(slot)} was removed")
    return tuple(done)


def disarm_unrecorded(host: Host) -> bool:
    """Take a campaign's selection back; return whether there was one. Raises as above."""
    loader = _loader(host)
    return loader is not None and loader.disarm(host)


def left_over(host: Host) -> tuple[str, ...]:
    """Return what lies there of a campaign, in words; where none is on, nothing should.

    As far as it can be seen: a boot partition may be closed to all but root.
    """
    found = [f"{host.path(slot)} is left of a trial" for slot in filled_slots(host)]
    try:
        if host.is_root and (loader := _loader(host)) and loader.entry(host, EntryKind.TRIAL):
            found.append("a trial's boot entry is left")
    except InitadvisorError as err:
        _log.info("whether a trial's boot entry is left is not known: %s", err.message)
    return tuple(found)


def _damaged(host: Host) -> DamagedRecordError | None:
    try:
        read_campaign(host)
    except DamagedRecordError as err:
        return err
    return None


def _loader(host: Host) -> BootLoader | None:
    """Return the loader whose entry may be a campaign's, None where it cannot be."""
    if any(t.state is TransactionState.PROVING for t in readable_transactions(host)):
        return None
    try:
        return entry_loader(host) or detect_boot_loader(host)
    except RefusedError:  # one that nothing could ever have been armed with
        return None


def filled_slots(host: Host) -> Iterator[str]:
    """Yield where an image of a trial's lies, by the machine's names."""
    try:
        generator = detect_generator(host)
        images = generator.images(host) if generator else ()
        paths = [machine_path(host, path) for image in images for path in image.paths]
        places = {slot_beside(host, str(path)) for path in paths}
    except InitadvisorError as err:
        _log.warning("images of trials are not looked for: %s", err.with_hint)
        return
    for slot in sorted(places):
        path = host.path(slot)
        if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
            yield slot
