"""The doctor on this very machine, whatever it is: quickly, and leaving nothing behind."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.model.diagnosis import Grade, Topic

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tools

MOST_CPU_S = 2.0


def examined(place: Path, *words: str) -> list[dict[str, Any]]:
    """Run the command, with nothing kept yet, and return the findings."""
    done = subprocess.run(
        [sys.executable, "-m", "initadvisor", "doctor", "--json", *words],
        env={
            **os.environ,
            "STATE_DIRECTORY": str(place / "state"),
            "CACHE_DIRECTORY": str(place / "cache"),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.stderr == ""
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert done.returncode == any(finding["grade"] == Grade.OBSTACLE for finding in findings)
    return findings


def test_it_looks_at_everything_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    findings = examined(tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert {finding["topic"] for finding in findings} == set(Topic)
    assert list(tmp_path.iterdir()) == []
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent_s < MOST_CPU_S


def test_engines_are_tried_when_asked_for(tmp_path: Path) -> None:
    """User-mode Linux is there for the other tests, and says its version."""
    said = [f for f in examined(tmp_path, "--try-engines") if f["topic"] == Topic.ENGINES]
    works = [finding["text"] for finding in said if finding["grade"] == Grade.OK]
    assert any(text.startswith("uml works: user-mode Linux ") for text in works)
    assert len(said) >= 3
