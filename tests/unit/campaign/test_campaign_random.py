"""Campaigns in which anything may happen, on a machine whose power may go after every action.

The machine carries out what the steps ask for and nothing else, so that what holds of it follows
from them: the default entry is never touched, what is selected was recorded before, a campaign
ends, and stopping it leaves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from initadvisor.campaign.campaign import (
    Campaign,
    CampaignAction,
    CampaignEvent,
    CampaignEventKind,
    CampaignState,
    Change,
    Quarantined,
    TrialBoot,
)
from initadvisor.campaign.step import step
from initadvisor.records.trial_outcome import TrialOutcome
from tests.fixtures.campaigns import EVENTS, GROUND, READY, TODAY, arming

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BOOTS = 5
_RUN_LIMIT = 40
OVER = (
    TrialOutcome.PASSED,
    TrialOutcome.FAILED,
    TrialOutcome.UNEXPLAINED,
    TrialOutcome.NOT_TRIED,
    TrialOutcome.REPLACED,
    TrialOutcome.STUCK,
    TrialOutcome.UNREADABLE,
)


class PowerCutError(Exception):
    """The power is gone."""


@dataclass(slots=True)
class Machine:
    """What is on the disk: the record, our entry's image, whether it is selected, the slot.

    ``cut_after``: so many actions are carried out before the power goes, None: it stays.
    """

    draw: Callable[[st.SearchStrategy[int]], int]
    record: Campaign = field(default_factory=Campaign)
    default: str = TODAY.path
    entry: str | None = None
    selected: bool = False
    slot: str | None = None
    booted: list[TrialBoot] = field(default_factory=list)
    rebooted: bool = False
    cut_after: int | None = None

    def pick(self, most: int) -> int:
        """Return any number up to ``most``."""
        return self.draw(st.integers(0, most))

    def reboot(self) -> None:
        """Boot what is selected, and forget the selection; or nothing was selected."""
        if self.selected:
            assert (
                self.record.trial_boots
            )  # also where the power went before it could be taken back
            self.booted.append(self.record.trial_boots[-1])
        self.selected = False
        self.rebooted = True

    def run(self, event: CampaignEvent) -> None:
        """Take an event and carry out what follows, unless the power goes."""
        waiting: list[CampaignEvent] = [event]
        for _ in range(_RUN_LIMIT):
            if not waiting:
                return
            result = step(self.record, waiting.pop(0))
            self.record = result.campaign
            for action in result.actions:
                self.require_recorded()
                if self.cut_after is not None:
                    if self.cut_after == 0:
                        raise PowerCutError
                    self.cut_after -= 1
                if found := self.do(action):
                    waiting = [found]
                    break
        assert not waiting, "a run goes on for ever"

    def do(self, action: CampaignAction) -> CampaignEvent | None:
        """Carry an action out; what it finds is drawn from what may be found then."""
        match action:
            case CampaignAction.COPY | CampaignAction.WRITE_ENTRY | CampaignAction.ARM:
                return self.towards(action)
            case CampaignAction.DISARM:
                self.selected = False
            case CampaignAction.REMOVE_ENTRY:
                self.entry, self.selected = None, False
            case CampaignAction.CLEAR_SLOT:
                self.slot = None
            case _:
                finds = {
                    CampaignAction.PREPARE: self.prepared,
                    CampaignAction.CHOOSE: self.chosen,
                    CampaignAction.JUDGE: self.judged,
                }
                return finds[action]() if action in finds else None
        return None

    def towards(self, action: CampaignAction) -> CampaignEvent | None:
        """Go a step towards a boot, or not."""
        current = self.record.current
        assert current is not None
        if action is CampaignAction.COPY:
            if self.pick(9) == 0:
                return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason="the loader refuses")
            if self.pick(9) == 0 and not current.is_rehearsal:
                refused = Quarantined(setting=current.setting, reason="no room")
                return CampaignEvent(kind=CampaignEventKind.REFUSED, refused=refused)
            self.slot = None if current.armed_boot.image == TODAY.path else current.setting
            return CampaignEvent(kind=CampaignEventKind.PLANNED, trial_boot=current)
        if action is CampaignAction.WRITE_ENTRY:
            self.entry = current.armed_boot.image
            return None
        assert self.entry is not None
        assert not self.selected
        self.selected, self.rebooted = True, False
        return CampaignEvent(kind=CampaignEventKind.ARMED)

    def prepared(self) -> CampaignEvent:
        """Build: some candidates, none of them, or not now."""
        if self.pick(4) == 0:
            return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason="no virtual machine")
        return CampaignEvent(kind=CampaignEventKind.PREPARED, ready=READY[: 1 + self.pick(3)])

    def chosen(self) -> CampaignEvent:
        """Choose any candidate that may be booted, the rehearsal, or nothing."""
        eligible = self.record.eligible
        which = self.pick(len(eligible) + 1)
        if which == len(eligible):
            return EVENTS[CampaignEventKind.SETTLED]
        rehearsal = which > len(eligible)
        made = arming(rehearsal=True) if rehearsal else arming(eligible[which])
        return CampaignEvent(kind=CampaignEventKind.CHOSEN, trial_boot=made)

    def judged(self) -> CampaignEvent:
        """See what became of it: nothing yet, a selection that was never made, or any end."""
        current = self.record.current
        assert current is not None
        if current.armed_boot.taken_back and not self.rebooted:
            again = replace(current, armed_boot=replace(current.armed_boot, taken_back=False))
            return CampaignEvent(kind=CampaignEventKind.ARM_AGAIN, trial_boot=again)
        if not self.rebooted:
            if self.selected:
                return CampaignEvent(kind=CampaignEventKind.PENDING)
            return CampaignEvent(
                kind=CampaignEventKind.ENDED, outcome=TrialOutcome.WITHDRAWN, rebooted=False
            )
        if self.pick(5) == 0:
            return CampaignEvent(kind=CampaignEventKind.RUNNING)
        fate = OVER[self.pick(len(OVER) - 1)]
        return CampaignEvent(kind=CampaignEventKind.ENDED, outcome=fate, reason=f"it {fate}")

    def require_recorded(self) -> None:
        """Require of any moment what must hold of it."""
        assert self.default == TODAY.path
        if self.selected or self.entry or self.slot:
            assert self.record.number
        if self.selected:
            assert self.entry is not None
            slot = self.slot is not None
            assert slot or self.entry == TODAY.path

    def require_nothing(self) -> None:
        """Require that nothing of a campaign is left."""
        assert (self.entry, self.selected, self.slot) == (None, False, None)


def new(number: int = 1) -> CampaignEvent:
    """Return the beginning of a campaign."""
    begun = Campaign(number=number, most_boots=MOST_BOOTS, default_boot=GROUND)
    return CampaignEvent(kind=CampaignEventKind.START, campaign=begun)


def changed(change: Change) -> CampaignEvent:
    """Return a change by others."""
    return replace(EVENTS[CampaignEventKind.CHANGED], change=change)


ASKED = (
    CampaignEventKind.FOUND,
    CampaignEventKind.PAUSE,
    CampaignEventKind.RESUME,
    CampaignEventKind.STOP,
    CampaignEventKind.TAKE_BACK,
)
HAPPENINGS = ("found", "found", "reboot", "reboot", *ASKED, *Change, "start")


def happen(machine: Machine, what: str) -> None:
    """Have something happen; a power cut in it is a reboot."""
    try:
        if what == "reboot":
            machine.reboot()
        elif what == "start":
            machine.run(new(machine.record.number + 1))
        elif what in set(Change):
            machine.run(changed(Change(what)))
        else:
            machine.run(CampaignEvent(kind=CampaignEventKind(what), reason=what))
    except PowerCutError:
        machine.cut_after = None
        machine.reboot()


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data(), happenings=st.lists(st.sampled_from(HAPPENINGS), max_size=25))
def test_nothing_that_happens_arms_what_is_not_recorded_or_outlives_a_stop(
    data: st.DataObject, happenings: list[str]
) -> None:
    machine = Machine(draw=data.draw)
    for what in happenings:
        machine.cut_after = data.draw(st.none() | st.integers(0, 6))
        happen(machine, what)
        machine.require_recorded()
        if not machine.record.state.stands and machine.cut_after is None:
            machine.run(CampaignEvent(kind=CampaignEventKind.FOUND))
            if not machine.record.state.stands:
                machine.require_nothing()
    machine.cut_after = None
    machine.run(EVENTS[CampaignEventKind.STOP])
    assert machine.record.state in {CampaignState.STOPPED, CampaignState.IDLE}
    machine.require_nothing()
    machine.reboot()
    machine.run(CampaignEvent(kind=CampaignEventKind.FOUND))
    machine.require_nothing()


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data(), cuts=st.lists(st.none() | st.integers(0, 6), max_size=8))
def test_a_campaign_ends_whatever_its_boots_do(data: st.DataObject, cuts: list[int | None]) -> None:
    """So many boots are armed at most, with the rehearsal; then nothing ever is again."""
    machine = Machine(draw=data.draw)
    machine.run(new())
    for number in range(60):
        machine.cut_after = cuts[number] if number < len(cuts) else None
        happen(machine, CampaignEventKind.RESUME if number % 2 else CampaignEventKind.FOUND)
        machine.reboot()
        assert len(machine.booted) <= MOST_BOOTS + 1
        if machine.record.state.is_over:
            break
    machine.cut_after = None
    if machine.record.state.is_over:
        before = len(machine.booted)
        for _ in range(3):
            machine.run(CampaignEvent(kind=CampaignEventKind.FOUND))
            machine.reboot()
        assert len(machine.booted) == before
        machine.require_nothing()
    else:
        # Only what somebody else keeps from going on may last: nothing can be built, or armed.
        assert "no virtual machine" in machine.record.reason or not machine.booted[MOST_BOOTS:]


@settings(max_examples=3 * settings().max_examples)
@given(data=st.data(), cut=st.integers(0, 8), what=st.sampled_from(HAPPENINGS))
def test_after_a_power_cut_the_next_run_puts_it_right(
    data: st.DataObject, cut: int, what: str
) -> None:
    machine = Machine(draw=data.draw)
    machine.run(new())
    machine.cut_after = cut
    happen(machine, what)
    machine.cut_after = None
    machine.run(CampaignEvent(kind=CampaignEventKind.FOUND))
    if not machine.record.state.stands:
        machine.require_nothing()
