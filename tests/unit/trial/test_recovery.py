"""A campaign whose record is damaged or gone: what it left is taken back all the same."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.proving import settle
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Certainty
from initadvisor.doctor.boots import changes
from initadvisor.doctor.findings import CheckedMachine
from initadvisor.host.record_files import DamagedRecordError
from initadvisor.lab.observing import Unseen
from initadvisor.transaction.transaction import TransactionState
from initadvisor.trial.campaigns import advance, pause, resume, stop, take_back
from initadvisor.trial.markers import note_rehearsed
from initadvisor.trial.recovery import left_over
from tests.fixtures.campaign_machine import FOUR, SLOT, Campaigning, make_campaigning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.booted import Booted

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _text: b"",
    "no record": lambda _text: b"{}",
    "garbage": lambda _text: b"\xff\x00garbage",
    "torn": lambda text: text[: len(text) // 2],
    "text for a number": lambda text: json.dumps({**json.loads(text), "boots": "x"}).encode(),
    "no number": lambda text: json.dumps({**json.loads(text), "most_boots": None}).encode(),
    "nested": lambda _text: b"[" * 100_000,
}
every_damage = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


@pytest.fixture
def armed(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine with a candidate armed for the next boot."""
    made = make_campaigning(machine, monkeypatch)
    note_rehearsed(made.host, made.provable.loader.NAME)
    made.candidates = {"lz4 -9": FOUR["lz4 -9"]}
    made.start()
    return made


def record(machine: Campaigning) -> Path:
    """Return where the campaign is recorded."""
    return machine.host.state_dir() / "campaigns/000001.json"


@every_damage
def test_stopping_takes_back_what_was_armed_and_keeps_the_record(
    armed: Campaigning, damage: Callable[[bytes], bytes]
) -> None:
    text = damage(record(armed).read_bytes())
    record(armed).write_bytes(text)
    done = stop(armed.host)
    armed.require_nothing()
    aside = record(armed).with_name("000001.json.aside-1")
    assert aside.read_bytes() == text
    assert any("cannot read the campaign" in line and aside.name in line for line in done.told)
    assert any(SLOT in line for line in done.told)
    assert left_over(armed.host) == ()
    armed.start()
    assert (armed.record.number, armed.record.state) == (2, CampaignState.ARMED)
    armed.run()
    assert armed.booted == ["lz4 -9"]


@every_damage
def test_nothing_is_armed_while_the_machine_sleeps(
    armed: Campaigning, damage: Callable[[bytes], bytes]
) -> None:
    record(armed).write_bytes(damage(record(armed).read_bytes()))
    [told] = take_back(armed.host)
    assert "initadvisor trial stop" in told
    assert not armed.provable.loader.is_armed
    assert take_back(armed.host) == ()


@every_damage
def test_whatever_else_needs_the_record_says_what_to_do(
    armed: Campaigning, damage: Callable[[bytes], bytes]
) -> None:
    record(armed).write_bytes(damage(record(armed).read_bytes()))
    calls: tuple[Callable[[], object], ...] = (
        lambda: advance(armed.host),
        lambda: pause(armed.host),
        lambda: resume(armed.host, observer=Unseen()),
        armed.start,
    )
    for call in calls:
        with pytest.raises(DamagedRecordError, match=r"000001\.json") as raised:
            call()
        assert "initadvisor trial stop" in raised.value.with_hint
    assert armed.provable.loader.is_armed


def test_boots_are_measured_all_the_same(armed: Campaigning) -> None:
    record(armed).write_bytes(b"")
    armed.reboot()
    armed.require_default()
    found = armed.provable.measure()
    assert found.attribution.certainty is not Certainty.CERTAIN
    armed.reboot()
    assert armed.provable.measure().attribution.certainty is Certainty.CERTAIN


def test_transactions_are_settled_all_the_same(armed: Campaigning) -> None:
    armed.provable.stage()
    record(armed).write_bytes(b"")
    [told] = settle(armed.host)
    assert "was interrupted" in told
    assert armed.provable.latest().state is TransactionState.UNDONE
    assert armed.provable.loader.is_armed  # it may be the campaign's


def test_a_proving_boot_is_none_of_a_campaign_s(armed: Campaigning) -> None:
    stop(armed.host)
    armed.provable.arm()
    entry = armed.provable.loader.entries[EntryKind.TRIAL]
    record(armed).write_bytes(b"")
    stop(armed.host)
    assert armed.provable.loader.is_armed
    assert armed.provable.loader.entries == {EntryKind.TRIAL: entry}
    assert left_over(armed.host) == ()


