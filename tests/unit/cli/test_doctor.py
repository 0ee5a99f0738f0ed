"""What ``doctor`` prints, and what it ends with."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from initadvisor.cli.doctor import doctor
from initadvisor.doctor import doctor as looking
from initadvisor.doctor.findings import Finding, Topic, fine, note, obstacle

_FINE = fine("Python 3.11")
_NOTE = note("lzop is not\x1b installed", "sudo apt install lzop")
_STOP = obstacle("no zstd")


def found(
    monkeypatch: pytest.MonkeyPatch,
    *,
    python: tuple[Finding, ...],
    compressors: tuple[Finding, ...],
) -> list[bool]:
    """Have these findings; return whether engines were to be tried, each time."""
    asked: list[bool] = []

    def diagnose(_host: object, *, try_engines: bool) -> dict[Topic, tuple[Finding, ...]]:
        asked.append(try_engines)
        return {Topic.SYSTEM: (), Topic.PYTHON: python, Topic.COMPRESSORS: compressors}

    monkeypatch.setattr(looking, "diagnose", diagnose)
    return asked


def test_findings_stand_under_their_topics_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = found(monkeypatch, python=(_FINE,), compressors=(_NOTE, _STOP))
    result = CliRunner().invoke(doctor)
    assert result.exit_code == 1
    assert asked == [False]
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Python:", "ok    Python 3.11"]
    assert lines[2] == "Compressors:"
    assert lines[3].startswith("note  lzop is not")
    assert "\x1b" not in lines[3]
    assert lines[4:6] == ["      -> sudo apt install lzop", "STOP  no zstd"]
    assert lines[-1] == "In the way (STOP): 1; worth knowing (note): 1."


@pytest.mark.parametrize(
    ("python", "compressors"), [((), ()), ((_FINE,), ()), ((_FINE,), (_NOTE,))]
)
def test_what_is_only_worth_knowing_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
    python: tuple[Finding, ...],
    compressors: tuple[Finding, ...],
) -> None:
    found(monkeypatch, python=python, compressors=compressors)
    assert CliRunner().invoke(doctor).exit_code == 0


def test_findings_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = found(monkeypatch, python=(), compressors=(_NOTE, _STOP))
    result = CliRunner().invoke(doctor, ["--json", "--try-engines"])
    assert result.exit_code == 1
    assert asked == [True]
    assert json.loads(result.stdout) == {
        "schema": 3,
        "findings": [
            {
                "topic": "compressors",
                "grade": "worth-knowing",
                "text": "lzop is not\x1b installed",
                "advice": "sudo apt install lzop",
            },
            {"topic": "compressors", "grade": "in-the-way", "text": "no zstd", "advice": None},
        ],
    }
