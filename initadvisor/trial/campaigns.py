"""Carries a campaign out: a step at each boot, and whenever somebody asks.

A boot is armed in the boot before it, as soon as that was judged, not while the machine shuts down:
the image is copied, read back and selected with all the time that takes, nothing can be cut off by
the end of a shutdown's patience, and a power cut at any moment leaves a selection that its loader
forgets. What may come in between is seen to: the selection is taken back before the machine sleeps
(initadvisor-sleep.service), and as soon as a kernel upgrade, a rebuilt image or another command
line is seen; a boot that comes before that was seen is not held against its candidate.

Everything is recorded before it is done (``campaign.step``). Only what touches the machine keeps
other runs out: builds and virtual machines take minutes, during which a campaign can be stopped.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.campaign.campaign import (
    Campaign,
    CampaignEvent,
    CampaignEventKind,
    CampaignState,
    Quarantined,
)
from initadvisor.campaign.record import (
    following_number,
    is_noted_active,
    read_campaign,
    read_campaigns,
    write_campaign,
)
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.generators.running import elsewhere
from initadvisor.host.record_files import DamagedRecordError, OlderRecordError
from initadvisor.lab.observing import Unseen
from initadvisor.transaction.transactions import pending, transactions
from initadvisor.trial.beside import require_can_sign, require_can_unify
from initadvisor.trial.campaign_actions import needs_rehearsal
from initadvisor.trial.default_boot import default_boot
from initadvisor.trial.evidence import require_boot_time_unit
from initadvisor.trial.markers import noted_entry
from initadvisor.trial.one_boot import is_of_this_boot, require_told
from initadvisor.trial.ownership import require_no_orphan
from initadvisor.trial.reboot import call_off_reboot, require_unattended_boot
from initadvisor.trial.recovery import (
    clear_unrecorded,
    disarm_unrecorded,
    without_damaged_record,
    without_older_records,
)
from initadvisor.trial.risks import require_return
from initadvisor.trial.run import REHEARSAL_WORDS, Advanced, CampaignRun
from initadvisor.trial.slot import require_free_slot, slot_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host
    from initadvisor.trial.candidates import CampaignObserver, NextTrial


_log = logging.getLogger(__name__)

NOT_STARTED = "it could not be started"
"""With what the reason of a campaign begins that was ended by its own start."""

_NOTHING_ARMED = frozenset({CampaignState.PREPARING, CampaignState.CHOOSING})
"""Where a run leaves a campaign that is to go on, but not now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """What the user asks for; fields as the options of ``initadvisor trial start``.

    ``by_policy``: it is not a user, but the daemon's policy. ``without``: what is not to be booted.
    """

    only: tuple[str, ...] = ()
    most_boots: int = 20
    only_rehearsal: bool = False
    reboots: bool = False
    ignore_unlocking: bool = False
    by_policy: bool = False
    without: tuple[Quarantined, ...] = ()


def start(host: Host, options: CampaignOptions, *, observer: CampaignObserver) -> Advanced:
    """Begin a campaign, build and verify its candidates and arm the first boot.

    Raises ``UnsafeError`` (``RefusedError``) where something is against it, among it that no
    virtual machine can verify candidates, and ``InitadvisorError`` where it fails. No campaign is
    on then, nor after an interruption: nobody expects boots of a command that has not succeeded.
    """
    require_startable(host, options)
    _set_older_aside(host)
    alone = read_campaign(host)
    if alone.only_rehearsal and not alone.state.is_over:
        stop(host, reason="another campaign begins, with a rehearsal of its own")
    with transactions(host):
        _require_none_pending(host)
        earlier = read_campaign(host)
        if not earlier.state.is_over:
            msg = f"campaign {earlier.number} is {earlier.state}"
            raise UnsafeError(msg, hint="initadvisor trial resume goes on, trial stop ends it")
        loader = detect_boot_loader(host)
        default = default_boot(host, loader)
        entry = loader.default_entry(host)
        require_can_sign(host, entry)
        if not options.only_rehearsal:
            require_can_unify(host, entry)
        require_free_slot(host, slot_beside(host, default.image))
        new = Campaign(
            number=following_number(host),
            began_at_s=int(time.time()),
            only=options.only,
            most_boots=options.most_boots,
            only_rehearsal=options.only_rehearsal,
            reboots=options.reboots,
            ignore_unlocking=options.ignore_unlocking,
            by_policy=options.by_policy,
            default_boot=default,
            quarantined=options.without,
        )
    run = CampaignRun(host, observer, attended=not options.by_policy)
    with _ended_on_error(host, new.number):
        done = run.feed(CampaignEvent(kind=CampaignEventKind.START, campaign=new))
        if done.campaign.number == new.number and done.campaign.state in _NOTHING_ARMED:
            raise UnsafeError(done.campaign.reason, hint="nothing was armed")
    return done


