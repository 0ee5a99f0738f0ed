"""What a campaign does to the machine: the trial slot, the entry, the selection; and back."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader, loader_named
from initadvisor.bootloaders.safety import ignores_options
from initadvisor.boots.loaded_files import loaded_part
from initadvisor.campaign.campaign import (
    Campaign,
    CampaignAction,
    CampaignEvent,
    CampaignEventKind,
    Quarantined,
    TrialBoot,
)
from initadvisor.core.config import Restart
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.firmware.signers import require_same_signers
from initadvisor.generators.detect import detect_generator
from initadvisor.generators.ukify import NAME as UKIFY
from initadvisor.generators.ukify import unify
from initadvisor.host.configuration import load_config
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.lab.verify import building_place
from initadvisor.transaction.transaction import ProofStage, TransactionState
from initadvisor.transaction.transactions import pending
from initadvisor.trial.default_boot import image_of
from initadvisor.trial.evidence import known_panics
from initadvisor.trial.markers import forget_entry, forget_rehearsed, note_rehearsed, was_rehearsed
from initadvisor.trial.one_boot import (
    entry_loader,
    lacked,
    new_boot,
    new_name,
    once_more,
    plan_entry,
    remove_entry,
    select_entry,
    with_entry,
    write_entry,
)
from initadvisor.trial.slot import (
    UnfitError,
    clear_slot,
    fill_slot,
    fill_with_copy,
    slot_beside,
)

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import TrialPlan
    from initadvisor.campaign.campaign import DefaultBoot, TrialCandidate
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import ArmedBoot


_POLICY = "trial"


class ActionExecutor:
    """Does what has to be done to the machine while other runs are kept out.

    ``attended``: a person is at the machine.
    """

    def __init__(self, host: Host, *, attended: bool) -> None:
        self._host = host
        self._attended = attended
        self._plan: TrialPlan | None = None

    def do(self, action: CampaignAction, campaign: Campaign) -> CampaignEvent | None:
        """Do it; return what came of it, where that is an event.

        Raises ``InitadvisorError`` where what stands there cannot be removed.
        """
        match action:
            case CampaignAction.COPY | CampaignAction.WRITE_ENTRY | CampaignAction.ARM:
                return self._towards(action, campaign)
            case CampaignAction.DISARM | CampaignAction.REMOVE_ENTRY | CampaignAction.CLEAR_SLOT:
                self._back(action, campaign)
            case CampaignAction.NOTE_REHEARSED if campaign.trial_boots:
                note_rehearsed(self._host, campaign.trial_boots[-1].armed_boot.loader)
            case CampaignAction.FORGET_REHEARSED:
                forget_rehearsed(self._host)
            case _:
                pass
        return None

    def _towards(self, action: CampaignAction, campaign: Campaign) -> CampaignEvent | None:
        trial_boot = campaign.current
        if trial_boot is None or campaign.default_boot is None:
            return None
        try:
            match action:
                case CampaignAction.COPY:
                    return self._copied(campaign, campaign.default_boot, trial_boot)
                case CampaignAction.WRITE_ENTRY:
                    write_entry(self._host, self._planned())
                    return None
                case _:
                    ignore = campaign.ignore_unlocking
                    select_entry(self._host, self._planned(), ignore_unlocking=ignore)
                    return CampaignEvent(kind=CampaignEventKind.ARMED)
        except UnfitError as err:
            refused = Quarantined(
                setting=trial_boot.setting, reason=err.message, sha256=trial_boot.sha256
            )
            return CampaignEvent(kind=CampaignEventKind.REFUSED, refused=refused)
        except InitadvisorError as err:
            return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason=err.with_hint)

    def _copied(
        self, campaign: Campaign, default: DefaultBoot, trial_boot: TrialBoot
    ) -> CampaignEvent:
        """Have the image where the loader finds it, and plan the entry that loads it."""
        if waiting := pending(self._host):  # whose boot may be armed: there is one selection only
            msg = f"transaction {waiting[0].number} ({waiting[0].purpose}) is not over"
            raise UnsafeError(msg, hint="it goes on afterwards")
        armed = trial_boot.armed_boot
        today = _todays(campaign)
        if today and trial_boot.sha256 == today.sha256:
            with open_regular(self._host.path(default.image)) as file:
                part = loaded_part(file, is_uki=default.is_uki)
                sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes, once=True)
                if sha256 != trial_boot.sha256:
                    msg = f"{default.image} is not what it was"
                    raise UnsafeError(msg)
            if armed.image != default.image:
                _copy_today(self._host, default.image)
        elif default.is_uki:
            self._fill_with_uki(armed, _candidate(campaign, trial_boot))
        else:
            fill_slot(self._host, armed.image, _candidate(campaign, trial_boot))
        generator = detect_generator(self._host)
        self._plan = plan_entry(
            self._host,
            loader=armed.loader,
            trial=armed.trial,
            replaces=default.image,
            image=armed.image,
            generator=generator.NAME if generator else "",
            lacking=self._may_lack(campaign),
        )
        planned = replace(trial_boot, armed_boot=with_entry(self._host, armed, self._plan))
        return CampaignEvent(kind=CampaignEventKind.PLANNED, trial_boot=planned)

    def _fill_with_uki(self, armed: ArmedBoot, candidate: TrialCandidate) -> None:
        """Have today's unified kernel image made anew with a candidate, and that in the slot."""
        host = self._host
        _, installed = image_of(host, loader_named(armed.loader).default_entry(host))
        with building_place(host) as place:
            built = place / "new"
            unify(host, installed, Path(candidate.path), built)
            require_same_signers(host, installed.path, built)
            with open_regular(built) as file:
                part = loaded_part(file, is_uki=True)
                held = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
                whole = sha256_of(file)
                size_bytes = file.seek(0, os.SEEK_END)
            if held != candidate.sha256:
                msg = f"what {UKIFY} made of {candidate.setting} does not hold it"
                raise UnfitError(msg)
            unified = replace(candidate, path=str(built), sha256=whole, size_bytes=size_bytes)
            fill_slot(host, armed.image, unified)

    def _may_lack(self, campaign: Campaign) -> frozenset[Restart]:
        """Return what the next boot may lack (``plan_entry``).

        Raises ``UsageError`` for a configuration that cannot be meant.
        """
        if self._attended:
            return frozenset({Restart.WATCHDOG} if campaign.reboots else Restart)
        for_policy = campaign.by_policy or campaign.only_rehearsal
        consented = load_config(self._host).person_resets if for_policy else frozenset()
        if campaign.by_policy:
            return consented
        planned = [found.armed_boot for found in campaign.trial_boots if found.armed_boot.entry]
        return consented | (lacked(planned[-1]) if planned else {Restart.WATCHDOG})

    def _planned(self) -> TrialPlan:
        if self._plan is None:
            msg = "not arming a boot: its entry was not planned by this run"
            raise UnsafeError(msg, hint="try again")
        return self._plan

    def _back(self, action: CampaignAction, campaign: Campaign) -> None:
        """Remove what is a campaign's; what a proving boot has armed is none of it."""
        host = self._host
        if action is CampaignAction.CLEAR_SLOT:
            for slot in _slots(host, campaign):
                clear_slot(host, slot)
            return
        loader = entry_loader(host)
        if loader is None:
            forget_entry(host)  # a power cut may have left half a note
            return
        if any(t.state is TransactionState.PROVING for t in pending(host)):
            return
        if action is CampaignAction.DISARM:
            loader.disarm(host)
        else:
            remove_entry(host, loader)


