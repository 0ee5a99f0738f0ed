"""What unit tests rely on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.memory import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a directory in memory where there is such a place: syncing a disk takes long."""
    with tempfile.TemporaryDirectory(prefix="unit-", dir=MEMORY) as directory:
        yield Path(directory)
