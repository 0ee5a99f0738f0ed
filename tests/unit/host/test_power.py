"""Nobody shuts the machine down meanwhile, where that can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.host.power import inhibited
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = (
    "systemd-inhibit",
    "--what=shutdown:sleep",
    "--mode=block",
    "--who=initadvisor",
    "--why=replacing the initramfs",
    "cat",
)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine that was booted with systemd."""
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    return Host(root=tmp_path, runner=FakeRunner(programs=["systemd-inhibit"]))


def test_it_is_held_as_long_as_the_block(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    runner = host.runner
    assert isinstance(runner, FakeRunner)
    runner.answer("systemd-inhibit")
    with inhibited(host, "replacing the initramfs"):
        assert runner.held == [COMMAND]
    assert runner.held == []
    assert caplog.text == ""


def test_it_is_given_back_when_the_block_fails(host: Host) -> None:
    runner = host.runner
    assert isinstance(runner, FakeRunner)
    runner.answer("systemd-inhibit")
    with pytest.raises(KeyboardInterrupt), inhibited(host, "why"):
        raise KeyboardInterrupt
    assert runner.held == []


@pytest.mark.parametrize(
    ("booted", "installed", "status", "said"),
    [
        (False, True, 0, "not booted with systemd"),
        (True, False, 0, "not installed"),
        (True, True, 1, "Failed to inhibit: Access denied"),
    ],
)
def test_without_it_the_block_runs_with_a_warning(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    booted: bool,
    installed: bool,
    status: int,
    said: str,
) -> None:
    runner = FakeRunner(programs=["systemd-inhibit"] if installed else [])
    runner.answer("systemd-inhibit", stderr=said, returncode=status)
    if booted:
        (tmp_path / "run/systemd/system").mkdir(parents=True)
    ran = False
    with inhibited(Host(root=tmp_path, runner=runner), "why"):
        ran = True
    assert ran
    assert "nothing keeps this machine from shutting down" in caplog.text
    assert said in caplog.text
