"""What each event makes of a campaign, and what is to be done then.

The result is recorded before anything is done. Every state says by itself what there is to do
(``EventKind.FOUND``), so that a run that was killed, or lost power, after any of the actions is
made good by the next one. In a state that does not stand (``CampaignState.stands``) nothing of a
campaign is on the machine, and whoever finds one there clears up first.

What cannot happen in a state changes nothing: it comes from a run that worked without keeping
others out, while somebody paused or stopped the campaign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from initadvisor.model.campaign import (
    Action,
    Arming,
    Campaign,
    CampaignState,
    Change,
    Event,
    EventKind,
    Quarantined,
)
from initadvisor.model.fate import Fate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_State, _Kind = CampaignState, EventKind

_CLEAR = (Action.DISARM, Action.REMOVE_ENTRY, Action.CLEAR_SLOT)
_MOST_UNEXPLAINED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The campaign after an event, and what is to be done, in this order."""

    campaign: Campaign
    actions: tuple[Action, ...] = ()


def step(campaign: Campaign, event: Event) -> Step:
    """Return what an event makes of a campaign."""
    return _HANDLERS[event.kind](campaign, event)


def _duty(state: CampaignState) -> tuple[Action, ...]:
    """Return what a run has to do about a campaign that it finds."""
    match state:
        case _State.PREPARING:
            return (*_CLEAR, Action.PREPARE)
        case _State.CHOOSING:
            return (*_CLEAR, Action.CHOOSE)
        case _State.ARMING | _State.ARMED | _State.BOOTED:
            return (Action.JUDGE,)
        case _State.IDLE | _State.PAUSED | _State.DONE | _State.STOPPED:
            return _CLEAR


def _found(campaign: Campaign, event: Event) -> Step:
    del event
    return Step(campaign=campaign, actions=_duty(campaign.state))


def _unchanged(campaign: Campaign) -> Step:
    return Step(campaign=campaign)


def _to(campaign: Campaign, state: CampaignState, reason: str, *before: Action) -> Step:
    """Go on in a state that does not stand; ``before``: what else there is to do."""
    told = (Action.REPORT,) if not state.is_active else ()
    after = replace(campaign, state=state, reason=reason)
    actions = tuple(dict.fromkeys((*before, *_duty(state), *told)))
    return Step(campaign=after, actions=actions)


def _onward(campaign: Campaign, reason: str, *before: Action) -> Step:
    """Choose the next boot, unless there may be none."""
    if campaign.boots >= campaign.most_boots:
        words = f"{reason}; all {campaign.most_boots} boots are used up"
        return _to(campaign, _State.DONE, words, *before)
    if not any(not found.today for found in campaign.eligible):
        return _to(campaign, _State.DONE, f"{reason}; no candidate is left", *before)
    return _to(campaign, _State.CHOOSING, reason, *before)


def _started(campaign: Campaign, event: Event) -> Step:
    """Begin anew; what did not boot is not tried again with the same image, unless it is named."""
    if not campaign.state.is_over or event.campaign is None:
        return _unchanged(campaign)
    new = event.campaign
    same = campaign.ground is not None and campaign.ground == new.ground
    bad = {a.sha256 for a in campaign.armings if a.fate in {Fate.FAILED, Fate.UNEXPLAINED}}
    kept = tuple(
        found
        for found in campaign.quarantined
        if same and found.sha256 in bad and found.setting not in new.only
    )
    return _to(replace(new, quarantined=kept), _State.PREPARING, "it was started")


def _found_out(campaign: Campaign, event: Event) -> Step:
    if event.kind is _Kind.PREPARED and campaign.state is _State.PREPARING:
        return _onward(replace(campaign, ready=event.ready), "the candidates are there")
    if event.kind is _Kind.SETTLED and campaign.state is _State.CHOOSING:
        return _to(campaign, _State.DONE, event.reason)
    return _unchanged(campaign)


def _quarantine(campaign: Campaign, found: Quarantined) -> Campaign:
    others = tuple(q for q in campaign.quarantined if q.setting != found.setting)
    return replace(campaign, quarantined=(*others, found))


def _refused(campaign: Campaign, event: Event) -> Step:
    """Have no more to do with a candidate; where it is being armed, choose another."""
    if event.refused is None or not campaign.state.is_active:
        return _unchanged(campaign)
    after = _quarantine(campaign, event.refused)
    if not campaign.state.stands:
        return _unchanged(after)
    words = f"{event.refused.setting}: {event.refused.reason}"
    if campaign.current and campaign.current.is_rehearsal:
        return _to(after, _State.DONE, words)  # no other image could be rehearsed with
    return _onward(_ended(after, Fate.NOT_TRIED, event.refused.reason), words)


