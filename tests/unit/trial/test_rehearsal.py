"""A rehearsal without trials: the loader boots today's image once, or is not to be trusted."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import EntryKind, OneShot, OneShotState
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import Refusal, RefusalKind
from initadvisor.measure import measure
from initadvisor.trial.campaign_actions import needs_rehearsal
from initadvisor.trial.campaigns import rehearse, stop, take_back
from initadvisor.trial.markers import note_rehearsed
from tests.fixtures.booted import Booted
from tests.fixtures.campaign_machine import (
    Campaigning,
    PowerCutError,
    make_campaigning,
    power_cut,
)
from tests.fixtures.provable_machine import IMAGE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine whose loader was not tried yet."""
    monkeypatch.setattr(measure, "announce", lambda _record: None)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return make_campaigning(Booted(root=tmp_path / "machine"), monkeypatch)


def test_the_next_boot_is_of_today_s_image_and_then_it_is_over(machine: Campaigning) -> None:
    assert rehearse(machine.host) == ("the next boot is of today's image, a rehearsal",)
    assert machine.provable.loader.is_armed
    assert machine.provable.loader.entries[EntryKind.TRIAL].request.image == IMAGE
    assert rehearse(machine.host) == ("it is armed for the next boot",)
    assert machine.prepared_times == 0
    machine.boot()
    assert (machine.record.state, machine.record.boots) == (CampaignState.DONE, 0)
    assert machine.record.reason == "the boot loader has booted an entry once, and forgotten it"
    assert not needs_rehearsal(machine.host)
    machine.require_nothing()
    assert rehearse(machine.host) == ()
    machine.start()
    assert machine.record.current is not None
    assert not machine.record.current.is_rehearsal


def test_a_campaign_begins_with_the_rehearsal_that_was_armed_alone(machine: Campaigning) -> None:
    rehearse(machine.host)
    machine.start()
    assert (machine.record.number, machine.record.only_rehearsal) == (2, False)
    assert machine.record.current is not None
    assert machine.record.current.is_rehearsal
    machine.run()
    assert machine.record.booted("lz4 -9") == 1
    machine.require_nothing()


def test_a_loader_that_was_tried_is_not_tried_again(machine: Campaigning) -> None:
    note_rehearsed(machine.host, machine.provable.loader.NAME)
    assert rehearse(machine.host) == ()
    machine.require_nothing()


def test_a_loader_that_boots_the_entry_for_ever_is_not_trusted(machine: Campaigning) -> None:
    rehearse(machine.host)
    machine.reboot()
    machine.provable.loader.selected = OneShot(state=OneShotState.OURS)
    machine.settle()
    assert machine.record.state is CampaignState.DONE
    assert needs_rehearsal(machine.host)


def test_one_boot_that_tells_nothing_ends_it(machine: Campaigning) -> None:
    rehearse(machine.host)
    machine.provable.loader.is_armed = False  # somebody has booted another entry
    machine.boot()
    assert machine.record.state is CampaignState.DONE
    assert needs_rehearsal(machine.host)
    machine.require_nothing()


def test_an_image_that_is_made_anew_is_rehearsed_with(machine: Campaigning) -> None:
    rehearse(machine.host)
    path = machine.host.path(IMAGE)
    path.write_bytes(path.read_bytes() + bytes(512))
    machine.settle(may_build=False)
    assert machine.provable.loader.is_armed
    machine.boot()
    assert not needs_rehearsal(machine.host)
    assert machine.record.state is CampaignState.DONE


@pytest.mark.parametrize("consented", [False, True])
def test_what_may_need_a_person_is_armed_again_with_consent(
    machine: Campaigning, consented: bool
) -> None:
    machine.provable.loader.options = "root=/dev/sda1 splash"  # which no guard goes with
    rehearse(machine.host)
    if consented:
        text = "[daemon]\nperson_resets = true\n"
        machine.provable.machine.write("/etc/initadvisor.toml", text)
    take_back(machine.host)
    machine.settle()
    assert machine.provable.loader.is_armed is consented
    assert machine.record.state.is_active


def test_what_is_against_a_trial_is_against_it(machine: Campaigning) -> None:
    refusal = Refusal(kind=RefusalKind.UNCLEAR_DEFAULT, reason="it hides", remedy="look")
    machine.provable.loader.against = (refusal,)
    with pytest.raises(UnsafeError, match="it hides"):
        rehearse(machine.host)
    machine.require_nothing()
    assert machine.record.state is CampaignState.IDLE


def test_after_a_power_cut_the_next_run_goes_on_or_ends_it(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in itertools.count(1):
        with power_cut(step, monkeypatch) as counted, suppress(PowerCutError):
            rehearse(machine.host)
        rehearse(machine.host)
        assert machine.provable.loader.is_armed
        machine.require_default()
        stop(machine.host)
        machine.require_nothing()
        if counted[0] < step:
            break
    assert step > 5
