"""What each event makes of a campaign, and what is to be done then.

The result is recorded before anything is done. Every state says by itself what there is to do
(``CampaignEventKind.FOUND``), so that a run that was killed, or lost power, after any of the
actions is made good by the next one. In a state that does not stand (``CampaignState.stands``)
nothing of a campaign is on the machine, and whoever finds one there clears up first.

What cannot happen in a state changes nothing: it comes from a run that worked without keeping
others out, while somebody paused or stopped the campaign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from initadvisor.campaign.campaign import (
    MOST_UNEXPLAINED,
    Campaign,
    CampaignAction,
    CampaignEvent,
    CampaignEventKind,
    CampaignState,
    Change,
    Quarantined,
    TrialBoot,
)
from initadvisor.records.trial_outcome import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_State, _Kind = CampaignState, CampaignEventKind

CLEAR: Final = (CampaignAction.DISARM, CampaignAction.REMOVE_ENTRY, CampaignAction.CLEAR_SLOT)
"""Leaves nothing of a campaign on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """The campaign after an event, and what is to be done, in this order."""

    campaign: Campaign
    actions: tuple[CampaignAction, ...] = ()


def duty(state: CampaignState) -> tuple[CampaignAction, ...]:
    """Return what a run has to do about a campaign that it finds."""
    match state:
        case _State.PREPARING:
            return (*CLEAR, CampaignAction.PREPARE)
        case _State.CHOOSING:
            return (*CLEAR, CampaignAction.CHOOSE)
        case _State.ARMING | _State.ARMED | _State.BOOTED:
            return (CampaignAction.JUDGE,)
        case _State.IDLE | _State.PAUSED | _State.DONE | _State.STOPPED:
            return CLEAR


def unchanged(campaign: Campaign) -> Transition:
    """Return the campaign as it is, with nothing to do."""
    return Transition(campaign=campaign)


def go_to(
    campaign: Campaign, state: CampaignState, reason: str, *before: CampaignAction
) -> Transition:
    """Go on in a state that does not stand; ``before``: what else there is to do.

    One that is paused has the machine reboot by itself no more: whoever resumes it says so anew.
    """
    told = (CampaignAction.REPORT,) if not state.is_active else ()
    reboots = campaign.reboots and state is not _State.PAUSED
    after = replace(campaign, state=state, reason=reason, reboots=reboots)
    actions = tuple(dict.fromkeys((*before, *duty(state), *told)))
    return Transition(campaign=after, actions=actions)


def go_on(campaign: Campaign, reason: str, *before: CampaignAction) -> Transition:
    """Choose the next boot, unless there may be none."""
    if campaign.boots >= campaign.most_boots:
        words = f"{reason}; all {campaign.most_boots} boots are used up"
        return go_to(campaign, _State.DONE, words, *before)
    if not (campaign.only_rehearsal or any(not found.today for found in campaign.eligible)):
        return go_to(campaign, _State.DONE, f"{reason}; no candidate is left", *before)
    return go_to(campaign, _State.CHOOSING, reason, *before)


def quarantine(campaign: Campaign, found: Quarantined) -> Campaign:
    """Return the campaign with a candidate that is not to be booted again."""
    others = tuple(q for q in campaign.quarantined if q.setting != found.setting)
    return replace(campaign, quarantined=(*others, found))


def ended(
    campaign: Campaign,
    outcome: TrialOutcome,
    words: str,
    *,
    rebooted: bool = False,
    boots: int = 0,
) -> Campaign:
    """Return the campaign with its armed boot judged; ``boots``: how many that counts as."""
    if campaign.current is None:
        return campaign
    last = replace(campaign.current, outcome=outcome, reason=words, rebooted=rebooted)
    return replace(
        campaign, trial_boots=(*campaign.trial_boots[:-1], last), boots=campaign.boots + boots
    )


