"""What ``enable`` and ``disable`` say and ask, and what ``status`` says of it afterwards."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli import enable as enable_module
from initadvisor.cli import root
from initadvisor.core.errors import UnsafeError
from initadvisor.measure import measure
from initadvisor.store.store import open_store
from tests.fakes.compressors import fake_compressors
from tests.fixtures.enabling_machine import CONFIG, UnitRunner, make_enabling, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.campaign_machine import Campaigning


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Campaigning, UnitRunner]:
    """A machine that the commands take for the real one, and its programs."""
    made = make_enabling(tmp_path, monkeypatch)
    monkeypatch.setattr(host_package, "Host", lambda: made[0].host)
    return made


def call(*arguments: str, answer: str = "") -> tuple[list[str], BaseException | None]:
    """Call a command; return the lines that it printed and what it raised."""
    done = CliRunner().invoke(root, arguments, input=answer, standalone_mode=False)
    return done.output.splitlines(), done.exception


def test_five_lines_say_what_will_happen(made: tuple[Campaigning, UnitRunner]) -> None:
    for policy, words in (
        ("advise", "nothing that boots is changed"),
        ("try", "Up to 6 of the reboots that happen anyway try a candidate"),
        ("apply", "the best is configured"),
    ):
        said, error = call("enable", "--policy", policy, "--yes")
        assert error is None
        assert [line[:3] for line in said[:6]] == ["1. ", "2. ", "3. ", "4. ", "5. ", said[5][:3]]
        assert words in said[2]
        assert "sudo initadvisor disable" in said[4]
        assert all(len(line) <= 80 for line in said)
    made[0].provable.machine.write(CONFIG, "[daemon]\ntrial_boots_per_kernel = 0\n")
    for policy, words in (("try", "No reboot tries anything"), ("apply", "the best is applied")):
        said, _ = call("enable", "--policy", policy, "--yes")
        assert words in said[2]
        assert "trial fails" not in said[3]
        assert len(said[2]) <= 80


def test_nobody_to_be_asked_is_no_consent(made: tuple[Campaigning, UnitRunner]) -> None:
    before = snapshot(made[0])
    said, error = call("enable", "--policy", "try")
    assert isinstance(error, UnsafeError)
    assert "--yes accepts it" in error.with_hint
    assert "somebody has to reset the machine" in " ".join(said)
    assert snapshot(made[0]) == before
    assert isinstance(call("enable", "--policy", "try", "--json")[1], UnsafeError)
    assert call("enable")[1] is None  # to advise needs none


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False), ("", False)])
def test_on_a_terminal_it_is_asked_for_once(
    made: tuple[Campaigning, UnitRunner],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    agreed: bool,
) -> None:
    class Terminal:
        """Standard input, which is one."""

        @staticmethod
        def isatty() -> bool:
            """Tell so."""
            return True

    monkeypatch.setattr(enable_module, "sys", type("Sys", (), {"stdin": Terminal}))
    before = snapshot(made[0])
    _, error = call("enable", "--policy", "apply", answer=answer)
    assert isinstance(error, click.Abort) is not agreed
    assert (snapshot(made[0]) != before) is agreed
    assert not agreed or call("enable")[1] is None


def test_the_first_advice_rests_on_the_boots_of_the_journal(
    made: tuple[Campaigning, UnitRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, runner = made
    compressors = fake_compressors()
    runner.programs = {*runner.programs, "lz4", "zstd"}
    runner.answers = [*compressors.answers, *runner.answers]
    monkeypatch.setattr(measure, "announce", lambda _record: None)
    for _ in range(2):
        machine.provable.reboot()
    said, error = call("enable", "--policy", "try", "--yes")
    assert error is None
    [advice] = [number for number, line in enumerate(said) if line.startswith("Advice so far: ")]
    assert said[advice].split()[3] in {"Keep", "Switch"}
    assert "the units are on" in " ".join(said[advice:])
    with open_store(machine.host, readonly=True) as store:
        assert len(store.known_boots()) == 3


def test_advice_that_takes_too_long_is_not_waited_for(
    made: tuple[Campaigning, UnitRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, runner = made
    busy = UnitRunner(runner.root)
    busy.programs = {*busy.programs, "zstd"}

    def compress(data: bytes) -> bytes:
        while not busy.stopped:
            time.sleep(0.01)
        return data

    busy.answer("zstd", filter=compress)
    hosts = iter((machine.host, replace(machine.host, runner=busy)))
    monkeypatch.setattr(host_package, "Host", lambda: next(hosts))
    monkeypatch.setattr(enable_module, "_ADVICE_S", 0.5)
    said, error = call("enable", "--yes")
    assert error is None
    assert any(line.startswith("Advice so far: none yet, since this machine is") for line in said)
    assert runner.enabled


def test_without_any_advice_it_is_enabled_nevertheless(
    made: tuple[Campaigning, UnitRunner],
) -> None:
    said, error = call("enable", "--yes")
    assert error is None
    assert any(
        line.startswith("Advice so far: none yet, since nothing to compare") for line in said
    )
    assert made[1].enabled


def test_disabling_says_what_stays(made: tuple[Campaigning, UnitRunner]) -> None:
    del made
    call("enable", "--policy", "apply", "--yes")
    said, error = call("disable")
    assert error is None
    words = " ".join(said)
    assert "the policy is advise, as it was before" in words
    assert "the units are off" in words
    assert "measured boots stay" in words


def test_status_says_whether_it_is_enabled(made: tuple[Campaigning, UnitRunner]) -> None:
    machine, runner = made
    assert "Enabled: no (sudo initadvisor enable)" in call("status")[0]
    call("enable", "--policy", "try", "--yes")
    said = call("status")[0]
    assert "Enabled: yes, policy try" in said
    assert "1 of at most 6 boots of Linux" in " ".join(said), "the rehearsal is one of them"
    runner.run(["systemctl", "disable", "initadvisord.path"], timeout_s=1)
    assert (
        "Enabled: in part, without initadvisord.path (sudo initadvisor enable)" in call("status")[0]
    )
    machine.provable.machine.write(CONFIG, "[daemon]\npolicy = 'no'\n")
    document = json.loads("\n".join(call("status", "--json")[0]))
    assert document["enabled"]["policy"] is None
    assert document["enabled"]["units"]["initadvisord.path"] is False
    assert sum("policy" in note for note in document["notes"]) == 1, "it is read more than once"
    runner.programs = ()
    assert not any("Enabled" in line for line in call("status")[0])
