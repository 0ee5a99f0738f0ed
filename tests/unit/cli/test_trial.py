"""The command ``trial``: what it asks for, prints and does, over a machine made of files."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.campaign.campaign import CampaignState
from initadvisor.campaign.record import read_campaign, write_campaign
from initadvisor.cli import trial as trial_module
from initadvisor.cli.status import status as machine_status
from initadvisor.cli.trial import trial
from initadvisor.core.errors import InitadvisorError, UnsafeError, UsageError
from initadvisor.host import Host
from initadvisor.measure import measure
from initadvisor.trial.campaigns import pause
from initadvisor.trial.markers import forget_rehearsed, note_rehearsed
from tests.fixtures.booted import Booted
from tests.fixtures.campaign_machine import Campaigning, make_campaigning
from tests.fixtures.campaigns import campaign
from tests.fixtures.encrypted_disks import with_open_disk
from tests.fixtures.logind import with_inhibitors

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.records.boot import BootRecord


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine that the commands take for the real one; its loader was tried."""
    announced: list[BootRecord] = []
    monkeypatch.setattr(measure, "announce", announced.append)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    made = make_campaigning(Booted(root=tmp_path / "machine"), monkeypatch)
    note_rehearsed(made.host, made.provable.loader.NAME)
    monkeypatch.setattr(host_package, "Host", lambda: made.host)
    made.provable.machine.runner.answer("systemctl reboot", "")
    return made


def call(*arguments: str, answer: str = "") -> tuple[str, BaseException | None]:
    """Call the command; return what it printed, without the breaks, and what it raised."""
    done = CliRunner().invoke(trial, arguments, input=answer)
    return " ".join(done.output.split()), done.exception


def rebooted(machine: Campaigning) -> bool:
    return ("systemctl", "reboot") in machine.provable.machine.runner.argvs


def test_it_is_said_when_a_person_is_needed_and_asked_for(machine: Campaigning) -> None:
    said, error = call("start")
    assert isinstance(error, UnsafeError)
    assert "somebody has to reset the machine" in " ".join(said.split())
    assert machine.record.state is CampaignState.IDLE
    machine.require_nothing()


@pytest.mark.parametrize(("answer", "begun"), [("y\n", True), ("n\n", False)])
def test_on_a_terminal_it_is_asked_for(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch, answer: str, begun: bool
) -> None:
    class Terminal:
        """Standard input, which is one."""

        @staticmethod
        def isatty() -> bool:
            """Tell so."""
            return True

    monkeypatch.setattr(trial_module, "sys", type("Sys", (), {"stdin": Terminal}))
    _, error = call("start", answer=answer)
    assert (machine.record.state is CampaignState.ARMED) is begun
    assert isinstance(error, click.Abort | SystemExit | None)
    assert (error is None) is begun


def test_a_campaign_begins_with_what_was_asked_for(machine: Campaigning) -> None:
    said, error = call("start", "--yes", "--only", "lz4  -9", "--only", "lzop", "--max-boots", "3")
    assert error is None
    assert said.endswith("the next boot is of lz4 -9")
    assert machine.record.only == ("lz4 -9", "lzop")
    assert machine.record.most_boots == 3
    assert not machine.record.reboots
    assert not rebooted(machine)


@pytest.mark.parametrize(
    "arguments", [("--yes", "--only", "rar"), ("--yes", "--max-boots", "0"), ("--json",)]
)
def test_what_cannot_be_meant_begins_nothing(
    machine: Campaigning, arguments: tuple[str, ...]
) -> None:
    _, error = call("start", *arguments)
    assert isinstance(error, UsageError | SystemExit)
    assert machine.record.state is CampaignState.IDLE


