"""Whole campaigns on a machine that reboots, with what goes wrong on the way."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.proving import settle
from initadvisor.bootloaders.entry import EntryKind, OneShot, OneShotState
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.estimates import Certainty
from initadvisor.core.refusals import Refusal, RefusalKind, RefusedError
from initadvisor.core.settings import Setting
from initadvisor.lab.observing import Unseen
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.store.store import open_store
from initadvisor.transaction.transaction import ProofStage
from initadvisor.transaction.transactions import pending
from initadvisor.trial import campaign_judge, candidates, run
from initadvisor.trial import slot as trial_slot
from initadvisor.trial.campaigns import advance, pause, resume, stop, take_back
from initadvisor.trial.markers import forget_rehearsed, note_rehearsed, noted_entry, was_rehearsed
from tests.fixtures.campaign_machine import (
    FOUR,
    KERNEL,
    SLOT,
    Campaigning,
    Manner,
    PowerCutError,
    content,
    make_campaigning,
    power_cut,
)
from tests.fixtures.provable_machine import IMAGE, NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.advise.recommend import RecommendObserver
    from initadvisor.bootloaders.entry import TrialPlan
    from initadvisor.campaign.campaign import Campaign
    from initadvisor.host import Host
    from initadvisor.trial.candidates import NextTrial
    from tests.fixtures.booted import Booted


@pytest.fixture
def machine_of_four(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine whose loader was never tried."""
    return make_campaigning(machine, monkeypatch)


@pytest.fixture
def ready(machine_of_four: Campaigning) -> Campaigning:
    """A machine whose loader was tried, with one candidate that boots well."""
    note_rehearsed(machine_of_four.host, machine_of_four.provable.loader.NAME)
    machine_of_four.candidates = {"lz4 -9": FOUR["lz4 -9"]}
    return machine_of_four


def test_a_whole_campaign(machine_of_four: Campaigning) -> None:
    """A rehearsal, then each candidate: two boot, one panics, one never comes back."""
    machine_of_four.start()
    assert machine_of_four.record.state is CampaignState.ARMED
    machine_of_four.run()
    record = machine_of_four.record
    assert (record.state, record.reason) == (CampaignState.DONE, "all have booted")
    assert machine_of_four.booted == ["zstd -19", "lz4 -9", "gzip", "xz", "xz", "lzop"]
    assert [arming.outcome for arming in record.trial_boots] == [
        *(TrialOutcome.PASSED, TrialOutcome.PASSED, TrialOutcome.FAILED),
        *(TrialOutcome.UNEXPLAINED, TrialOutcome.UNEXPLAINED, TrialOutcome.PASSED),
    ]
    assert record.trial_boots[0].is_rehearsal
    assert was_rehearsed(machine_of_four.host, "fake")
    verdicts = machine_of_four.verdicts()
    assert verdicts["gzip"] == "it panicked: No working init found."
    assert verdicts["xz"].startswith("it did not come back, twice")
    assert set(verdicts) == {"gzip", "xz"}
    machine_of_four.require_nothing()


def test_every_boot_is_recorded_for_what_it_booted(machine_of_four: Campaigning) -> None:
    machine_of_four.start()
    found = []
    while not machine_of_four.record.state.is_over:
        before = len(machine_of_four.booted)
        boot = machine_of_four.boot()
        [name] = machine_of_four.booted[before:]
        came_up = FOUR.get(name, (b"", Manner.WELL))[1] is Manner.WELL
        found.append((boot.setting, Setting.parse(name if came_up else "zstd -19")))
        assert boot.attribution.certainty is Certainty.CERTAIN
    assert len(found) == 6
    assert all(setting == expected for setting, expected in found)
    with open_store(machine_of_four.host, readonly=True) as store:
        classes = {record.class_key for record in store.boots(limit=20)}
    assert len(classes) == 1


