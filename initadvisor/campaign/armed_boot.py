"""What the boot that was armed makes of a campaign: whether it runs, and how it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.campaign.campaign import Action, CampaignState, EventKind, Quarantined
from initadvisor.campaign.transitions import ended, go_on, go_to, quarantine, unchanged
from initadvisor.records.trial_outcome import Fate

if TYPE_CHECKING:
    from initadvisor.campaign.campaign import Arming, Campaign, Event
    from initadvisor.campaign.transitions import Step


_State, _Kind = CampaignState, EventKind

_MOST_UNEXPLAINED = 2


def of_a_boot(campaign: Campaign, event: Event) -> Step:
    """Take note of what became of the armed boot."""
    if not campaign.state.stands or campaign.current is None:
        return unchanged(campaign)
    if event.kind is _Kind.RUNNING:
        return unchanged(replace(campaign, state=_State.BOOTED, reason=event.reason))
    if event.kind is _Kind.ENDED and event.fate:
        return _judged(campaign, campaign.current, event, event.fate)
    return unchanged(campaign)


def _judged(campaign: Campaign, arming: Arming, event: Event, fate: Fate) -> Step:
    """Draw the conclusions from an armed boot that is over; each counts, whatever it was.

    Only a rehearsal that has passed does not: there is one of them.
    """
    if fate in {Fate.PENDING, Fate.ASLEEP, Fate.RUNNING}:
        return unchanged(campaign)
    if fate is Fate.UNEXPLAINED and campaign.state is _State.ARMING:
        fate = Fate.NOT_TRIED  # the run was interrupted: it may never have been selected
    passed = any(a.is_rehearsal and a.fate is Fate.PASSED for a in campaign.armings)
    is_free = arming.is_rehearsal and fate is Fate.PASSED and not passed
    after = ended(campaign, fate, event.reason, boots=int(event.rebooted and not is_free))
    what = "the rehearsal" if arming.is_rehearsal else arming.setting
    words = f"{what}: {event.reason}"
    match fate:
        case Fate.PASSED:
            noted = (Action.NOTE_REHEARSED,) if arming.is_rehearsal else ()
            result = go_on(after, words, *noted)
        case Fate.FAILED:
            result = _failed(after, arming, event.reason)
        case Fate.UNEXPLAINED if _unexplained(after, arming) >= _MOST_UNEXPLAINED:
            result = _failed(after, arming, f"it did not come back, twice; {event.reason}")
        case Fate.STUCK:
            result = go_to(after, _State.DONE, words, Action.DISARM, Action.FORGET_REHEARSED)
        case Fate.UNREADABLE:
            result = go_to(after, _State.PAUSED, words)
        case Fate.WITHDRAWN if campaign.state is not _State.ARMING:  # not by a run that was killed
            result = go_to(after, _State.PAUSED, words)
        case _:
            result = go_on(after, words)
    return result


def _failed(campaign: Campaign, arming: Arming, reason: str) -> Step:
    """Never boot it again; a loader that cannot even boot today's image is of no use at all."""
    if arming.is_rehearsal:
        return go_to(campaign, _State.DONE, f"the rehearsal: {reason}")
    found = Quarantined(setting=arming.setting, reason=reason, sha256=arming.sha256)
    return go_on(quarantine(campaign, found), f"{arming.setting}: {reason}")


def _unexplained(campaign: Campaign, arming: Arming) -> int:
    return sum(
        other.fate is Fate.UNEXPLAINED
        and other.is_rehearsal is arming.is_rehearsal
        and other.sha256 == arming.sha256
        for other in campaign.armings
    )
