"""The doctor on this very machine, whatever it is: with little work, and leaving nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.doctor.findings import Grade, Topic
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tools

MOST_CALLS = 3_000_000
"""Calls and returns of functions, those of imports included; observed: 930,000."""
MOST_BYTES = 100_000_000
"""Read by the program itself; observed: 7.6 MB."""
COUNTED = """
import atexit, sys
calls = 0


def count(frame, event, argument):
    global calls
    calls += 1


def tell():
    sys.setprofile(None)
    with open("/proc/self/io") as io, open("COUNTS", "w") as file:
        read = dict(line.split(": ") for line in io)["rchar"]
        file.write(f"{calls} {read}")


atexit.register(tell)
sys.setprofile(count)
from initadvisor.cli import main
main()
"""


def examined(
    place: Path, *words: str, program: tuple[str, ...] = ("-m", "initadvisor")
) -> list[dict[str, Any]]:
    """Run the command, with nothing kept yet, and return the findings."""
    done = subprocess.run(
        [sys.executable, *program, "doctor", "--json", *words],
        env={
            **os.environ,
            "STATE_DIRECTORY": str(place / "state"),
            "CACHE_DIRECTORY": str(place / "cache"),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
    )
    assert done.stderr == ""
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert done.returncode == any(finding["grade"] == Grade.OBSTACLE for finding in findings)
    return findings


def test_it_looks_at_everything_and_leaves_nothing(tmp_path: Path) -> None:
    findings = examined(tmp_path)
    assert {finding["topic"] for finding in findings} == set(Topic)
    assert list(tmp_path.iterdir()) == []


def test_it_is_little_work(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    examined(tmp_path, program=("-c", COUNTED.replace("COUNTS", str(counts))))
    calls, read_bytes = map(int, counts.read_text().split())
    assert 0 < calls < MOST_CALLS
    assert 0 < read_bytes < MOST_BYTES


def test_engines_are_tried_when_asked_for(tmp_path: Path) -> None:
    """User-mode Linux is there for the other tests, and says its version."""
    said = [f for f in examined(tmp_path, "--try-engines") if f["topic"] == Topic.ENGINES]
    works = [finding["text"] for finding in said if finding["grade"] == Grade.OK]
    assert any(text.startswith("uml works: user-mode Linux ") for text in works)
    assert len(said) >= 3