def trial_boot_of(host: Host, campaign: Campaign, candidate: TrialCandidate | None) -> TrialBoot:
    """Return what is to be armed for a candidate, None for a rehearsal; nothing is done yet.

    Raises ``UnsafeError`` (``RefusedError``) where the loader or the machine is not known.
    """
    loader = detect_boot_loader(host)
    if campaign.default_boot is None:
        msg = "not arming a boot: it is not known what boots by default"
        raise UnsafeError(msg)
    chosen = candidate or _todays(campaign)
    if chosen is None:
        msg = "not arming a boot: today's image is not among what was prepared"
        raise UnsafeError(msg)
    image = campaign.default_boot.image
    # Beside the default image no addon may lie: it would be of every boot.
    as_it_is = chosen.today and not ignores_options(host, loader.default_entry(host))
    armed = new_boot(
        host,
        loader=loader.NAME,
        stage=ProofStage.REHEARSAL if candidate is None else ProofStage.PROOF,
        trial=new_name(_POLICY, campaign.number),
        image=image if as_it_is else slot_beside(host, image),
        sha256=chosen.sha256,
        size_bytes=chosen.size_bytes,
        is_uki=campaign.default_boot.is_uki,
        ignore_unlocking=campaign.ignore_unlocking,
    )
    return TrialBoot(
        setting=chosen.setting,
        sha256=chosen.sha256,
        release=campaign.default_boot.release,
        armed_boot=armed,
        at_s=int(time.time()),
        known_panics=known_panics(host),
    )


def armed_again(host: Host, campaign: Campaign, trial_boot: TrialBoot) -> TrialBoot:
    """Return the same, to be armed in this boot under another name."""
    armed = once_more(host, trial_boot.armed_boot, trial=new_name(_POLICY, campaign.number))
    at_s, known = int(time.time()), known_panics(host)
    return replace(trial_boot, armed_boot=armed, at_s=at_s, known_panics=known)


def needs_rehearsal(host: Host) -> bool:
    """Tell whether this machine's loader has yet to show that it boots an entry only once."""
    return not was_rehearsed(host, detect_boot_loader(host).NAME)


def _todays(campaign: Campaign) -> TrialCandidate | None:
    return next((found for found in campaign.ready if found.today), None)


def _copy_today(host: Host, image: str) -> None:
    """Have the slot hold today's image; raises ``UnsafeError`` where it cannot."""
    try:
        fill_with_copy(host, image)
    except UnfitError as err:  # which would be told of a candidate
        raise UnsafeError(err.message, hint=err.hint) from err


def _candidate(campaign: Campaign, trial_boot: TrialBoot) -> TrialCandidate:
    for candidate in campaign.ready:
        if candidate.sha256 == trial_boot.sha256 and not candidate.today:
            return candidate
    msg = f"{trial_boot.setting} is not among the candidates that were prepared"
    raise UnsafeError(msg)


def _slots(host: Host, campaign: Campaign) -> tuple[str, ...]:
    """Return where an image of this campaign's may lie."""
    images = [campaign.default_boot.image] if campaign.default_boot else []
    images += [trial_boot.armed_boot.image for trial_boot in campaign.trial_boots]
    return tuple(dict.fromkeys(slot_beside(host, image) for image in images))