def rehearse(host: Host) -> tuple[str, ...]:
    """Have the next boot try the loader with today's image, if it has to be tried; else do nothing.

    It is a campaign of that one boot. One that is on is left alone, as it begins with the same.
    Returns what was done, a line each; raises what ``start`` does.
    """
    if is_noted_active(host):
        return advance(host, may_build=False).told
    if not needs_rehearsal(host):
        return ()
    only = CampaignOptions(most_boots=1, only_rehearsal=True)
    return start(host, only, observer=Unseen()).told


def require_startable(host: Host, options: CampaignOptions) -> None:
    """Raise ``UnsafeError`` (``RefusedError``) for what is against trials on this machine."""
    _require_own_system(host)
    _require_none_pending(host)
    try:
        require_boot_time_unit(host)
    except UnsafeError as err:
        raise UnsafeError(err.message, hint="install initadvisor's units") from err
    loader = detect_boot_loader(host)
    require_no_orphan(host, loader, EntryKind.TRIAL)
    for refusal in loader.refusals(host):
        if not (refusal.kind.may_be_overridden and options.ignore_unlocking):
            hint = refusal.remedy
            if refusal.kind.may_be_overridden:
                hint += "; --ignore-unlocking goes on all the same"
            raise UnsafeError(refusal.reason, hint=hint)
    if options.reboots:
        require_return(host)
        require_unattended_boot(host)


def advance(
    host: Host, *, observer: CampaignObserver | None = None, may_build: bool = True
) -> Advanced:
    """Judge the boot that was armed, and arm the next one; what is done already is not done again.

    A campaign that reboots by itself has its next reboot announced.

    Without ``may_build`` no candidate is built or verified: the sandbox of a unit that runs at each
    boot has no room for that. Raises ``NeedsRootError``, ``UnsafeError`` in a container, on a live
    system and while a package manager is at work, and ``InitadvisorError`` where something cannot
    be done yet: it is then left to the next run.
    """
    _set_older_aside(host)
    if not is_noted_active(host):
        return Advanced(campaign=read_campaign(host))
    _require_own_system(host)
    return CampaignRun(host, observer or Unseen(), may_build=may_build).feed(
        CampaignEvent(kind=CampaignEventKind.FOUND)
    )


def carry_on(host: Host) -> tuple[str, ...]:
    """Do what a unit does for a campaign: all but building. Returns what was done, a line each."""
    return advance(host, may_build=False).told


def pause(host: Host, *, reason: str = "it was paused") -> Advanced:
    """Have nothing armed, and nothing on the boot partition, until it is resumed.

    A reboot that was announced for it is called off, and the machine does not reboot by itself any
    more. Raises like ``advance``.
    """
    return _asked(host, CampaignEvent(kind=CampaignEventKind.PAUSE, reason=reason))


def resume(host: Host, *, observer: CampaignObserver, reboots: bool | None = None) -> Advanced:
    """Go on with a paused campaign; one that is not paused is advanced.

    ``reboots``: whether the machine reboots by itself from now on, None: as before. Raises
    ``UnsafeError`` where none is on, and what ``advance`` does.
    """
    _require_own_system(host)
    _set_older_aside(host)
    if reboots:
        require_return(host)
        require_unattended_boot(host)
    with transactions(host):
        campaign = read_campaign(host)
        if campaign.state.is_over:
            msg = f"no campaign is on: the latest is {campaign.state}"
            raise UnsafeError(msg, hint="initadvisor trial start begins one")
        if reboots is not None:
            write_campaign(host, replace(campaign, reboots=reboots))
    paused = campaign.state is CampaignState.PAUSED
    run = CampaignRun(host, observer, attended=True)
    return run.feed(
        CampaignEvent(
            kind=CampaignEventKind.RESUME if paused else CampaignEventKind.FOUND, reason="resumed"
        )
    )


def arm_next(host: Host, *, observer: CampaignObserver) -> Advanced:
    """Arm the next boot of a campaign that is on; raises ``UnsafeError`` for one that is paused.

    Raises what ``resume`` does besides.
    """
    _set_older_aside(host)
    campaign = read_campaign(host)
    if campaign.state is CampaignState.PAUSED:
        msg = f"not arming a boot: campaign {campaign.number} is paused"
        raise UnsafeError(msg, hint="initadvisor trial resume goes on")
    return resume(host, observer=observer)


