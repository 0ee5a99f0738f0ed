"""Shells are offered every command, option and choice, and start nothing for that."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import ShellComplete

from initadvisor.cli import COMMANDS, root
from initadvisor.core.config import Config
from initadvisor.core.config_text import parse_value
from initadvisor.records.lab import Engine
from tests.fixtures.checkout import ROOT
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path


def offered(*words: str) -> set[str]:
    """Return what completes the last of the words."""
    completion = ShellComplete(root, {}, "initadvisor", "_INITADVISOR_COMPLETE")
    *before, incomplete = words
    return {item.value for item in completion.get_completions(before, incomplete)}


def test_every_command_is_offered() -> None:
    assert offered("") == set(COMMANDS) - {"settle"}
    assert offered("rec") == {"recommend"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_offered(command: str) -> None:
    assert "--help" in offered(command, "--")


def test_choices_and_subcommands_are_offered() -> None:
    assert offered("lab", "--engine", "") == {str(engine) for engine in Engine}
    assert {"build", "list", "prune"} <= offered("candidates", "")


def test_settings_tables_and_keys_are_offered() -> None:
    for words in (("apply",), ("recommend", "--only"), ("trial", "start", "--only")):
        assert offered(*words, "lz4") == {"lz4", "lz4 -1", "lz4 -9"}
    assert "arch-cloud" in offered("whatif", "--table", "arch")
    assert offered("config", "set", "machine.o") == {"machine.overlap_ms"}
    assert offered("config", "set", "no_such_key", "") == set()
    assert offered("config", "set", "daemon.policy", "") == {"advise", "try", "apply"}
    assert offered("config", "set", "daemon.motd", "t") == {"true"}
    assert offered("config", "set", "machine.overlap_ms", "") == set()
    values = offered("config", "set", "daemon.person_resets", "")
    assert {"true", "guard"} <= values
    for value in values:  # each is one that the key takes
        Config.from_tables({"daemon": {"person_resets": parse_value(value)}}, source="a test")


def test_what_shells_read_is_what_the_commands_say(tmp_path: Path) -> None:
    tool = ROOT / "tools/write_completions.py"
    subprocess.run([sys.executable, tool, tmp_path], check=True, timeout=HANGS_S)
    for written in tmp_path.iterdir():
        known = ROOT / "completions" / written.name
        told = f"{known} is not what {tool} {known.parent} writes"
        assert known.read_text(encoding="utf-8") == written.read_text(encoding="utf-8"), told
