"""What unit tests rely on."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.measure import measure
from tests.fakes import work_clock
from tests.fixtures.booted import Booted
from tests.fixtures.memory import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.records.boot import BootRecord


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a directory in memory where there is such a place: syncing a disk takes long."""
    with tempfile.TemporaryDirectory(prefix="unit-", dir=MEMORY) as directory:
        yield Path(directory)


@pytest.fixture(autouse=True)
def _temporary_files_in_memory() -> Iterator[None]:
    """What the program itself puts into temporary files waits for no disk either."""
    with pytest.MonkeyPatch.context() as patched:
        if MEMORY:
            patched.setattr(tempfile, "tempdir", str(MEMORY))
        yield


@pytest.fixture(autouse=True)
def _same_processor_everywhere() -> Iterator[None]:
    """Answers do not depend on how quick, or how busy, the machine is that tests run on."""
    with pytest.MonkeyPatch.context() as patched:
        work_clock.install(patched)
        yield


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Have the program take its user for an ordinary one: root is told other things."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: 1000)
        yield


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
