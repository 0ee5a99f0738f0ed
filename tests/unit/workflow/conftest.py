"""Machines made of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.measure import measure
from tests.fakes import work_clock
from tests.fixtures.booted import Booted

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.records.boot import BootRecord


@pytest.fixture(autouse=True)
def _same_processor_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is weighed does not rest on how quick, or how busy, the machine is that tests run on."""
    work_clock.install(monkeypatch)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[BootRecord]:
    """What the journal was told; nothing goes to the real one."""
    records: list[BootRecord] = []
    monkeypatch.setattr(measure, "announce", records.append)
    return records


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[BootRecord]) -> Booted:
    """A machine that has just booted, where nothing was measured yet."""
    del told
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Booted(root=tmp_path / "machine")