def of_a_boot(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Take note of what became of the armed boot."""
    if not campaign.state.stands or campaign.current is None:
        return unchanged(campaign)
    if event.kind is _Kind.RUNNING:
        return unchanged(replace(campaign, state=_State.BOOTED, reason=event.reason))
    if event.kind is _Kind.ENDED and event.outcome:
        return _judged(campaign, campaign.current, event, event.outcome)
    return unchanged(campaign)


def _judged(
    campaign: Campaign, trial_boot: TrialBoot, event: CampaignEvent, outcome: TrialOutcome
) -> Transition:
    """Draw the conclusions from an armed boot that is over; each counts, whatever it was.

    Only a rehearsal that has passed does not: there is one of them.
    """
    if outcome in {TrialOutcome.PENDING, TrialOutcome.TAKEN_BACK, TrialOutcome.RUNNING}:
        return unchanged(campaign)
    if outcome is TrialOutcome.UNEXPLAINED and campaign.state is _State.ARMING:
        outcome = TrialOutcome.NOT_TRIED  # the run was interrupted: it may never have been selected
    passed = any(a.is_rehearsal and a.outcome is TrialOutcome.PASSED for a in campaign.trial_boots)
    is_free = trial_boot.is_rehearsal and outcome is TrialOutcome.PASSED and not passed
    boots = int(event.rebooted and not is_free)
    after = ended(campaign, outcome, event.reason, rebooted=event.rebooted, boots=boots)
    what = "the rehearsal" if trial_boot.is_rehearsal else trial_boot.setting
    words = f"{what}: {event.reason}"
    match outcome:
        case TrialOutcome.PASSED:
            noted = (CampaignAction.NOTE_REHEARSED,) if trial_boot.is_rehearsal else ()
            result = go_on(after, words, *noted)
        case TrialOutcome.FAILED:
            result = _failed(after, trial_boot, event.reason)
        case TrialOutcome.UNEXPLAINED if _unexplained(after, trial_boot) >= MOST_UNEXPLAINED:
            result = _failed(after, trial_boot, f"it did not come back, twice; {event.reason}")
        case TrialOutcome.STUCK:
            result = go_to(
                after, _State.DONE, words, CampaignAction.DISARM, CampaignAction.FORGET_REHEARSED
            )
        case TrialOutcome.UNREADABLE:
            result = go_to(after, _State.PAUSED, words)
        case TrialOutcome.WITHDRAWN if (
            campaign.state is not _State.ARMING
        ):  # not by a run that was killed
            result = go_to(after, _State.PAUSED, words)
        case _:
            result = go_on(after, words)
    return result


def _failed(campaign: Campaign, trial_boot: TrialBoot, reason: str) -> Transition:
    """Never boot it again; a loader that cannot even boot today's image is of no use at all."""
    if trial_boot.is_rehearsal:
        return go_to(campaign, _State.DONE, f"the rehearsal: {reason}")
    found = Quarantined(setting=trial_boot.setting, reason=reason, sha256=trial_boot.sha256)
    return go_on(quarantine(campaign, found), f"{trial_boot.setting}: {reason}")


def _unexplained(campaign: Campaign, trial_boot: TrialBoot) -> int:
    return sum(
        other.outcome is TrialOutcome.UNEXPLAINED
        and other.is_rehearsal is trial_boot.is_rehearsal
        and other.sha256 == trial_boot.sha256
        for other in campaign.trial_boots
    )


def step(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Return what an event makes of a campaign."""
    return _HANDLERS[event.kind](campaign, event)


def _found(campaign: Campaign, event: CampaignEvent) -> Transition:
    del event
    return Transition(campaign=campaign, actions=duty(campaign.state))


def _started(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Begin anew; what did not boot is not tried again with the same image, unless it is named."""
    if not campaign.state.is_over or event.campaign is None:
        return unchanged(campaign)
    new = event.campaign
    same = campaign.default_boot is not None and campaign.default_boot == new.default_boot
    bad = {
        a.sha256
        for a in campaign.trial_boots
        if a.outcome in {TrialOutcome.FAILED, TrialOutcome.UNEXPLAINED}
    }
    kept = tuple(
        found
        for found in campaign.quarantined
        if same and found.sha256 in bad and found.setting not in new.only
    )
    after = replace(new, quarantined=(*new.quarantined, *kept))
    return go_to(after, _State.PREPARING, "it was started")


def _found_out(campaign: Campaign, event: CampaignEvent) -> Transition:
    if event.kind is _Kind.PREPARED and campaign.state is _State.PREPARING:
        return go_on(replace(campaign, ready=event.ready), "the candidates are there")
    if event.kind is _Kind.SETTLED and campaign.state is _State.CHOOSING:
        return go_to(campaign, _State.DONE, event.reason)
    return unchanged(campaign)


def _refused(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Have no more to do with a candidate; where it is being armed, choose another."""
    if event.refused is None or not campaign.state.is_active:
        return unchanged(campaign)
    after = quarantine(campaign, event.refused)
    if not campaign.state.stands:
        return unchanged(after)
    words = f"{event.refused.setting}: {event.refused.reason}"
    if campaign.current and campaign.current.is_rehearsal:
        return go_to(after, _State.DONE, words)  # no other image could be rehearsed with
    return go_on(ended(after, TrialOutcome.NOT_TRIED, event.refused.reason), words)


def _blocked(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Leave it to a later run; what was being armed is taken back."""
    if not campaign.state.is_active:
        return unchanged(campaign)
    if campaign.state in {_State.PREPARING, _State.CHOOSING}:
        after = replace(campaign, reason=event.reason)
        return Transition(campaign=after, actions=(CampaignAction.REPORT,))
    if campaign.state is not _State.ARMING:
        return unchanged(campaign)
    after = replace(
        campaign, state=_State.CHOOSING, trial_boots=campaign.trial_boots[:-1], reason=event.reason
    )
    return Transition(campaign=after, actions=(*CLEAR, CampaignAction.REPORT))


def _chosen(campaign: Campaign, event: CampaignEvent) -> Transition:
    if campaign.state is not _State.CHOOSING or event.trial_boot is None:
        return unchanged(campaign)
    if campaign.boots >= campaign.most_boots:
        return go_on(campaign, "nothing is armed")
    return _arming(campaign, event.trial_boot, event.reason)


def _planned(campaign: Campaign, event: CampaignEvent) -> Transition:
    if campaign.state is not _State.ARMING or event.trial_boot is None:
        return unchanged(campaign)
    after = replace(campaign, trial_boots=(*campaign.trial_boots[:-1], event.trial_boot))
    return Transition(campaign=after, actions=(CampaignAction.WRITE_ENTRY, CampaignAction.ARM))


def _armed(campaign: Campaign, event: CampaignEvent) -> Transition:
    del event
    current = campaign.current
    if campaign.state is not _State.ARMING or current is None:
        return unchanged(campaign)
    what = "today's image, a rehearsal" if current.is_rehearsal else current.setting
    after = replace(campaign, state=_State.ARMED, reason=f"the next boot is of {what}")
    reboot = (CampaignAction.REBOOT,) if campaign.reboots else ()
    return Transition(campaign=after, actions=(CampaignAction.REPORT, *reboot))


def _taken_back(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Have nothing armed for a while, and arm the same again afterwards."""
    current = campaign.current
    if current is None:
        return unchanged(campaign)
    if event.kind is _Kind.TAKE_BACK and campaign.state is not _State.BOOTED:
        waiting = replace(current, armed_boot=replace(current.armed_boot, taken_back=True))
        after = replace(campaign, trial_boots=(*campaign.trial_boots[:-1], waiting))
        return Transition(campaign=after, actions=(CampaignAction.DISARM,))
    if event.kind is _Kind.ARM_AGAIN and current.armed_boot.taken_back and event.trial_boot:
        before = replace(campaign, trial_boots=campaign.trial_boots[:-1])
        return _arming(before, event.trial_boot, event.reason)
    return unchanged(campaign)


def _arming(campaign: Campaign, trial_boot: TrialBoot, reason: str) -> Transition:
    after = replace(
        campaign,
        state=_State.ARMING,
        trial_boots=(*campaign.trial_boots, trial_boot),
        reason=reason,
    )
    return Transition(campaign=after, actions=(CampaignAction.COPY,))


def _changed(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Go on with what is there now: with other candidates where those are of no use any more."""
    state, change = campaign.state, event.change
    if state.is_over or change is None:
        return unchanged(campaign)
    words = change.words
    after = replace(ended(campaign, TrialOutcome.NOT_TRIED, words), default_boot=event.default_boot)
    if change.needs_other_images:
        after = replace(after, ready=())
    if change is Change.GONE:
        return go_to(after, _State.DONE, words)
    if state is _State.PAUSED:
        return unchanged(after)
    if state is _State.PREPARING or change.needs_other_images:
        return go_to(after, _State.PREPARING, words)
    return go_on(after, words)


def _asked(campaign: Campaign, event: CampaignEvent) -> Transition:
    """Do what the user asks for."""
    state = campaign.state
    without = ended(campaign, TrialOutcome.NOT_TRIED, event.reason)
    match event.kind:
        case _Kind.STOP if state not in {_State.IDLE, _State.STOPPED}:
            return go_to(without, _State.STOPPED, event.reason)
        case _Kind.PAUSE if state.is_active:
            return go_to(without, _State.PAUSED, event.reason)
        case _Kind.RESUME if state is _State.PAUSED and campaign.ready:
            return go_on(campaign, event.reason)
        case _Kind.RESUME if state is _State.PAUSED:
            return go_to(campaign, _State.PREPARING, event.reason)
        case _Kind.STOP:
            return Transition(campaign=campaign, actions=CLEAR)
        case _:
            return unchanged(campaign)


_HANDLERS: Final[Mapping[CampaignEventKind, Callable[[Campaign, CampaignEvent], Transition]]] = {
    _Kind.START: _started,
    _Kind.FOUND: _found,
    _Kind.PREPARED: _found_out,
    _Kind.SETTLED: _found_out,
    _Kind.REFUSED: _refused,
    _Kind.BLOCKED: _blocked,
    _Kind.CHOSEN: _chosen,
    _Kind.PLANNED: _planned,
    _Kind.ARMED: _armed,
    _Kind.TAKE_BACK: _taken_back,
    _Kind.ARM_AGAIN: _taken_back,
    _Kind.PENDING: of_a_boot,
    _Kind.RUNNING: of_a_boot,
    _Kind.ENDED: of_a_boot,
    _Kind.CHANGED: _changed,
    _Kind.PAUSE: _asked,
    _Kind.RESUME: _asked,
    _Kind.STOP: _asked,
}
