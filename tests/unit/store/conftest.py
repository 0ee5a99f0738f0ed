"""A machine with a state directory of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Iterator


_MEMORY = Path("/dev/shm")  # noqa: S108  # a directory of its own is made there


@pytest.fixture
def path() -> Iterator[Path]:
    """Where the data base is or would be: no disk has to write it again and again."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as place:
        yield Path(place, "state/initadvisor.sqlite")


@pytest.fixture
def host(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine where nothing was measured yet."""
    monkeypatch.setenv("STATE_DIRECTORY", str(path.parent))
    return Host(root=tmp_path, runner=FakeRunner())