def test_what_is_armed_is_a_copy_that_was_read_back(ready: Campaigning) -> None:
    ready.start()
    entry = ready.provable.loader.entries[EntryKind.TRIAL]
    assert entry.request.image == SLOT
    assert entry.request.replaces == IMAGE
    assert ready.host.path(SLOT).read_bytes() == FOUR["lz4 -9"][0]
    assert ready.host.path(SLOT).stat().st_mode & 0o777 == 0o600
    arming = ready.record.current
    assert arming is not None
    assert arming.armed_boot.extra_cmdline == entry.extra_cmdline


@pytest.mark.parametrize("step", ["write", "arm"])
def test_it_is_recorded_what_is_armed_before_that_is_done(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    loader = type(ready.provable.loader)
    original = getattr(loader, step)
    seen: list[TrialPlan] = []

    def watched(self: object, host: Host, plan: TrialPlan, **named: object) -> None:
        record = ready.record
        assert record.state is CampaignState.ARMING
        assert record.current is not None
        proof = record.current.armed_boot
        assert (proof.entry, proof.extra_cmdline) == (plan.identifier, plan.extra_cmdline)
        assert proof.trial == plan.request.trial
        assert noted_entry(host) == "fake"
        assert ready.host.path(proof.image).read_bytes() == FOUR["lz4 -9"][0]
        seen.append(plan)
        original(self, host, plan, **named)

    monkeypatch.setattr(loader, step, watched)
    ready.start()
    assert len(seen) == 1


def test_the_slot_is_looked_at_again_after_the_boot(ready: Campaigning) -> None:
    """What the loader read is not what was armed, though of the same size."""
    ready.start()
    slot = ready.host.path(SLOT)
    other = content("other", 300)
    ready.candidates["other"] = (other, Manner.WELL)
    slot.write_bytes(other)
    ready.reboot()
    ready.provable.measure()
    ready.candidates.pop("other")
    advance(ready.host)
    [first, *_] = ready.record.trial_boots
    assert first.outcome is TrialOutcome.UNEXPLAINED
    assert "another image" in first.reason


@pytest.mark.parametrize("damage", [b"another", None])
def test_an_armed_image_that_is_not_there_any_more_is_armed_anew(
    ready: Campaigning, damage: bytes | None
) -> None:
    ready.start()
    slot, loader = ready.host.path(SLOT), ready.provable.loader
    trial = loader.entries[EntryKind.TRIAL].request.trial
    slot.unlink() if damage is None else slot.write_bytes(damage)
    advance(ready.host, may_build=False)
    assert slot.read_bytes() == FOUR["lz4 -9"][0]
    assert loader.is_armed
    assert loader.entries[EntryKind.TRIAL].request.trial != trial
    [before, _] = ready.record.trial_boots
    assert before.outcome is TrialOutcome.NOT_TRIED
    assert before.reason.endswith("since it was armed")
    assert ready.record.boots == 0
    ready.run()
    assert ready.booted == ["lz4 -9"]


def test_a_directory_in_place_of_the_slot_begins_nothing(ready: Campaigning) -> None:
    ready.host.path(SLOT).mkdir()
    with pytest.raises(UnsafeError, match="it is a directory"):
        ready.start()
    assert ready.record.state is CampaignState.IDLE
    stop(ready.host)
    assert ready.host.path(SLOT).is_dir()


@pytest.mark.parametrize("clock_s", [1000.0, 1_600_000_000.0])
def test_an_old_panic_is_not_held_against_a_candidate_where_the_clock_was_wrong(
    machine_of_four: Campaigning, monkeypatch: pytest.MonkeyPatch, clock_s: float
) -> None:
    note_rehearsed(machine_of_four.host, "fake")
    machine_of_four.candidates = {"xz": FOUR["xz"]}
    machine_of_four.provable.machine.write(
        "/var/lib/systemd/pstore/1/dmesg.txt", "Kernel panic - not syncing: one of last year\n"
    )
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: clock_s)
        machine_of_four.start()
    machine_of_four.boot()
    assert machine_of_four.record.trial_boots[0].outcome is TrialOutcome.UNEXPLAINED
    assert machine_of_four.verdicts() == {}


def test_a_candidate_that_no_kernel_unpacks_is_never_armed(machine_of_four: Campaigning) -> None:
    machine_of_four.refused = {"gzip": "Linux 6.1 does not unpack it"}
    machine_of_four.start()
    machine_of_four.run()
    assert "gzip" not in machine_of_four.booted
    assert machine_of_four.verdicts()["gzip"] == "Linux 6.1 does not unpack it"


