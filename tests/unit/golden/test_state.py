"""What is stored today is read as it was meant, and nothing is stored in another way.

The archive is written anew only where the state would be stored in another way.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

import pytest

from initadvisor.store.opening import FILE_NAME
from tests.fixtures.golden_documents import GOLDEN, WRITING, check, written
from tests.fixtures.golden_states import STATE, make_state, pack, state_host, unpack, values

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine without a state yet."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return state_host(tmp_path)


def stored(directory: Path) -> dict[str, object]:
    """Return the content of each file, of the data base its statements; None for a directory."""
    return {
        str(path.relative_to(directory)): _content(path)
        for path in sorted(directory.rglob("*"))
        if path.suffix not in {".sqlite-shm", ".sqlite-wal"}
    }


def _content(path: Path) -> object:
    if path.is_dir():
        return None
    if path.name != FILE_NAME:
        return path.read_bytes().decode().splitlines()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        numbers = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        ]
        return [*numbers, *connection.iterdump()]


def test_it_is_written_as_it_was(host: Host, tmp_path: Path) -> None:
    make_state(host)
    now = stored(host.state_dir())
    golden = tmp_path / "golden"
    if STATE.exists() or not WRITING:
        unpack(golden)
    if WRITING and stored(golden) != now:
        written(STATE, pack(host.state_dir()))
    assert stored(golden) == now


def test_all_of_it_comes_back(host: Host) -> None:
    unpack(host.state_dir())
    check(GOLDEN / "state/values.json", values(host))
