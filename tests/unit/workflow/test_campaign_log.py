"""What is recorded of campaigns: read as it was written, and never by an older version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.model.campaign import Campaign, CampaignState, Quarantined
from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.fate import Fate
from initadvisor.workflow.campaign_log import (
    campaign_stands,
    forget_active,
    is_noted_active,
    note_active,
    read_campaign,
    read_campaigns,
    require_no_campaign,
    write_campaign,
)
from tests.fixtures.campaigns import arming, campaign

if TYPE_CHECKING:
    from pathlib import Path


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
    ended = replace(arming(rehearsal=True), fate=Fate.PASSED, words="it booted")
    written = replace(written, armings=(ended, *written.armings))
    write_campaign(host, written)
    assert read_campaign(host) == written
    assert campaign_stands(host) is state.stands


def test_the_latest_one_counts_and_the_others_are_kept(host: Host) -> None:
    for number in (1, 2, 10):
        write_campaign(host, replace(campaign(CampaignState.DONE), number=number))
    assert read_campaign(host).number == 10
    assert [found.number for found in read_campaigns(host)] == [1, 2, 10]


def test_nothing_else_may_be_armed_while_one_stands(host: Host) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    with pytest.raises(UnsafeError, match="a campaign has armed the next boot"):
        require_no_campaign(host)


def test_what_a_newer_version_has_recorded_is_left_alone(host: Host) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    [path] = (host.state_dir() / "campaigns").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2, "new": 1}))
    with pytest.raises(UnsafeError, match="a newer version"):
        read_campaign(host)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 1, "state": "x"}'])
def test_what_cannot_be_read_is_named(host: Host, text: str) -> None:
    write_campaign(host, campaign(CampaignState.ARMED))
    [path] = (host.state_dir() / "campaigns").iterdir()
    path.write_text(text)
    with pytest.raises(InitadvisorError, match=r"cannot read the campaign in .*000001\.json"):
        read_campaign(host)


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
    for clear in (
        lambda: write_campaign(host, campaign(CampaignState.ARMED)),
        lambda: forget_active(host),
    ):
        (directory / ".partial-abc").touch()
        clear()
        assert [path.name for path in directory.iterdir()] == ["000001.json"]
    for clear in (lambda: note_active(host), lambda: forget_active(host)):
        left = host.state_dir() / ".partial-campaign-active-abc"
        left.touch()
        clear()
        assert not left.exists()
    assert somebodys.exists()
