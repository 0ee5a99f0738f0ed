"""Shells are offered every command, option and choice, and do not wait for what answers need."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.shell_completion import ShellComplete

from initadvisor.cli import COMMANDS, root
from initadvisor.records.lab import Engine

if TYPE_CHECKING:
    from pathlib import Path

_ASK = """
import sys
sys.argv[0] = "initadvisor"
from initadvisor.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


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


def test_nothing_slow_is_loaded(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "_INITADVISOR_COMPLETE": "bash_complete",
        "COMP_WORDS": "initadvisor recommend --",
        "COMP_CWORD": "2",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=True
    )
    assert "plain,--json" in done.stdout.splitlines()
    assert not {"numpy", "rich", "psutil", "pyudev", "sqlite3", "lz4"} & set(done.stderr.split())
