"""The images that entries of ours load, as transactions and campaigns have recorded them.

The entry of a proving boot loads a staged image, which no generator knows of; later the same bytes
are the installed image, or are gone. What a campaign boots lies in the trial slot for that boot.
The previous image's entry boots one that a transaction has replaced and kept.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.boots.loaded_files import beside, loaded_part
from initadvisor.campaign.record import read_campaigns
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.records.attribution import KnownImage
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import FileRole, ProofStage, TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from initadvisor.campaign.campaign import TrialBoot
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import ArmedBoot, Transaction


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Armed:
    """What was armed, and where its image is now; ``is_waiting``: nobody has moved that yet."""

    armed_boot: ArmedBoot
    path: str
    setting: Setting | None
    is_waiting: bool


class TrialImages:
    """What was armed for trials; of a transaction only the latest arming is known."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._armed: dict[str, _Armed] = {}
        try:
            for transaction in read_records(host):
                if isinstance(transaction, InitadvisorError):
                    _log.warning("the image of a trial is not known: %s", transaction.message)
                elif transaction.armed_boot:
                    armed = transaction.armed_boot
                    self._armed[armed.trial] = _armed(transaction, armed)
            for campaign in read_campaigns(host):
                if isinstance(campaign, InitadvisorError):
                    _log.warning("the images of trials are not known: %s", campaign.message)
                    continue
                for trial_boot in campaign.trial_boots:
                    known = _armed_by(trial_boot, is_waiting=trial_boot is campaign.current)
                    self._armed[trial_boot.armed_boot.trial] = known
        except InitadvisorError as err:
            _log.warning("the images of trials are not known: %s", err.message)

    def extra_cmdline(self, trial: str | None) -> tuple[str, ...]:
        """Return the words that a trial's entry added to the command line."""
        known = self._armed.get(trial or "")
        return known.armed_boot.extra_cmdline if known else ()

    def images(self, trial: str) -> tuple[KnownImage, ...]:
        """Return the image of a trial, once for each way of loading it; none where it is unknown.

        While the trial is waited for, it is what the file holds now: not what was armed, if
        somebody has written to it since. The setting is known of what a transaction has staged.
        """
        if (known := self._armed.get(trial)) is None:
            return ()
        armed, path = known.armed_boot, self._host.path(known.path)
        try:
            if known.is_waiting:
                found = _images_of(self._host, path, is_uki=armed.is_uki)
            else:
                ways = ((),) if armed.is_uki else beside(self._host, path)
                found = _images(path, armed.size_bytes, armed.sha256, ways, is_uki=armed.is_uki)
        except (InitadvisorError, OSError) as err:
            _log.warning("the image of trial %s cannot be read: %s", trial, err)
            return ()
        return tuple(
            replace(
                image,
                setting=known.setting if image.sha256 == armed.sha256 else None,
                trial=armed.trial,
                entries=(armed.entry,) if armed.entry else (),
            )
            for image in found
        )


def _armed(transaction: Transaction, armed: ArmedBoot) -> _Armed:
    """Return what a transaction has armed; once it is committed, what was staged is installed."""
    staged = [change for change in transaction.files if change.staged == armed.image]
    is_moved = bool(staged) and transaction.state is TransactionState.COMMITTED
    setting = transaction.setting if armed.stage is ProofStage.PROOF else None
    return _Armed(
        armed_boot=armed,
        path=staged[0].path if is_moved else armed.image,
        setting=Setting.parse(setting.after) if setting else None,
        is_waiting=transaction.state is TransactionState.PROVING,
    )


def _armed_by(trial_boot: TrialBoot, *, is_waiting: bool) -> _Armed:
    """Return what a campaign has armed; the image is what was armed, once nobody waits any more."""
    return _Armed(
        armed_boot=trial_boot.armed_boot,
        path=trial_boot.armed_boot.image,
        setting=None if trial_boot.is_rehearsal else Setting.parse(trial_boot.setting),
        is_waiting=is_waiting,
    )


def replaced_images(host: Host) -> Iterator[tuple[KnownImage, datetime]]:
    """Yield what was replaced and kept, once for each way of loading it, with when it was written.

    What cannot be read is left out, with a word in the log.
    """
    for record in read_records(host):
        if isinstance(record, InitadvisorError) or record.state is not TransactionState.COMMITTED:
            continue
        for change in record.files:
            if change.role is FileRole.IMAGE and change.backup is not None:
                is_uki = change.path.endswith(".efi")
                path = host.path(change.backup)
                try:
                    found = _images_of(host, path, is_uki=is_uki)
                    since = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
                    setting = Setting.parse(record.setting.before) if record.setting else None
                except (InitadvisorError, OSError) as err:
                    _log.info("%s is left out: %s", change.backup, err)
                    continue
                yield from ((replace(image, setting=setting), since) for image in found)


def _images_of(host: Host, path: Path, *, is_uki: bool) -> tuple[KnownImage, ...]:
    """Return what a file is now, once for each way of loading it."""
    with open_regular(path) as file:
        part = loaded_part(file, is_uki=is_uki)
        sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes, once=True)
    ways = (part.with_bytes,) if is_uki else beside(host, path)
    return _images(path, part.size_bytes, sha256, ways, is_uki=is_uki)


def _images(
    path: Path, size_bytes: int, sha256: str, ways: Iterable[tuple[int, ...]], *, is_uki: bool
) -> tuple[KnownImage, ...]:
    return tuple(
        KnownImage(
            path=str(path),
            size_bytes=size_bytes,
            sha256=sha256,
            is_uki=is_uki,
            beside_bytes=sizes,
        )
        for sizes in ways
    )
