"""Every event in every state of a campaign, and what each boot's end means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from initadvisor.campaign.campaign import (
    Campaign,
    CampaignAction,
    CampaignEvent,
    CampaignEventKind,
    CampaignState,
    Change,
    DefaultBoot,
)
from initadvisor.campaign.step import step
from initadvisor.records.trial_outcome import TrialOutcome
from tests.fixtures.campaigns import (
    ENDED,
    EVENTS,
    GROUND,
    GZIP,
    LZ4,
    READY,
    TODAY,
    XZ,
    arming,
    campaign,
)

S, K, A = CampaignState, CampaignEventKind, CampaignAction
CLEAR = (A.DISARM, A.REMOVE_ENTRY, A.CLEAR_SLOT)
STANDING = [state for state in S if state.stands]
ACTIVE = [state for state in S if state.is_active]

MOVES: dict[tuple[CampaignState, CampaignEventKind], CampaignState] = {
    (S.IDLE, K.START): S.PREPARING,
    (S.DONE, K.START): S.PREPARING,
    (S.STOPPED, K.START): S.PREPARING,
    (S.PREPARING, K.PREPARED): S.CHOOSING,
    (S.CHOOSING, K.CHOSEN): S.ARMING,
    (S.CHOOSING, K.SETTLED): S.DONE,
    (S.ARMING, K.ARMED): S.ARMED,
    (S.ARMING, K.BLOCKED): S.CHOOSING,
    **{(state, K.REFUSED): S.CHOOSING for state in STANDING},
    **{(state, K.RUNNING): S.BOOTED for state in STANDING},
    **{(state, K.ENDED): S.CHOOSING for state in STANDING},
    **{(state, K.CHANGED): S.PREPARING for state in ACTIVE},
    **{(state, K.PAUSE): S.PAUSED for state in ACTIVE},
    (S.PAUSED, K.RESUME): S.CHOOSING,
    **{(state, K.STOP): S.STOPPED for state in S if state not in {S.IDLE, S.STOPPED}},
}
"""Where each event leads to; in every other pair the state stays what it is."""

ACTIONS: dict[tuple[CampaignState, CampaignEventKind], tuple[CampaignAction, ...]] = {
    (S.PREPARING, K.FOUND): (*CLEAR, A.PREPARE),
    (S.CHOOSING, K.FOUND): (*CLEAR, A.CHOOSE),
    **{(state, K.FOUND): (A.JUDGE,) for state in STANDING},
    **{(state, K.FOUND): CLEAR for state in S if not state.is_active},
    **{(state, K.START): (*CLEAR, A.PREPARE) for state in S if state.is_over},
    (S.PREPARING, K.PREPARED): (*CLEAR, A.CHOOSE),
    (S.PREPARING, K.BLOCKED): (A.REPORT,),
    (S.CHOOSING, K.BLOCKED): (A.REPORT,),
    (S.CHOOSING, K.CHOSEN): (A.COPY,),
    (S.CHOOSING, K.SETTLED): (*CLEAR, A.REPORT),
    (S.ARMING, K.PLANNED): (A.WRITE_ENTRY, A.ARM),
    (S.ARMING, K.ARMED): (A.REPORT,),
    (S.ARMING, K.BLOCKED): (*CLEAR, A.REPORT),
    (S.ARMING, K.TAKE_BACK): (A.DISARM,),
    (S.ARMED, K.TAKE_BACK): (A.DISARM,),
    **{(state, K.REFUSED): (*CLEAR, A.CHOOSE) for state in STANDING},
    **{(state, K.ENDED): (*CLEAR, A.CHOOSE) for state in STANDING},
    **{(state, K.CHANGED): (*CLEAR, A.PREPARE) for state in ACTIVE},
    **{(state, K.PAUSE): (*CLEAR, A.REPORT) for state in ACTIVE},
    (S.PAUSED, K.RESUME): (*CLEAR, A.CHOOSE),
    **{(state, K.STOP): (*CLEAR, A.REPORT) for state in S},
    (S.IDLE, K.STOP): CLEAR,
    (S.STOPPED, K.STOP): CLEAR,
}
"""What is done; in every other pair nothing is."""


@pytest.mark.parametrize("kind", CampaignEventKind)
@pytest.mark.parametrize("state", CampaignState)
def test_every_event_in_every_state(state: CampaignState, kind: CampaignEventKind) -> None:
    before = campaign(state)
    result = step(before, EVENTS[kind])
    assert result.campaign.state is MOVES.get((state, kind), state)
    assert result.actions == ACTIONS.get((state, kind), ())
    if (state, kind) not in MOVES and not result.actions:
        told = {K.REFUSED, K.CHANGED, K.PLANNED}  # they are taken note of
        assert result.campaign == before or kind in told


@pytest.mark.parametrize("state", [state for state in S if not state.stands])
@pytest.mark.parametrize("kind", [K.RUNNING, K.ENDED, K.PENDING, K.TAKE_BACK, K.ARM_AGAIN, K.ARMED])
def test_what_comes_too_late_changes_nothing(state: CampaignState, kind: CampaignEventKind) -> None:
    before = campaign(state)
    result = step(before, EVENTS[kind])
    assert (result.campaign, result.actions) == (before, ())


FATES = {
    TrialOutcome.PASSED: (S.CHOOSING, 1, ()),
    TrialOutcome.FAILED: (S.CHOOSING, 1, (LZ4.setting,)),
    TrialOutcome.UNEXPLAINED: (S.CHOOSING, 1, ()),
    TrialOutcome.NOT_TRIED: (S.CHOOSING, 1, ()),
    TrialOutcome.WITHDRAWN: (S.PAUSED, 1, ()),
    TrialOutcome.REPLACED: (S.CHOOSING, 1, ()),
    TrialOutcome.STUCK: (S.DONE, 1, ()),
    TrialOutcome.UNREADABLE: (S.PAUSED, 1, ()),
    TrialOutcome.PENDING: (S.ARMED, 0, ()),
    TrialOutcome.RUNNING: (S.ARMED, 0, ()),
    TrialOutcome.TAKEN_BACK: (S.ARMED, 0, ()),
}


@pytest.mark.parametrize("fate", TrialOutcome)
def test_what_the_end_of_a_trial_s_boot_means(fate: TrialOutcome) -> None:
    result = step(campaign(S.ARMED), replace(ENDED, outcome=fate, reason="so it was"))
    state, boots, quarantined = FATES[fate]
    after = result.campaign
    assert (after.state, after.boots) == (state, boots)
    assert tuple(found.setting for found in after.quarantined) == quarantined
    if not state.stands:
        assert (after.trial_boots[-1].outcome, after.trial_boots[-1].reason) == (fate, "so it was")
        assert result.actions[-1] is (A.CHOOSE if state is S.CHOOSING else A.REPORT)
        assert set(CLEAR) < set(result.actions)


REHEARSED = {
    TrialOutcome.PASSED: (S.CHOOSING, 0),
    TrialOutcome.FAILED: (S.DONE, 1),
    TrialOutcome.UNEXPLAINED: (S.CHOOSING, 1),
    TrialOutcome.NOT_TRIED: (S.CHOOSING, 1),
    TrialOutcome.WITHDRAWN: (S.PAUSED, 1),
    TrialOutcome.REPLACED: (S.CHOOSING, 1),
    TrialOutcome.STUCK: (S.DONE, 1),
    TrialOutcome.UNREADABLE: (S.PAUSED, 1),
}


@pytest.mark.parametrize("fate", REHEARSED)
def test_what_the_end_of_a_rehearsal_means(fate: TrialOutcome) -> None:
    result = step(campaign(S.ARMED, rehearsal=True), replace(ENDED, outcome=fate))
    assert (result.campaign.state, result.campaign.boots) == REHEARSED[fate]
    assert result.campaign.quarantined == ()
    assert (A.NOTE_REHEARSED in result.actions) is (fate is TrialOutcome.PASSED)
    assert (A.FORGET_REHEARSED in result.actions) is (fate is TrialOutcome.STUCK)


@pytest.mark.parametrize(
    ("fate", "state"),
    [
        (TrialOutcome.PASSED, S.CHOOSING),  # where it turns out that nothing is left to be tried
        (TrialOutcome.NOT_TRIED, S.DONE),
        (TrialOutcome.UNEXPLAINED, S.DONE),
        (TrialOutcome.FAILED, S.DONE),
    ],
)
def test_a_rehearsal_alone_needs_no_candidates_and_has_one_boot(
    fate: TrialOutcome, state: CampaignState
) -> None:
    alone = replace(campaign(S.ARMED, rehearsal=True, most_boots=1), only_rehearsal=True, ready=())
    assert step(alone, replace(ENDED, outcome=fate)).campaign.state is state


def twice(before: Campaign, fate: TrialOutcome, *, rehearsal: bool = False) -> Campaign:
    """Have the same armed and end in the same way twice."""
    ended = replace(ENDED, outcome=fate, reason="it left nothing")
    after = step(before, ended).campaign
    chosen = CampaignEvent(kind=K.CHOSEN, trial_boot=arming(rehearsal=rehearsal))
    again = step(step(after, chosen).campaign, EVENTS[K.ARMED]).campaign
    return step(again, ended).campaign


def test_twice_unexplained_is_a_failure() -> None:
    after = twice(campaign(S.ARMED), TrialOutcome.UNEXPLAINED)
    [found] = after.quarantined
    assert found.setting == LZ4.setting
    assert found.reason == "it did not come back, twice; it left nothing"
    assert after.eligible == (TODAY, GZIP, XZ)


def test_a_loader_that_twice_does_not_come_back_is_given_up() -> None:
    after = twice(campaign(S.ARMED, rehearsal=True), TrialOutcome.UNEXPLAINED, rehearsal=True)
    assert after.state is S.DONE
    assert "the rehearsal" in after.reason


def test_an_interrupted_arming_is_not_held_against_the_candidate() -> None:
    """The power went before it was recorded that the boot was armed, which it may not have been."""
    ended = replace(ENDED, outcome=TrialOutcome.UNEXPLAINED)
    after = step(campaign(S.ARMING), ended).campaign
    assert (after.trial_boots[-1].outcome, after.boots) == (TrialOutcome.NOT_TRIED, 1)
    assert (
        step(campaign(S.ARMED), ended).campaign.trial_boots[-1].outcome is TrialOutcome.UNEXPLAINED
    )


def test_what_could_not_be_armed_leaves_no_trace_in_the_record() -> None:
    """It may be tried at each boot for a long time."""
    after = step(campaign(S.ARMING), EVENTS[K.BLOCKED]).campaign
    assert (after.trial_boots, after.boots) == ((), 0)


def test_two_boots_of_two_candidates_are_no_failure_of_either() -> None:
    ended = replace(ENDED, outcome=TrialOutcome.UNEXPLAINED)
    after = step(campaign(S.ARMED), ended).campaign
    after = step(after, CampaignEvent(kind=K.CHOSEN, trial_boot=arming(GZIP))).campaign
    assert step(after, ended).campaign.quarantined == ()


def test_a_selection_that_a_killed_run_never_made_is_no_wish_of_the_user_s() -> None:
    withdrawn = replace(ENDED, outcome=TrialOutcome.WITHDRAWN, rebooted=False)
    after = step(campaign(S.ARMING), withdrawn).campaign
    assert (after.state, after.boots) == (S.CHOOSING, 0)
    assert step(campaign(S.ARMED), withdrawn).campaign.state is S.PAUSED


def test_it_ends_when_its_boots_are_used_up() -> None:
    result = step(campaign(S.ARMED, most_boots=1), ENDED)
    assert result.campaign.state is S.DONE
    assert "all 1 boots are used up" in result.campaign.reason
    assert result.actions == (*CLEAR, A.REPORT)
    spent = replace(campaign(S.CHOOSING), boots=9)
    assert step(spent, EVENTS[K.CHOSEN]).campaign.state is S.DONE


def test_it_ends_when_no_candidate_is_left_but_today_s() -> None:
    before = replace(campaign(S.ARMED), ready=(TODAY, LZ4))
    result = step(before, replace(ENDED, outcome=TrialOutcome.FAILED))
    assert result.campaign.state is S.DONE
    assert "no candidate is left" in result.campaign.reason
    prepared = replace(EVENTS[K.PREPARED], ready=(TODAY,))
    assert step(campaign(S.PREPARING), prepared).campaign.state is S.DONE


CHANGES = {
    Change.KERNEL: (S.PREPARING, ()),
    Change.IMAGE: (S.PREPARING, ()),
    Change.CANDIDATES: (S.PREPARING, ()),
    Change.COMMAND_LINE: (S.CHOOSING, READY),
    Change.GONE: (S.DONE, ()),
}


@pytest.mark.parametrize("state", STANDING)
@pytest.mark.parametrize("change", Change)
def test_what_others_have_changed_takes_an_armed_boot_back(
    state: CampaignState, change: Change
) -> None:
    result = step(campaign(state), replace(EVENTS[K.CHANGED], change=change))
    expected, ready = CHANGES[change]
    assert (result.campaign.state, result.campaign.ready) == (expected, ready)
    assert (result.campaign.boots, result.campaign.quarantined) == (0, ())
    assert result.campaign.trial_boots[-1].outcome is TrialOutcome.NOT_TRIED
    assert result.actions[:3] == CLEAR
    assert change.words in result.campaign.reason


def test_a_paused_campaign_has_its_candidates_built_anew_after_a_kernel_upgrade() -> None:
    after = step(campaign(S.PAUSED), EVENTS[K.CHANGED]).campaign
    assert (after.state, after.ready) == (S.PAUSED, ())
    assert after.default_boot is not None
    assert after.default_boot.release == "6.2.0"
    assert step(after, EVENTS[K.RESUME]).actions[-1] is A.PREPARE


def test_what_failed_is_not_tried_by_the_next_campaign_on_the_same_image() -> None:
    failed = step(campaign(S.ARMED), replace(ENDED, outcome=TrialOutcome.FAILED)).campaign
    over = step(failed, EVENTS[K.STOP]).campaign
    kept = step(over, EVENTS[K.START]).campaign
    assert [found.setting for found in kept.quarantined] == [LZ4.setting]
    named = Campaign(number=2, only=(LZ4.setting,), most_boots=9, default_boot=GROUND)
    assert step(over, replace(EVENTS[K.START], campaign=named)).campaign.quarantined == ()
    other = replace(named, only=(), default_boot=replace(GROUND, image_sha256="9" * 64))
    assert step(over, replace(EVENTS[K.START], campaign=other)).campaign.quarantined == ()


def test_what_never_booted_may_be_tried_by_the_next_campaign() -> None:
    """There may be room for it by now, or a kernel that unpacks it."""
    refused = step(campaign(S.ARMING), EVENTS[K.REFUSED]).campaign
    assert [found.setting for found in refused.quarantined] == [LZ4.setting]
    over = step(refused, EVENTS[K.STOP]).campaign
    assert step(over, EVENTS[K.START]).campaign.quarantined == ()


def test_a_boot_is_armed_step_by_step_and_a_reboot_comes_last() -> None:
    chosen = step(replace(campaign(S.CHOOSING), reboots=True), EVENTS[K.CHOSEN])
    planned = arming()
    planned = replace(planned, armed_boot=replace(planned.armed_boot, extra_cmdline=("panic=30",)))
    written = step(chosen.campaign, CampaignEvent(kind=K.PLANNED, trial_boot=planned))
    assert written.campaign.current == planned
    armed = step(written.campaign, EVENTS[K.ARMED])
    assert armed.actions == (A.REPORT, A.REBOOT)
    assert armed.campaign.reason == "the next boot is of lz4 -9"


@pytest.mark.parametrize("event", [EVENTS[K.PAUSE], replace(ENDED, outcome=TrialOutcome.WITHDRAWN)])
def test_one_that_is_paused_does_not_reboot_by_itself_any_more(event: CampaignEvent) -> None:
    paused = step(replace(campaign(S.ARMED), reboots=True), event).campaign
    assert (paused.state, paused.reboots) == (S.PAUSED, False)


def test_what_was_taken_back_before_a_sleep_is_armed_again_under_another_name() -> None:
    asleep = step(campaign(S.ARMED), EVENTS[K.TAKE_BACK]).campaign
    assert asleep.current is not None
    assert asleep.current.armed_boot.taken_back
    assert step(campaign(S.ARMED), EVENTS[K.ARM_AGAIN]).actions == ()
    awake = step(asleep, EVENTS[K.ARM_AGAIN])
    assert (awake.campaign.state, awake.actions) == (S.ARMING, (A.COPY,))
    assert [found.armed_boot.trial for found in awake.campaign.trial_boots] == ["trial-1-again"]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"release": "6.2"}, Change.KERNEL),
        ({"kernel_sha256": "1"}, Change.KERNEL),
        ({"kernel_sha256": "1", "image_sha256": "1", "options": "quiet"}, Change.KERNEL),
        ({"image": "/boot/other"}, Change.IMAGE),
        ({"image_sha256": "1", "options": "quiet"}, Change.IMAGE),
        ({"entry": "other"}, Change.COMMAND_LINE),
        ({"options": "quiet"}, Change.COMMAND_LINE),
        ({}, None),
    ],
)
def test_the_most_important_change_counts(changed: dict[str, str], found: Change | None) -> None:
    values: dict[str, Any] = {**changed}
    now: DefaultBoot = replace(GROUND, **values)
    assert GROUND.change(now) is found
