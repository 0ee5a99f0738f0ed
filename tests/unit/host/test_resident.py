"""How much of a file is in memory is told to those who may know, and to nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host.files import open_regular
from initadvisor.host.storage.cold_read import resident_fraction

if TYPE_CHECKING:
    import pytest


def test_a_file_that_was_just_written_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    with open_regular(path) as file:
        assert resident_fraction(file) == 1.0


def test_of_a_file_that_is_somebody_else_s_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(os, "access", lambda path, _mode: not Path(path).exists())
    with open_regular(Path("/etc/passwd")) as file:
        assert resident_fraction(file) == 0.0