def test_it_reboots_after_a_countdown(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    said, error = call("start", "--yes", "--reboot", "--countdown", "3")
    assert error is None
    assert slept == [1, 1, 1]
    assert "Rebooting in 1 s; Ctrl-C cancels." in said
    assert rebooted(machine)
    assert machine.record.reboots


def test_what_is_against_it_when_the_countdown_ends_is_told(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = machine.provable.machine.runner
    monkeypatch.setattr(time, "sleep", lambda _s: with_inhibitors(runner, ("shutdown", "block")))
    _, error = call("start", "--yes", "--reboot")
    assert isinstance(error, UnsafeError)
    assert "holder 1 keeps the machine from shutting down: work" in error.message
    assert not rebooted(machine)
    assert machine.record.state is CampaignState.ARMED
    assert machine.provable.loader.is_armed
    with_inhibitors(runner)
    monkeypatch.setattr(time, "sleep", lambda _s: None)
    assert call("next")[1] is None
    assert rebooted(machine)


def test_a_campaign_that_is_paused_during_the_countdown_reboots_nothing(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _s: pause(machine.host))
    said, error = call("start", "--yes", "--reboot")
    assert error is None
    assert said.endswith("Not rebooted: the campaign has no boot armed any more.")
    assert not rebooted(machine)


def test_where_a_passphrase_is_asked_for_a_person_has_to_reboot(machine: Campaigning) -> None:
    with_open_disk(machine.host.root, machine.provable.machine.runner)
    _, error = call("start", "--yes", "--reboot")
    assert isinstance(error, UnsafeError)
    assert "leave --reboot out" in error.with_hint
    assert machine.record.state is CampaignState.IDLE
    assert call("start", "--yes")[1] is None
    assert machine.provable.loader.is_armed


def test_it_reboots_by_itself_until_it_is_paused(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    call("start", "--yes", "--reboot")
    machine.provable.machine.runner.calls.clear()
    call("pause")
    said, error = call("resume")
    assert (said, error) == ("the next boot is of lz4 -9", None)
    assert not machine.record.reboots
    assert not rebooted(machine)
    said, _ = call("resume", "--reboot")
    assert said.startswith("it is armed for the next boot Rebooting in 30 s")
    assert machine.record.reboots
    assert rebooted(machine)


def test_arming_the_next_boot_reboots_where_the_campaign_does(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    call("start", "--yes", "--reboot")
    machine.provable.machine.runner.calls.clear()
    slept.clear()
    said, error = call("next", "--countdown", "2")
    assert error is None
    assert said.startswith("it is armed for the next boot Rebooting in 2 s")
    assert slept == [1, 1]
    assert rebooted(machine)


def test_a_paused_campaign_is_not_armed_before_it_is_resumed(machine: Campaigning) -> None:
    call("start", "--yes")
    call("pause")
    _, error = call("next")
    assert isinstance(error, UnsafeError)
    assert error.with_hint == (
        "not arming a boot: campaign 1 is paused (initadvisor trial resume goes on)"
    )
    machine.require_nothing()
    assert machine.record.state is CampaignState.PAUSED


def test_a_countdown_that_is_cancelled_leaves_the_boot_armed(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    said, error = call("start", "--yes", "--reboot")
    assert error is None
    assert said.endswith("Not rebooted: the next reboot, whenever it comes, boots the trial.")
    assert not rebooted(machine)
    assert machine.provable.loader.is_armed


def test_status_says_where_to_look_for_what_is_against_a_reboot(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _s: None)
    words = "journalctl -u initadvisor-reboot.service"
    call("start", "--yes", "--reboot")
    assert words in call("status")[0]
    call("pause")
    assert words not in call("status")[0]
    del machine


def test_status_for_a_person(machine: Campaigning) -> None:
    assert call("status") == ("No campaign was started yet.", None)
    call("start", "--yes", "--max-boots", "9")
    machine.boot()
    machine.boot()
    said, error = call("status")
    assert error is None
    for words in (
        "Campaign 1 is armed: the next boot is of xz.",
        "Boots: 2 of at most 9; 20 of each setting would be 100.",
        "- zstd -19: 0.4 MB, today's image",
        "booted well: 1",
        "Not booted any more: - gzip: it panicked: No working init found.",
        "- gzip: failed (it panicked: No working init found.)",
        "- xz: not judged yet",
    ):
        assert words in said


@pytest.mark.parametrize("state", [CampaignState.PREPARING, CampaignState.PAUSED])
def test_status_says_what_ends_one_that_has_nothing_armed(
    machine: Campaigning, state: CampaignState
) -> None:
    write_campaign(machine.host, campaign(state))
    said, _ = call("status")
    assert "initadvisor trial resume; initadvisor trial stop ends it." in said


def test_status_for_programs(machine: Campaigning) -> None:
    call("start", "--yes")
    machine.boot()
    machine.boot()
    said, _ = call("status", "--json")
    document = json.loads(said)
    assert (document["schema"], document["number"], document["state"]) == (3, 1, "armed")
    assert (document["boots"], document["most_boots"]) == (2, 20)
    assert [found["setting"] for found in document["quarantined"]] == ["gzip"]
    assert [found["outcome"] for found in document["armed"]] == ["passed", "failed", None]
    assert {found["setting"]: found["booted"] for found in document["candidates"]} == {
        "zstd -19": 0,
        "lz4 -9": 1,
        "xz": 0,
        "lzop": 0,
    }


def test_the_machine_s_status_has_it(machine: Campaigning) -> None:
    call("start", "--yes")
    del machine
    said = CliRunner().invoke(machine_status).stdout
    assert "Campaign 1 of trials: armed" in said
    assert "the next boot is of lz4 -9" in said
    document = json.loads(CliRunner().invoke(machine_status, ["--json"]).stdout)
    assert document["campaign"]["state"] == "armed"


def test_a_damaged_record_is_named_with_what_to_do(machine: Campaigning) -> None:
    call("start", "--yes")
    path = machine.host.state_dir() / "campaigns/000001.json"
    path.write_text("{}")
    _, error = call("status")
    assert isinstance(error, InitadvisorError)
    said = " ".join(CliRunner().invoke(machine_status).stdout.split())
    for words in (error.with_hint, said):
        assert (
            f"cannot read the campaign in {path}: campaign lacks schema (initadvisor trial stop"
            in words
        )
    said, error = call("stop")
    assert error is None
    assert "it is kept as 000001.json.aside-1" in said
    machine.require_nothing()
    assert call("status") == ("No campaign was started yet.", None)


def test_pausing_resuming_and_stopping(machine: Campaigning) -> None:
    call("start", "--yes")
    assert call("pause") == ("it was paused", None)
    machine.require_nothing()
    said, error = call("resume")
    assert (said, error) == ("the next boot is of lz4 -9", None)
    assert call("stop") == ("it was stopped", None)
    machine.require_nothing()
    _, error = call("resume")
    assert isinstance(error, UnsafeError)
    assert "no campaign is on" in error.message


def test_which_boot_would_be_next_is_said_and_nothing_done(machine: Campaigning) -> None:
    assert call("next", "--dry-run")[0].startswith("No boot can be chosen yet")
    call("start", "--yes")
    pause(machine.host)
    said, error = call("next", "--dry-run")
    assert (said, error) == ("The next boot would be of lz4 -9: it has not booted yet.", None)
    machine.require_nothing()
    assert machine.record.state is CampaignState.PAUSED


def test_which_boot_would_be_next_for_programs(machine: Campaigning) -> None:
    def following() -> object:
        document = json.loads(call("next", "--dry-run", "--json")[0])
        return document["next"], document["reason"]

    assert following() == (None, None)
    call("start", "--yes")
    assert following() == ({"setting": "lz4 -9", "today": False}, "it is armed already")
    pause(machine.host)
    assert following() == ({"setting": "lz4 -9", "today": False}, "it has not booted yet")
    forget_rehearsed(machine.host)
    words = "the boot loader is tried with today's image first"
    assert following() == ({"setting": "zstd -19", "today": True}, words)
    call("stop")
    assert following() == (None, None)


def test_what_is_armed_already_stays(machine: Campaigning) -> None:
    call("start", "--yes")
    before = machine.record
    assert call("next") == ("it is armed for the next boot", None)
    assert machine.record == before


def test_a_reason_cannot_command_the_terminal(machine: Campaigning) -> None:
    evil = campaign(CampaignState.DONE)
    write_campaign(machine.host, type(evil)(number=1, state=evil.state, reason="a\x1b[2J"))
    assert "\x1b" not in call("status")[0]
    assert "\\x1b" in call("status")[0]


def test_without_root_nothing_is_begun(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", property(lambda _self: False))
    for command in (("start", "--yes"), ("pause",), ("stop",), ("resume",)):
        _, error = call(*command)
        assert isinstance(error, InitadvisorError)
        assert error.exit_code == 4
    assert read_campaign(machine.host).state is CampaignState.IDLE