def _blocked(campaign: Campaign, event: Event) -> Step:
    """Leave it to a later run; what was being armed is taken back."""
    if not campaign.state.is_active:
        return _unchanged(campaign)
    if campaign.state in {_State.PREPARING, _State.CHOOSING}:
        after = replace(campaign, reason=event.reason)
        return Step(campaign=after, actions=(Action.REPORT,))
    if campaign.state is not _State.ARMING:
        return _unchanged(campaign)
    after = replace(
        campaign, state=_State.CHOOSING, armings=campaign.armings[:-1], reason=event.reason
    )
    return Step(campaign=after, actions=(*_CLEAR, Action.REPORT))


def _chosen(campaign: Campaign, event: Event) -> Step:
    if campaign.state is not _State.CHOOSING or event.arming is None:
        return _unchanged(campaign)
    if campaign.boots >= campaign.most_boots:
        return _onward(campaign, "nothing is armed")
    return _arming(campaign, event.arming, event.reason)


def _planned(campaign: Campaign, event: Event) -> Step:
    if campaign.state is not _State.ARMING or event.arming is None:
        return _unchanged(campaign)
    after = replace(campaign, armings=(*campaign.armings[:-1], event.arming))
    return Step(campaign=after, actions=(Action.WRITE_ENTRY, Action.ARM))


def _armed(campaign: Campaign, event: Event) -> Step:
    del event
    current = campaign.current
    if campaign.state is not _State.ARMING or current is None:
        return _unchanged(campaign)
    what = "today's image, a rehearsal" if current.is_rehearsal else current.setting
    after = replace(campaign, state=_State.ARMED, reason=f"the next boot is of {what}")
    reboot = (Action.REBOOT,) if campaign.reboots else ()
    return Step(campaign=after, actions=(Action.REPORT, *reboot))


def _around_sleep(campaign: Campaign, event: Event) -> Step:
    """Have nothing armed while the machine sleeps, and arm the same again afterwards."""
    current = campaign.current
    if current is None:
        return _unchanged(campaign)
    if event.kind is _Kind.SLEEP and campaign.state is not _State.BOOTED:
        asleep = replace(current, proof=replace(current.proof, asleep=True))
        after = replace(campaign, armings=(*campaign.armings[:-1], asleep))
        return Step(campaign=after, actions=(Action.DISARM,))
    if event.kind is _Kind.AWAKE and current.proof.asleep and event.arming:
        before = replace(campaign, armings=campaign.armings[:-1])
        return _arming(before, event.arming, event.reason)
    return _unchanged(campaign)


def _arming(campaign: Campaign, arming: Arming, reason: str) -> Step:
    after = replace(
        campaign, state=_State.ARMING, armings=(*campaign.armings, arming), reason=reason
    )
    return Step(campaign=after, actions=(Action.COPY,))


def _of_a_boot(campaign: Campaign, event: Event) -> Step:
    """Take note of what became of the armed boot."""
    if not campaign.state.stands or campaign.current is None:
        return _unchanged(campaign)
    if event.kind is _Kind.RUNNING:
        return _unchanged(replace(campaign, state=_State.BOOTED, reason=event.reason))
    if event.kind is _Kind.ENDED and event.fate:
        return _judged(campaign, campaign.current, event, event.fate)
    return _unchanged(campaign)


def _ended(campaign: Campaign, fate: Fate, words: str, *, boots: int = 0) -> Campaign:
    """Return the campaign with its armed boot judged."""
    if campaign.current is None:
        return campaign
    last = replace(campaign.current, fate=fate, words=words)
    return replace(campaign, armings=(*campaign.armings[:-1], last), boots=campaign.boots + boots)


