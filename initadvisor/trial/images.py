"""The images that trial entries loaded, as transactions and campaigns have recorded them.

The entry of a proving boot loads a staged image, which no generator knows of; later the same bytes
are the installed image, or are gone. What a campaign boots lies in the trial slot for that boot.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.boots.loaded_files import beside, loaded_part
from initadvisor.campaign.record import read_campaigns
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.records.attribution import KnownImage
from initadvisor.transaction.armed_boot import ProofStage
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.campaign.campaign import TrialBoot
    from initadvisor.host import Host
    from initadvisor.transaction.armed_boot import ArmedBoot
    from initadvisor.transaction.transaction import Transaction


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
                    armed = _armed(transaction, transaction.armed_boot)
                    self._armed[armed.armed_boot.trial] = armed
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
        if (armed := self._armed.get(trial)) is None:
            return ()
        if armed.is_waiting:
            try:
                return tuple(self._of_file(armed))
            except (InitadvisorError, OSError) as err:
                _log.warning("the image of trial %s cannot be read: %s", trial, err)
                return ()
        return tuple(self._of_record(armed))

    def _of_file(self, armed: _Armed) -> Iterator[KnownImage]:
        path, is_uki = self._host.path(armed.path), armed.armed_boot.is_uki
        with open_regular(path) as file:
            part = loaded_part(file, is_uki=is_uki)
            sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes, once=True)
        setting = armed.setting if sha256 == armed.armed_boot.sha256 else None
        for sizes in (part.with_bytes,) if is_uki else beside(self._host, path):
            yield self._image(armed, setting, part.size_bytes, sha256, sizes)

    def _of_record(self, armed: _Armed) -> Iterator[KnownImage]:
        proof = armed.armed_boot
        ways = ((),) if proof.is_uki else beside(self._host, self._host.path(armed.path))
        for sizes in ways:
            yield self._image(armed, armed.setting, proof.size_bytes, proof.sha256, sizes)

    def _image(
        self,
        armed: _Armed,
        setting: Setting | None,
        size_bytes: int,
        sha256: str,
        beside_bytes: tuple[int, ...],
    ) -> KnownImage:
        return KnownImage(
            path=str(self._host.path(armed.path)),
            size_bytes=size_bytes,
            sha256=sha256,
            setting=setting,
            is_uki=armed.armed_boot.is_uki,
            beside_bytes=beside_bytes,
            trial=armed.armed_boot.trial,
            entries=(armed.armed_boot.entry,) if armed.armed_boot.entry else (),
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
