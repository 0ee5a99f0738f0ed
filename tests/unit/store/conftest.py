"""A machine with a state directory of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the data base is or would be."""
    return tmp_path / "state/initadvisor.sqlite"


@pytest.fixture
def host(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine where nothing was measured yet."""
    monkeypatch.setenv("STATE_DIRECTORY", str(path.parent))
    return Host(root=tmp_path, runner=FakeRunner())