def test_without_a_virtual_machine_there_are_no_trials(ready: Campaigning) -> None:
    ready.blocked = "no kernel could be asked"
    with pytest.raises(UnsafeError, match="no kernel could be asked"):
        ready.start()
    assert ready.record.state is CampaignState.STOPPED
    ready.require_nothing()


def test_a_candidate_that_was_damaged_since_is_never_armed(machine_of_four: Campaigning) -> None:
    machine_of_four.start()
    path = machine_of_four.cache / "lz4-9.img"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    machine_of_four.boot()
    assert "not what was verified" in machine_of_four.verdicts()["lz4 -9"]
    machine_of_four.run()
    assert "lz4 -9" not in machine_of_four.booted
    machine_of_four.require_nothing()


def test_no_room_on_the_boot_partition(
    machine_of_four: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = (1 << 20) + len(FOUR["gzip"][0])
    monkeypatch.setattr(trial_slot, "free_bytes", lambda _path: room)
    machine_of_four.start()
    machine_of_four.run()
    assert machine_of_four.booted == ["zstd -19", "lz4 -9", "gzip"]
    assert {"xz", "lzop"} < set(machine_of_four.verdicts())
    assert "has no room for it" in machine_of_four.verdicts()["xz"]


def test_a_kernel_upgrade_before_the_reboot_takes_the_boot_back(ready: Campaigning) -> None:
    ready.start()
    ready.provable.machine.write(KERNEL, b"another kernel")
    advance(ready.host, may_build=False)
    waiting = ready.record
    assert waiting.state is CampaignState.PREPARING
    assert not ready.provable.loader.is_armed
    assert not ready.host.path(SLOT).exists()
    advance(ready.host)
    assert ready.prepared_times == 2
    assert ready.record.state is CampaignState.ARMED
    ready.run()
    assert ready.booted == ["lz4 -9"]


def test_a_kernel_upgrade_that_nobody_saw_is_not_held_against_the_candidate(
    machine_of_four: Campaigning,
) -> None:
    note_rehearsed(machine_of_four.host, "fake")
    machine_of_four.candidates = {"gzip": FOUR["gzip"]}
    machine_of_four.start()
    machine_of_four.provable.machine.write(KERNEL, b"another kernel")
    machine_of_four.boot()
    [first, second] = machine_of_four.record.trial_boots
    assert (first.outcome, machine_of_four.record.quarantined) == (TrialOutcome.NOT_TRIED, ())
    assert "another kernel boots by default" in first.reason
    assert second.outcome is None
    machine_of_four.run()
    assert set(machine_of_four.verdicts()) == {"gzip"}


def test_a_rebuilt_image_has_the_candidates_built_anew(ready: Campaigning) -> None:
    ready.start()
    ready.host.path(IMAGE).write_bytes(NEW)
    advance(ready.host)
    assert (ready.prepared_times, ready.record.state) == (2, CampaignState.ARMED)
    assert ready.record.trial_boots[0].outcome is TrialOutcome.NOT_TRIED
    ready.host.path(IMAGE).write_bytes(OLD)


def test_a_removed_image_ends_it(ready: Campaigning) -> None:
    ready.start()
    ready.host.path(IMAGE).unlink()
    advance(ready.host)
    assert ready.record.state is CampaignState.DONE
    ready.require_nothing()


def test_an_image_that_a_package_manager_is_about_to_replace_is_not_gone(
    ready: Campaigning,
) -> None:
    ready.start()
    ready.host.path(IMAGE).unlink()
    ready.busy = ("dpkg is at work",)
    advance(ready.host)
    for _ in range(2):
        with pytest.raises(UnsafeError, match="dpkg is at work"):
            advance(ready.host)
        assert not ready.provable.loader.is_armed
    assert ready.record.state is CampaignState.ARMED
    ready.busy = ()
    ready.host.path(IMAGE).write_bytes(NEW)
    advance(ready.host)
    assert (ready.prepared_times, ready.record.state) == (2, CampaignState.ARMED)


def test_nothing_is_armed_while_a_package_manager_is_at_work(ready: Campaigning) -> None:
    ready.start()
    pause(ready.host)
    ready.busy = ("dpkg is at work",)
    with pytest.raises(UnsafeError, match="dpkg is at work"):
        resume(ready.host, observer=Unseen())
    ready.require_nothing_armed()
    ready.busy = ()
    advance(ready.host, may_build=False)
    assert ready.record.state is CampaignState.ARMED


def test_candidates_that_were_pruned_are_built_again(ready: Campaigning) -> None:
    ready.start()
    pause(ready.host)
    (ready.cache / "lz4-9.img").unlink()
    resume(ready.host, observer=Unseen())
    assert (ready.prepared_times, ready.record.state) == (2, CampaignState.ARMED)


def test_another_entry_that_was_chosen_costs_a_boot_and_is_tried_once_more(
    ready: Campaigning,
) -> None:
    ready.start()
    ready.provable.loader.is_armed = False
    ready.boot()
    assert ready.record.trial_boots[0].outcome is TrialOutcome.UNEXPLAINED
    ready.run()
    assert ready.record.state is CampaignState.DONE
    assert ready.record.boots == 2
    assert ready.verdicts() == {}


def test_a_selection_that_was_taken_back_by_hand_pauses_it(ready: Campaigning) -> None:
    ready.start()
    ready.provable.loader.is_armed = False
    advance(ready.host)
    assert ready.record.state is CampaignState.PAUSED
    ready.require_nothing()


def test_a_loader_that_does_not_forget_is_never_used_again(ready: Campaigning) -> None:
    ready.start()
    ready.provable.loader.selected = OneShot(state=OneShotState.OURS)
    ready.reboot()
    ready.provable.measure()
    advance(ready.host)
    assert ready.record.state is CampaignState.DONE
    assert not was_rehearsed(ready.host, "fake")


def test_somebody_else_s_selection_is_waited_for(ready: Campaigning) -> None:
    loader = ready.provable.loader
    ready.start()
    loader.is_armed = False
    loader.selected = OneShot(state=OneShotState.OTHERS, identifier="Boot0007")
    ready.boot()
    assert "Boot0007" in ready.record.trial_boots[0].reason


def test_what_is_armed_is_taken_back_while_the_machine_sleeps(ready: Campaigning) -> None:
    ready.start()
    loader = ready.provable.loader
    first = loader.entries[EntryKind.TRIAL].request.trial
    loader.selected = OneShot(state=OneShotState.UNREADABLE, reason="no variables")
    with pytest.raises(InitadvisorError, match="nor take it back: no variables"):
        take_back(ready.host)
    loader.selected = None
    assert take_back(ready.host)
    assert take_back(ready.host) == ()
    assert not loader.is_armed
    assert settle(ready.host) == ()
    advance(ready.host, may_build=False)
    assert loader.is_armed
    assert loader.entries[EntryKind.TRIAL].request.trial != first
    ready.run()
    assert ready.booted == ["lz4 -9"]
    assert [arming.outcome for arming in ready.record.trial_boots] == [TrialOutcome.PASSED]


@pytest.mark.parametrize("what", ["armed", "booted", "paused", "done"])
def test_stopping_it_leaves_nothing(ready: Campaigning, what: str) -> None:
    ready.start()
    if what == "booted":
        ready.reboot()
        advance(ready.host)
        assert ready.record.state is CampaignState.BOOTED
    elif what == "paused":
        pause(ready.host)
    elif what == "done":
        ready.run()
    before = ready.host.path(IMAGE).stat()
    stop(ready.host)
    assert ready.record.state is CampaignState.STOPPED
    ready.require_nothing()
    assert ready.host.path(IMAGE).stat() == before
    assert advance(ready.host).told == ()


def test_a_paused_campaign_boots_nothing_until_it_is_resumed(ready: Campaigning) -> None:
    ready.start()
    pause(ready.host)
    ready.require_nothing()
    ready.boot()
    assert ready.booted == []
    resume(ready.host, observer=Unseen())
    ready.run()
    assert ready.booted == ["lz4 -9"]


@pytest.mark.parametrize("name", ["prepared", "next_trial"])
@pytest.mark.parametrize("anew", [False, True])
def test_what_takes_long_is_in_vain_once_it_was_stopped(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, name: str, anew: bool
) -> None:
    """Another run stops it meanwhile, and may have begun another one, with other candidates."""
    original = getattr(candidates, name)

    def meddle(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(candidates, name, original)
        found = original(*arguments, **named)
        stop(ready.host)
        if anew:
            ready.candidates = {"lzop": FOUR["lzop"]}
            ready.start()
        return found

    monkeypatch.setattr(candidates, name, meddle)
    with contextlib.suppress(UnsafeError):
        ready.start()
    if anew:
        assert (ready.record.number, ready.record.state) == (2, CampaignState.ARMED)
        assert ready.host.path(SLOT).read_bytes() == FOUR["lzop"][0]
    else:
        assert ready.record.state is CampaignState.STOPPED
        ready.require_nothing()


def test_what_was_chosen_for_one_campaign_is_not_armed_by_the_next(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = candidates.next_trial

    def meddle(host: Host, found: Campaign, *, observer: RecommendObserver) -> NextTrial:
        monkeypatch.setattr(candidates, "next_trial", original)
        chosen = original(host, found, observer=observer)
        stop(host)
        with monkeypatch.context() as patched:
            patched.setattr(type(ready.provable.loader), "arm", refusing(ready.provable.loader))
            with pytest.raises(UnsafeError, match="taken"):
                ready.start()
        return chosen

    monkeypatch.setattr(candidates, "next_trial", meddle)
    ready.start()
    assert (ready.record.number, ready.record.state) == (2, CampaignState.STOPPED)
    assert not ready.provable.loader.is_armed


def test_a_proving_boot_that_was_armed_meanwhile_stays_armed(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = candidates.next_trial

    def meddle(host: Host, found: Campaign, *, observer: RecommendObserver) -> NextTrial:
        ready.provable.arm()
        return original(host, found, observer=observer)

    monkeypatch.setattr(candidates, "next_trial", meddle)
    with pytest.raises(UnsafeError, match="transaction 1"):
        ready.start()
    assert ready.record.state is CampaignState.STOPPED
    [waiting] = pending(ready.host)
    assert waiting.armed_boot is not None
    entry = ready.provable.loader.entries[EntryKind.TRIAL]
    assert entry.request.trial == waiting.armed_boot.trial
    assert ready.provable.loader.is_armed
    assert not ready.host.path(SLOT).exists()


def test_today_s_image_is_looked_at_once_more_before_it_is_rehearsed_with(
    machine_of_four: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_of_four.start()
    pause(machine_of_four.host)
    machine_of_four.host.path(IMAGE).write_bytes(NEW)
    monkeypatch.setattr(run, "changed", lambda *_arguments: None)
    resume(machine_of_four.host, observer=Unseen())
    assert machine_of_four.record.reason == f"{IMAGE} is not what it was"
    machine_of_four.require_nothing_armed()


def test_what_changes_as_fast_as_it_is_prepared_is_given_up(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_judge, "_is_there", lambda _path: False)
    with pytest.raises(InitadvisorError, match="goes in circles"):
        ready.start()
    stop(ready.host)
    ready.require_nothing()


def test_a_second_campaign_waits_for_the_first(ready: Campaigning) -> None:
    ready.start()
    with pytest.raises(UnsafeError, match="campaign 1 is armed"):
        ready.start()


def test_it_ends_after_as_many_boots_as_it_may_have(machine_of_four: Campaigning) -> None:
    machine_of_four.start(most_boots=2)
    machine_of_four.run()
    assert machine_of_four.booted == ["zstd -19", "lz4 -9", "gzip"]
    assert "all 2 boots are used up" in machine_of_four.record.reason


def test_a_proving_boot_and_a_campaign_exclude_each_other(ready: Campaigning) -> None:
    ready.start()
    entry = ready.provable.loader.entries[EntryKind.TRIAL]
    with pytest.raises(UnsafeError, match="a campaign has armed the next boot"):
        ready.provable.arm()
    assert ready.provable.loader.entries == {EntryKind.TRIAL: entry}
    assert settle(ready.host) == ()
    assert ready.provable.loader.entries == {EntryKind.TRIAL: entry}
    assert ready.provable.loader.is_armed
    stop(ready.host)
    waiting = ready.provable.arm()
    assert waiting.armed_boot is not None
    assert waiting.armed_boot.stage is ProofStage.PROOF
    with pytest.raises(UnsafeError, match="transaction 2"):
        ready.start()
    stop(ready.host)
    advance(ready.host)
    assert ready.provable.loader.is_armed


@pytest.mark.parametrize("accepted", [False, True])
def test_what_unlocks_the_disks_is_for_the_user_to_decide(
    ready: Campaigning, accepted: bool
) -> None:
    refusal = Refusal(kind=RefusalKind.BOUND_TO_TPM, reason="bound to the TPM", remedy="unbind")
    ready.provable.loader.against = (refusal,)
    if accepted:
        ready.start(ignore_unlocking=True)
        assert ready.provable.loader.is_armed
        return
    with pytest.raises(UnsafeError, match="bound to the TPM"):
        ready.start()
    assert ready.record.state is CampaignState.IDLE


def test_a_loader_that_cannot_be_used_is_refused_before_anything_is_done(
    ready: Campaigning,
) -> None:
    refusal = Refusal(kind=RefusalKind.READ_ONLY, reason="read-only", remedy="mount it")
    ready.provable.loader.against = (refusal,)
    with pytest.raises(UnsafeError, match="read-only"):
        ready.start(ignore_unlocking=True)
    ready.require_nothing()


def refusing(loader: object) -> Callable[..., None]:
    """Return an arming that somebody else is in the way of."""
    del loader

    def arm(*_arguments: object, **_named: object) -> None:
        refusal = Refusal(kind=RefusalKind.PENDING_ONE_SHOT, reason="taken", remedy="reboot")
        raise RefusedError(refusal)

    return arm


def test_a_boot_that_cannot_be_armed_now_is_left_to_the_next_run(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.start()
    pause(ready.host)
    with monkeypatch.context() as patched:
        patched.setattr(type(ready.provable.loader), "arm", refusing(ready.provable.loader))
        resume(ready.host, observer=Unseen())
        waiting = ready.record
        assert (waiting.state, waiting.reason) == (CampaignState.CHOOSING, "taken (reboot)")
        assert ready.provable.loader.entries == {}
        assert not ready.host.path(SLOT).exists()
    advance(ready.host, may_build=False)
    assert ready.record.state is CampaignState.ARMED


@pytest.mark.exhaustive
def test_the_power_goes_between_any_two_actions(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every action, record and finding of a campaign is once the first that does not happen."""
    after = cuts = 0
    while True:
        after += 1
        forget_rehearsed(ready.host)  # so that each has a rehearsal
        ready.provable.past.clear()  # so that journals stay short
        with power_cut(after, monkeypatch) as counted:
            try:
                ready.start()
                ready.run()
            except PowerCutError:
                cuts += 1
        if counted[0] < after:
            break
        ready.require_default()
        ready.boot()
        if ready.record.number < after:
            ready.start()  # it had not even begun
        ready.run()
        assert ready.record.state is CampaignState.DONE
        ready.require_nothing()
    assert cuts == after - 1
    assert cuts > 15


def test_a_campaign_goes_on_with_another_command_line(ready: Campaigning) -> None:
    ready.start()
    ground = ready.record.default_boot
    assert ground is not None
    loader = type(ready.provable.loader)
    original = loader.default_entry
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            loader,
            "default_entry",
            lambda self, host: replace(original(self, host), options="root=/dev/sda1 quiet"),
        )
        advance(ready.host, may_build=False)
        assert (ready.prepared_times, ready.record.state) == (1, CampaignState.ARMED)
        assert [arming.outcome for arming in ready.record.trial_boots] == [
            TrialOutcome.NOT_TRIED,
            None,
        ]
        assert ready.host.path(SLOT).is_file()
