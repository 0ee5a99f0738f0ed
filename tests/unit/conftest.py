"""What unit tests rely on."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = Path("/dev/shm")  # noqa: S108  # a directory of its own is made there


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a directory in memory where there is such a place: syncing a disk takes long."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="unit-", dir=memory) as directory:
        yield Path(directory)
