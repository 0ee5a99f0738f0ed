"""The program: its options, what it says where nobody else listens, and its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.waiting import HANGS_S

REPOSITORY = Path(__file__).parents[3]


def run(*words: str, state: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the daemon on this machine, with a state directory of its own."""
    return subprocess.run(
        [sys.executable, "-m", "initadvisor.daemon", *words],
        cwd=REPOSITORY,
        env={**os.environ, "STATE_DIRECTORY": str(state), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_it_says_what_it_is(option: str, tmp_path: Path) -> None:
    done = run(option, state=tmp_path)
    assert done.returncode == 0
    assert "initadvisord" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="others are told that only root may")
@pytest.mark.parametrize(("env", "prefix"), [({}, ""), ({"JOURNAL_STREAM": "8:1"}, "<3>")])
def test_a_queue_that_others_may_write_to_is_refused(
    tmp_path: Path, env: dict[str, str], prefix: str
) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue").chmod(0o777)
    done = run(state=tmp_path, **env)
    assert done.returncode == 3
    assert done.stderr.startswith(f"{prefix}not working off {tmp_path}/queue: it is no")
    assert done.stderr.count("\n") == 1


def test_it_is_small_and_starts_fast(tmp_path: Path) -> None:
    """Most runs do little; what only some jobs need is not even loaded."""
    code = (
        "import sys, initadvisor.daemon.__main__\n"
        "heavy = {'numpy', 'rich', 'click', 'zstandard', 'psutil', 'pyudev', 'sqlite3'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
    assert list(tmp_path.iterdir()) == []
