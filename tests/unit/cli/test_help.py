"""``--help`` answers at once: it loads nothing that only commands need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fixtures.waiting import HANGS_S

SCRIPT = """
import sys
from initadvisor.cli import root
root(["--help"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("module", ["sqlite3", "numpy", "rich", "zstandard", "psutil", "pyudev"])
def test_help_loads_no(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert "history" in done.stdout
    loaded = done.stderr.split()
    assert "initadvisor.cli" in loaded
    assert module not in loaded