def test_the_doctor_names_a_damaged_record(armed: Campaigning) -> None:
    record(armed).write_bytes(b"")
    subject = CheckedMachine(host=armed.host, generator=None, images=(), try_engines=False)
    with pytest.raises(InitadvisorError, match="cannot read the campaign") as raised:
        list(changes(subject))
    assert raised.value.hint is not None


@pytest.mark.parametrize("what", ["record", "state"])
def test_stopping_clears_up_where_the_record_was_removed(armed: Campaigning, what: str) -> None:
    if what == "record":
        record(armed).unlink()
    else:
        shutil.rmtree(armed.host.state_dir())
    subject = CheckedMachine(host=armed.host, generator=None, images=(), try_engines=False)
    found = {finding.text: finding.advice for finding in changes(subject)}
    assert set(found) == {
        f"{armed.host.path(SLOT)} is left of a trial",
        "a trial's boot entry is left",
    }
    assert set(found.values()) == {"sudo initadvisor trial stop"}
    done = stop(armed.host)
    armed.require_nothing()
    assert any(SLOT in line for line in done.told)
    assert [finding.text for finding in changes(subject)] == ["nothing is pending"]
    assert stop(armed.host).told == ()


def test_it_stays_where_it_is_until_all_is_taken_back(armed: Campaigning) -> None:
    record(armed).write_bytes(b"")
    loader = armed.provable.loader
    loader.unremovable = InitadvisorError("cannot remove the entry")
    with pytest.raises(InitadvisorError, match="cannot remove the entry"):
        stop(armed.host)
    assert record(armed).read_bytes() == b""
    loader.unremovable = None
    stop(armed.host)
    armed.require_nothing()


def test_a_file_that_is_no_record_hides_the_campaign_only_until_it_is_stopped(
    armed: Campaigning,
) -> None:
    record(armed).with_name("notes.json").write_text("{}")
    with pytest.raises(DamagedRecordError):
        advance(armed.host)
    stop(armed.host)
    armed.require_nothing()
    assert (armed.record.number, armed.record.state) == (1, CampaignState.STOPPED)


def as_earlier(machine: Campaigning) -> bytes:
    """Have the record be one of an earlier version, and return it."""
    text = json.dumps({**json.loads(record(machine).read_bytes()), "schema": 1, "arms": []})
    record(machine).write_text(text)
    return text.encode()


OLDER_CALLS: dict[str, Callable[[Campaigning], object]] = {
    "advance": lambda machine: advance(machine.host),
    "pause": lambda machine: pause(machine.host),
    "start": lambda machine: machine.start(),
    "stop": lambda machine: stop(machine.host),
}


@pytest.mark.parametrize("call", OLDER_CALLS.values(), ids=OLDER_CALLS)
def test_a_campaign_of_an_earlier_version_is_set_aside_with_nothing_left_armed(
    armed: Campaigning, caplog: pytest.LogCaptureFixture, call: Callable[[Campaigning], object]
) -> None:
    text = as_earlier(armed)
    done = call(armed)
    aside = record(armed).with_name("000001.json.aside-1")
    assert aside.read_bytes() == text
    told = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    told += getattr(done, "told", ())
    [line] = [line for line in told if aside.name in line]
    assert "an earlier version has recorded it" in line
    if armed.record.number == 2:  # a new one was begun
        assert armed.record.state is CampaignState.ARMED
        armed.run()
        assert armed.booted == ["lz4 -9"]
    else:
        armed.require_nothing()
        assert left_over(armed.host) == ()


def test_nothing_is_proved_while_a_campaign_of_an_earlier_version_may_be_armed(
    armed: Campaigning,
) -> None:
    text = as_earlier(armed)
    entries = dict(armed.provable.loader.entries)
    with pytest.raises(InitadvisorError, match="an earlier version has recorded it"):
        armed.provable.arm()
    assert armed.provable.loader.entries == entries
    assert record(armed).read_bytes() == text


def test_earlier_records_of_an_earlier_version_are_set_aside_and_the_latest_goes_on(
    armed: Campaigning,
) -> None:
    kept = as_earlier(armed)
    stop(armed.host)
    armed.start()
    record(armed).write_bytes(kept)
    advance(armed.host)
    assert not record(armed).exists()
    assert (armed.record.number, armed.record.state) == (2, CampaignState.ARMED)
    assert armed.provable.loader.is_armed


def test_a_proving_boot_of_an_earlier_version_is_disarmed(armed: Campaigning) -> None:
    stop(armed.host)
    armed.provable.arm()
    path = armed.host.state_dir() / "transactions/000001.json"
    path.write_text(path.read_text().replace('"schema": 4', '"schema": 3'))
    settle(armed.host)
    assert path.with_name("000001.json.aside-1").exists()
    assert not armed.provable.loader.is_armed
    assert armed.provable.loader.entries == {}
