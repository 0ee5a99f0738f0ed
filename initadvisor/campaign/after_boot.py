"""What a campaign does next once it is known how its armed boot ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.campaign.campaign import (
    CampaignAction,
    CampaignEventKind,
    CampaignState,
    Quarantined,
)
from initadvisor.campaign.transitions import ended, go_on, go_to, quarantine, unchanged
from initadvisor.records.trial_outcome import TrialOutcome

if TYPE_CHECKING:
    from initadvisor.campaign.campaign import Campaign, CampaignEvent, TrialBoot
    from initadvisor.campaign.transitions import Transition


_State, _Kind = CampaignState, CampaignEventKind

_MOST_UNEXPLAINED = 2


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
    if outcome in {TrialOutcome.PENDING, TrialOutcome.ASLEEP, TrialOutcome.RUNNING}:
        return unchanged(campaign)
    if outcome is TrialOutcome.UNEXPLAINED and campaign.state is _State.ARMING:
        outcome = TrialOutcome.NOT_TRIED  # the run was interrupted: it may never have been selected
    passed = any(a.is_rehearsal and a.outcome is TrialOutcome.PASSED for a in campaign.trial_boots)
    is_free = trial_boot.is_rehearsal and outcome is TrialOutcome.PASSED and not passed
    after = ended(campaign, outcome, event.reason, boots=int(event.rebooted and not is_free))
    what = "the rehearsal" if trial_boot.is_rehearsal else trial_boot.setting
    words = f"{what}: {event.reason}"
    match outcome:
        case TrialOutcome.PASSED:
            noted = (CampaignAction.NOTE_REHEARSED,) if trial_boot.is_rehearsal else ()
            result = go_on(after, words, *noted)
        case TrialOutcome.FAILED:
            result = _failed(after, trial_boot, event.reason)
        case TrialOutcome.UNEXPLAINED if _unexplained(after, trial_boot) >= _MOST_UNEXPLAINED:
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