def stop(host: Host, *, reason: str = "it was stopped") -> Advanced:
    """End it, and leave the machine as it was: no entry, no selection, nothing in the slot.

    So it does where no record tells of it: one that cannot be read is set aside. A reboot that was
    announced for it is called off. Raises like ``advance``.
    """
    _require_own_system(host)
    with transactions(host):
        told = without_damaged_record(host)
    done = _asked(host, CampaignEvent(kind=CampaignEventKind.STOP, reason=reason))
    with transactions(host):
        if read_campaign(host).state.is_over:  # else another run has begun one meanwhile
            told += clear_unrecorded(host)
    return replace(done, told=(*told, *done.told))


def withdraw(host: Host, *, reason: str) -> tuple[str, ...]:
    """End what is on or left of a campaign, and return what was done; raises like ``stop``."""
    if not is_noted_active(host) and noted_entry(host) is None:
        return ()
    return stop(host, reason=reason).told


def take_back(host: Host) -> tuple[str, ...]:
    """Take an armed selection back; ``advance`` arms it again unless something has changed.

    What no record tells of, or was armed in an earlier boot, stays taken back. Returns what was
    done; an upgrade asks several times, and is told once.
    """
    if not is_noted_active(host):
        return ()
    _require_own_system(host)
    try:
        trial_boot = read_campaign(host).current
    except DamagedRecordError as err:
        with transactions(host):
            taken = disarm_unrecorded(host)
        return (f"no trial is armed any more: {err.with_hint}",) if taken else ()
    if trial_boot is None or not is_of_this_boot(host, trial_boot.armed_boot):
        with transactions(host):
            taken = disarm_unrecorded(host)
        return ("no trial is armed any more",) if taken else ()
    require_told(host, trial_boot.armed_boot)
    CampaignRun(host, Unseen()).feed(CampaignEvent(kind=CampaignEventKind.TAKE_BACK))
    told = trial_boot.armed_boot.taken_back
    return () if told else ("the campaign has no boot armed for the time being",)


def next_choice(host: Host, *, observer: CampaignObserver) -> NextTrial | None:
    """Return which boot is next and why, None while none can be chosen; changes nothing.

    Whether the loader has to be rehearsed first, only root can tell.
    """
    from initadvisor.trial.candidates import NextTrial, next_trial

    campaign = read_campaign(host)
    if campaign.state.is_over or not campaign.ready:
        return None
    today = next((found for found in campaign.ready if found.today), None)
    if campaign.current and campaign.state is not CampaignState.BOOTED:
        sha256 = campaign.current.sha256
        armed = next((found for found in campaign.ready if found.sha256 == sha256), None)
        return NextTrial(candidate=armed, reason=f"it is {campaign.state} already")
    if host.is_root and needs_rehearsal(host):
        return NextTrial(candidate=today, reason=REHEARSAL_WORDS)
    return next_trial(host, campaign, observer=observer)


@contextlib.contextmanager
def _ended_on_error(host: Host, number: int) -> Iterator[None]:
    """End a campaign that could not be started; the error is the one to be told."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit) as err:
        why = str(err) if isinstance(err, Exception) else "it was interrupted"
        try:
            if read_campaign(host).number == number:
                stop(host, reason=f"{NOT_STARTED}: {why}")
        except InitadvisorError as again:
            _log.warning("campaign %d is not ended yet: %s", number, again.with_hint)
        raise


def _set_older_aside(host: Host) -> None:
    """See ``without_older_records``; raises ``NeedsRootError`` where there are any."""
    if any(isinstance(record, OlderRecordError) for record in read_campaigns(host)):
        _require_own_system(host)
        with transactions(host):
            without_older_records(host)


def _asked(host: Host, event: CampaignEvent) -> Advanced:
    _require_own_system(host)
    _set_older_aside(host)
    reboots = read_campaign(host).reboots
    done = CampaignRun(host, Unseen()).feed(event)
    if reboots:
        call_off_reboot(host)
    return done


def _require_own_system(host: Host) -> None:
    if not host.is_root:
        msg = "cannot carry a campaign on: only root may write boot entries"
        raise NeedsRootError(msg)
    if place := elsewhere(host):
        msg = f"no trials: this is {place}, not the installed system"
        raise UnsafeError(msg)


def _require_none_pending(host: Host) -> None:
    if waiting := pending(host):
        first = waiting[0]
        msg = f"no trials now: transaction {first.number} ({first.purpose}) is {first.state}"
        raise UnsafeError(msg, hint="initadvisor status shows it")
