"""What systemd says of a boot, and what that means for an image that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.host import Host
from initadvisor.trial.evaluation import Completion
from initadvisor.trial.evidence import completion, failed_units, require_boot_time_unit
from tests.fakes.runner import FakeRunner
from tests.fixtures.provable_machine import ACTIVE, ASKED, NOT_ASKED

if TYPE_CHECKING:
    from pathlib import Path

INACTIVE = "ActiveState=inactive\n"
UNIT = "systemctl show --property=LoadState,WantedBy initadvisor-settle.timer"


@pytest.fixture
def runner() -> FakeRunner:
    """Programs that say what a test wants."""
    return FakeRunner()


@pytest.fixture
def host(tmp_path: Path, runner: FakeRunner) -> Host:
    """A machine that runs systemd."""
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    return Host(root=tmp_path, runner=runner)


@pytest.mark.parametrize(
    ("default", "complete", "service", "expected"),
    [
        (ACTIVE, ACTIVE, ASKED, Completion.COMPLETE),
        (ACTIVE, ACTIVE, NOT_ASKED, Completion.COMPLETE),  # somebody else asks for it here
        (ACTIVE, INACTIVE, NOT_ASKED, Completion.STARTING),
        (ACTIVE, INACTIVE, ASKED, Completion.FAILED),
        ("ActiveState=failed\n", ACTIVE, ASKED, Completion.FAILED),
        # Reached because it was asked for, before the default target was.
        (INACTIVE, ACTIVE, NOT_ASKED, Completion.STARTING),
        (INACTIVE, ACTIVE, "ActiveState=inactive\n", Completion.STARTING),
    ],
)
def test_how_far_a_boot_has_come(
    host: Host,
    runner: FakeRunner,
    default: str,
    complete: str,
    service: str,
    expected: Completion,
) -> None:
    runner.answer(
        "systemctl show --property=ActiveState,ExecMainStartTimestampMonotonic "
        "default.target boot-complete.target initadvisor-settle.service",
        "\n".join((default, complete, service)),
    )
    assert completion(host) is expected


def test_systemd_that_does_not_answer_is_waited_for(host: Host, runner: FakeRunner) -> None:
    runner.answer("systemctl show", "", stderr="Failed to connect to bus", returncode=1)
    assert completion(host) is Completion.STARTING


def test_without_systemd_no_boot_is_complete(tmp_path: Path, runner: FakeRunner) -> None:
    assert completion(Host(root=tmp_path, runner=runner)) is Completion.STARTING
    assert runner.calls == []


def test_a_program_that_is_missing_is_an_error(host: Host, runner: FakeRunner) -> None:
    runner.answer("systemctl", error=ProgramError("systemctl is not installed"))
    with pytest.raises(ProgramError):
        completion(host)


def test_units_that_failed_are_named(host: Host, runner: FakeRunner) -> None:
    said = "a.service loaded failed failed A thing\n\nb.mount loaded failed failed /b\n"
    runner.answer("systemctl list-units --state=failed --plain --no-legend", said)
    assert failed_units(host) == ("a.service", "b.mount")


@pytest.mark.parametrize(
    ("said", "is_there"),
    [
        ("LoadState=loaded\nWantedBy=timers.target\n", True),
        ("LoadState=loaded\nWantedBy=a.target timers.target\n", True),
        ("LoadState=loaded\nWantedBy=\n", False),
        ("LoadState=masked\nWantedBy=timers.target\n", False),
        ("LoadState=not-found\nWantedBy=\n", False),
        ("", False),
    ],
)
def test_somebody_has_to_judge(
    host: Host, runner: FakeRunner, said: str, *, is_there: bool
) -> None:
    runner.answer(UNIT, said)
    if is_there:
        require_boot_time_unit(host)
        return
    with pytest.raises(UnsafeError, match="nothing would judge") as raised:
        require_boot_time_unit(host)
    assert raised.value.hint is not None
    assert "--immediate" in raised.value.hint


def test_without_systemd_nobody_judges(tmp_path: Path, runner: FakeRunner) -> None:
    with pytest.raises(UnsafeError, match="does not run systemd"):
        require_boot_time_unit(Host(root=tmp_path, runner=runner))
