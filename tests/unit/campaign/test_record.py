"""What is recorded of campaigns: read as it was written, and never by an older version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.campaign.campaign import Campaign, CampaignState, Quarantined
from initadvisor.campaign.record import (
    campaign_stands,
    following_number,
    forget_active,
    is_noted_active,
    note_active,
    read_campaign,
    read_campaigns,
    require_no_campaign,
    write_campaign,
)
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host import Host
from initadvisor.host.record_files import DamagedRecordError
from initadvisor.host.renames import quarantine_file
from initadvisor.records.trial_outcome import TrialOutcome
from tests.fixtures.campaigns import arming, campaign

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAMAGED = (b"", b"{", b"[]", b"{}", b"null", b'{"schema": 3}', b"\xff\0", b"[" * 90_000)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine on which nothing is recorded."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Host(root=tmp_path)


def test_nothing_recorded_is_an_idle_campaign(host: Host) -> None:
    assert read_campaign(host) == Campaign()
    assert not campaign_stands(host)
    require_no_campaign(host)


@pytest.mark.parametrize("state", [state for state in CampaignState if state != "idle"])
def test_it_is_read_as_it_was_written(host: Host, state: CampaignState) -> None:
    written = replace(
        campaign(state),
        only=("lz4 -9", "xz"),
        quarantined=(Quarantined(setting="xz", reason="it panicked"),),
        reason="so it is",
    )
    ended = replace(arming(rehearsal=True), outcome=TrialOutcome.PASSED, reason="it booted")
    written = replace(written, trial_boots=(ended, *written.trial_boots))
    write_campaign(host, written)
    assert read_campaign(host) == written
    assert campaign_stands(host) is state.stands


def test_the_latest_one_counts_and_the_others_are_kept(host: Host) -> None:
    for number in (1, 2, 10):
        write_campaign(host, replace(campaign(CampaignState.DONE), number=number))
    assert read_campaign(host).number == 10
    found = read_campaigns(host)
    assert [one.number for one in found if isinstance(one, Campaign)] == [1, 2, 10]
    assert following_number(host) == 11


def test_nothing_else_may_be_armed_while_one_stands(host: Host) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    with pytest.raises(UnsafeError, match="a campaign has armed the next boot"):
        require_no_campaign(host)


def test_what_a_newer_version_has_recorded_is_left_alone(host: Host) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    [path] = (host.state_dir() / "campaigns").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 4, "new": 1}))
    with pytest.raises(UnsafeError, match="a newer version"):
        read_campaign(host)


def damage(host: Host, text: bytes) -> Path:
    """Have the latest record be that."""
    path = max((host.state_dir() / "campaigns").iterdir())
    path.write_bytes(text)
    return path


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_what_cannot_be_read_is_named(host: Host, text: bytes) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    path = damage(host, text)
    with pytest.raises(DamagedRecordError, match=r"cannot read the campaign in .*01\.json: ") as r:
        read_campaign(host)
    assert r.value.path == path
    assert "initadvisor trial stop" in (r.value.hint or "")


WRONG: dict[str, tuple[tuple[str | int, ...], str, object]] = {
    "boots": ((), "boots", "x"),
    "negative boots": ((), "boots", -1),
    "most_boots": ((), "most_boots", None),
    "reboots": ((), "reboots", 1),
    "reason": ((), "reason", 5),
    "number": ((), "number", "1"),
    "another number": ((), "number", 2),
    "text for a list": ((), "only", "zstd"),
    "numbers for settings": ((), "only", [1]),
    "time": ((), "began_at_s", 1 << 60),
    "state": ((), "state", "nowhere"),
    "unknown": ((), "colour", "red"),
    "schema": ((), "schema", "1"),
    "default boot": ((), "default_boot", []),
    "image": (("default_boot",), "image", "../etc/passwd"),
    "candidate": (("ready", 1), "size_bytes", "100"),
    "armed image": (("trial_boots", 0, "armed_boot"), "image", "boot"),
    "trial": (("trial_boots", 0, "armed_boot"), "trial", None),
    "stage": (("trial_boots", 0, "armed_boot"), "stage", "both"),
    "outcome": (("trial_boots", 0), "outcome", "sealed"),
    "panics": (("trial_boots", 0), "known_panics", [None]),
    "nothing armed": ((), "trial_boots", []),
}


@pytest.mark.parametrize(("place", "name", "value"), WRONG.values(), ids=WRONG)
def test_what_this_program_has_not_written_is_damaged(
    host: Host, place: tuple[str | int, ...], name: str, value: object
) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    [path] = (host.state_dir() / "campaigns").iterdir()
    record: Any = json.loads(path.read_text())
    part = record
    for step in place:
        part = part[step]
    part[name] = value
    path.write_text(json.dumps(record))
    with pytest.raises(DamagedRecordError):
        read_campaign(host)


def test_one_that_cannot_be_read_hides_no_other_and_may_stand(host: Host) -> None:
    for number in (1, 2):
        write_campaign(host, replace(campaign(CampaignState.DONE), number=number))
    damage(host, b"")
    first, second = read_campaigns(host)
    assert isinstance(first, Campaign)
    assert isinstance(second, DamagedRecordError)
    assert campaign_stands(host)
    with pytest.raises(DamagedRecordError):
        require_no_campaign(host)


def test_what_is_set_aside_is_kept_and_its_number_is_not_used_again(host: Host) -> None:
    kept = []
    for text in (b"one", b"two", b"three"):
        write_campaign(host, campaign(CampaignState.DONE))
        (host.state_dir() / "campaigns/000001.json").write_bytes(text)
        with pytest.raises(DamagedRecordError) as raised:
            read_campaign(host)
        kept.append(quarantine_file(raised.value.path))
        assert read_campaign(host) == Campaign()
    assert [path.read_bytes() for path in kept] == [b"one", b"two", b"three"]
    assert following_number(host) == 2


def test_what_units_look_for_is_there_and_gone(host: Host) -> None:
    assert not is_noted_active(host)
    for _ in range(2):
        note_active(host)
        assert is_noted_active(host)
    for _ in range(2):
        forget_active(host)
        assert not is_noted_active(host)


def test_what_power_cuts_have_left_of_records_and_notes_goes(host: Host) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    directory, somebodys = host.state_dir() / "campaigns", host.state_dir() / ".partial-abc"
    somebodys.touch()
    of_records: tuple[Callable[[], None], ...] = (
        lambda: write_campaign(host, campaign(CampaignState.ARMED)),
        lambda: forget_active(host),
    )
    for clear in of_records:
        (directory / ".partial-abc").touch()
        clear()
        assert [path.name for path in directory.iterdir()] == ["000001.json"]
    for clear in (lambda: note_active(host), lambda: forget_active(host)):
        left = host.state_dir() / ".partial-campaign-active-abc"
        left.touch()
        clear()
        assert not left.exists()
    assert somebodys.exists()


def test_a_directory_that_cannot_be_read_gives_no_number(host: Host) -> None:
    directory = host.state_dir() / "campaigns"
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.write_text("a file")
    with pytest.raises(InitadvisorError, match=f"cannot read {directory}: Not a directory"):
        following_number(host)


def test_a_record_without_end_is_damaged(host: Host) -> None:
    write_campaign(host, Campaign(number=1))
    path = host.state_dir() / "campaigns" / "000001.json"
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedRecordError, match="cannot read the campaign"):
        read_campaign(host)
