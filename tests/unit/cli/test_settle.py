"""The command ``settle``: silent where there is nothing to do, else a line for what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor.apply import proving
from initadvisor.cli.settle import settle
from initadvisor.host import Host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nothing is recorded; this machine's own locks are left alone."""
    monkeypatch.setattr(proving, "clear_stale_locks", lambda _host: None)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize("arguments", [(), ("--take-back",), ("--reboot",)])
def test_nothing_to_do_is_silent_and_leaves_no_trace(
    state: Path, arguments: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(settle, arguments)
    assert (done.exit_code, done.output) == (0, "")
    assert not state.exists()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("settle", ()), ("take_back", ("--take-back",))],
)
def test_what_was_done_is_told_and_cannot_command_the_terminal(
    monkeypatch: pytest.MonkeyPatch, function: str, arguments: tuple[str, ...]
) -> None:
    def do(host: Host) -> tuple[str, ...]:
        assert host == Host(runner=host.runner, clock=host.clock)
        return ("transaction 1 is done", "two\x1b[2J")

    monkeypatch.setattr(proving, function, do)
    done = CliRunner().invoke(settle, arguments)
    assert done.exit_code == 0
    assert done.output == "transaction 1 is done\ntwo\\x1b[2J\n"
