"""``--help`` answers at once, also where no command or an unknown one is named."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from initadvisor.cli import COMMANDS, SECTIONS, root
from tests.fixtures.waiting import HANGS_S

SCRIPT = """
import sys
from initadvisor.cli import root
root(["--help"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "module", ["sqlite3", "numpy", "rich", "zstandard", "psutil", "pyudev", "jinja2"]
)
def test_help_loads_no(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert "history" in done.stdout
    loaded = done.stderr.split()
    assert "initadvisor.cli" in loaded
    assert module not in loaded


def test_commands_are_grouped_and_the_units_own_is_hidden() -> None:
    shown = CliRunner().invoke(root, ["--help"]).stdout
    titles = [line.rstrip(":") for line in shown.splitlines() if line.rstrip(":") in SECTIONS]
    assert titles == list(SECTIONS)
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS[:-1])
    assert COMMANDS[-1] == "settle"
    assert "settle" not in shown
    assert "take-back" in CliRunner().invoke(root, ["settle", "--help"]).stdout


def test_without_a_command_the_help_is_shown() -> None:
    done = CliRunner().invoke(root, [])
    assert (done.exit_code, done.stdout) == (0, CliRunner().invoke(root, ["--help"]).stdout)


@pytest.mark.parametrize(
    ("typed", "told"),
    [("recomend", "Did you mean recommend?"), ("statsu", "Did you mean status?"), ("xyzzy", "")],
)
def test_an_unknown_command_names_the_nearest(typed: str, told: str) -> None:
    done = CliRunner().invoke(root, [typed])
    assert done.exit_code == 2
    assert f"No such command '{typed}'." in done.stderr
    assert told in done.stderr
    assert ("Did you mean" in done.stderr) is bool(told)


@pytest.mark.parametrize(
    ("name", "value", "color"),
    [("NO_COLOR", "1", False), ("NO_COLOR", "", None), ("TERM", "dumb", False)],
)
def test_who_wants_no_colour_gets_none(
    name: str, value: str, color: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    assert root.callback
    with click.Context(root) as ctx:
        ctx.invoked_subcommand = "recommend"
        root.callback(verbose=0)
    assert ctx.color is color