def _judged(campaign: Campaign, arming: Arming, event: Event, fate: Fate) -> Step:
    """Draw the conclusions from an armed boot that is over; each counts, whatever it was.

    Only a rehearsal that has passed does not: there is one of them.
    """
    if fate in {Fate.PENDING, Fate.ASLEEP, Fate.RUNNING}:
        return _unchanged(campaign)
    if fate is Fate.UNEXPLAINED and campaign.state is _State.ARMING:
        fate = Fate.NOT_TRIED  # the run was interrupted: it may never have been selected
    passed = any(a.is_rehearsal and a.fate is Fate.PASSED for a in campaign.armings)
    is_free = arming.is_rehearsal and fate is Fate.PASSED and not passed
    after = _ended(campaign, fate, event.reason, boots=int(event.rebooted and not is_free))
    what = "the rehearsal" if arming.is_rehearsal else arming.setting
    words = f"{what}: {event.reason}"
    match fate:
        case Fate.PASSED:
            noted = (Action.NOTE_REHEARSED,) if arming.is_rehearsal else ()
            result = _onward(after, words, *noted)
        case Fate.FAILED:
            result = _failed(after, arming, event.reason)
        case Fate.UNEXPLAINED if _unexplained(after, arming) >= _MOST_UNEXPLAINED:
            result = _failed(after, arming, f"it did not come back, twice; {event.reason}")
        case Fate.STUCK:
            result = _to(after, _State.DONE, words, Action.DISARM, Action.FORGET_REHEARSED)
        case Fate.UNREADABLE:
            result = _to(after, _State.PAUSED, words)
        case Fate.WITHDRAWN if campaign.state is not _State.ARMING:  # not by a run that was killed
            result = _to(after, _State.PAUSED, words)
        case _:
            result = _onward(after, words)
    return result


def _failed(campaign: Campaign, arming: Arming, reason: str) -> Step:
    """Never boot it again; a loader that cannot even boot today's image is of no use at all."""
    if arming.is_rehearsal:
        return _to(campaign, _State.DONE, f"the rehearsal: {reason}")
    found = Quarantined(setting=arming.setting, reason=reason, sha256=arming.sha256)
    return _onward(_quarantine(campaign, found), f"{arming.setting}: {reason}")


def _unexplained(campaign: Campaign, arming: Arming) -> int:
    return sum(
        other.fate is Fate.UNEXPLAINED
        and other.is_rehearsal is arming.is_rehearsal
        and other.sha256 == arming.sha256
        for other in campaign.armings
    )


def _changed(campaign: Campaign, event: Event) -> Step:
    """Go on with what is there now: with other candidates where those are of no use any more."""
    state, change = campaign.state, event.change
    if state.is_over or change is None:
        return _unchanged(campaign)
    words = change.words
    after = replace(_ended(campaign, Fate.NOT_TRIED, words), ground=event.ground)
    if change.needs_other_images:
        after = replace(after, ready=())
    if change is Change.GONE:
        return _to(after, _State.DONE, words)
    if state is _State.PAUSED:
        return _unchanged(after)
    if state is _State.PREPARING or change.needs_other_images:
        return _to(after, _State.PREPARING, words)
    return _onward(after, words)


def _asked(campaign: Campaign, event: Event) -> Step:
    """Do what the user asks for."""
    state = campaign.state
    ended = _ended(campaign, Fate.NOT_TRIED, event.reason)
    match event.kind:
        case _Kind.STOP if state not in {_State.IDLE, _State.STOPPED}:
            return _to(ended, _State.STOPPED, event.reason)
        case _Kind.PAUSE if state.is_active:
            return _to(ended, _State.PAUSED, event.reason)
        case _Kind.RESUME if state is _State.PAUSED and campaign.ready:
            return _onward(campaign, event.reason)
        case _Kind.RESUME if state is _State.PAUSED:
            return _to(campaign, _State.PREPARING, event.reason)
        case _Kind.STOP:
            return Step(campaign=campaign, actions=_CLEAR)
        case _:
            return _unchanged(campaign)


_HANDLERS: Final[Mapping[EventKind, Callable[[Campaign, Event], Step]]] = {
    _Kind.START: _started,
    _Kind.FOUND: _found,
    _Kind.PREPARED: _found_out,
    _Kind.SETTLED: _found_out,
    _Kind.REFUSED: _refused,
    _Kind.BLOCKED: _blocked,
    _Kind.CHOSEN: _chosen,
    _Kind.PLANNED: _planned,
    _Kind.ARMED: _armed,
    _Kind.SLEEP: _around_sleep,
    _Kind.AWAKE: _around_sleep,
    _Kind.PENDING: _of_a_boot,
    _Kind.RUNNING: _of_a_boot,
    _Kind.ENDED: _of_a_boot,
    _Kind.CHANGED: _changed,
    _Kind.PAUSE: _asked,
    _Kind.RESUME: _asked,
    _Kind.STOP: _asked,
}
