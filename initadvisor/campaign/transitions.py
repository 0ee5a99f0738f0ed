"""The moves that a campaign makes: where it goes, and what there is to do there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from initadvisor.campaign.campaign import Action, CampaignState

if TYPE_CHECKING:
    from initadvisor.campaign.campaign import Campaign, Quarantined
    from initadvisor.records.trial_outcome import Fate


_State = CampaignState

CLEAR: Final = (Action.DISARM, Action.REMOVE_ENTRY, Action.CLEAR_SLOT)
"""Leaves nothing of a campaign on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The campaign after an event, and what is to be done, in this order."""

    campaign: Campaign
    actions: tuple[Action, ...] = ()


def duty(state: CampaignState) -> tuple[Action, ...]:
    """Return what a run has to do about a campaign that it finds."""
    match state:
        case _State.PREPARING:
            return (*CLEAR, Action.PREPARE)
        case _State.CHOOSING:
            return (*CLEAR, Action.CHOOSE)
        case _State.ARMING | _State.ARMED | _State.BOOTED:
            return (Action.JUDGE,)
        case _State.IDLE | _State.PAUSED | _State.DONE | _State.STOPPED:
            return CLEAR


def unchanged(campaign: Campaign) -> Step:
    """Return the campaign as it is, with nothing to do."""
    return Step(campaign=campaign)


def go_to(campaign: Campaign, state: CampaignState, reason: str, *before: Action) -> Step:
    """Go on in a state that does not stand; ``before``: what else there is to do.

    One that is paused has the machine reboot by itself no more: whoever resumes it says so anew.
    """
    told = (Action.REPORT,) if not state.is_active else ()
    reboots = campaign.reboots and state is not _State.PAUSED
    after = replace(campaign, state=state, reason=reason, reboots=reboots)
    actions = tuple(dict.fromkeys((*before, *duty(state), *told)))
    return Step(campaign=after, actions=actions)


def go_on(campaign: Campaign, reason: str, *before: Action) -> Step:
    """Choose the next boot, unless there may be none."""
    if campaign.boots >= campaign.most_boots:
        words = f"{reason}; all {campaign.most_boots} boots are used up"
        return go_to(campaign, _State.DONE, words, *before)
    if not any(not found.today for found in campaign.eligible):
        return go_to(campaign, _State.DONE, f"{reason}; no candidate is left", *before)
    return go_to(campaign, _State.CHOOSING, reason, *before)


def quarantine(campaign: Campaign, found: Quarantined) -> Campaign:
    """Return the campaign with a candidate that is not to be booted again."""
    others = tuple(q for q in campaign.quarantined if q.setting != found.setting)
    return replace(campaign, quarantined=(*others, found))


def ended(campaign: Campaign, fate: Fate, words: str, *, boots: int = 0) -> Campaign:
    """Return the campaign with its armed boot judged."""
    if campaign.current is None:
        return campaign
    last = replace(campaign.current, fate=fate, words=words)
    return replace(campaign, armings=(*campaign.armings[:-1], last), boots=campaign.boots + boots)
