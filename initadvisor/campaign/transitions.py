"""The moves that a campaign makes: where it goes, and what there is to do there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from initadvisor.campaign.campaign import CampaignAction, CampaignState

if TYPE_CHECKING:
    from initadvisor.campaign.campaign import Campaign, Quarantined
    from initadvisor.records.trial_outcome import TrialOutcome


_State = CampaignState

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
    if not any(not found.today for found in campaign.eligible):
        return go_to(campaign, _State.DONE, f"{reason}; no candidate is left", *before)
    return go_to(campaign, _State.CHOOSING, reason, *before)


def quarantine(campaign: Campaign, found: Quarantined) -> Campaign:
    """Return the campaign with a candidate that is not to be booted again."""
    others = tuple(q for q in campaign.quarantined if q.setting != found.setting)
    return replace(campaign, quarantined=(*others, found))


def ended(campaign: Campaign, outcome: TrialOutcome, words: str, *, boots: int = 0) -> Campaign:
    """Return the campaign with its armed boot judged."""
    if campaign.current is None:
        return campaign
    last = replace(campaign.current, outcome=outcome, reason=words)
    return replace(
        campaign, trial_boots=(*campaign.trial_boots[:-1], last), boots=campaign.boots + boots
    )
