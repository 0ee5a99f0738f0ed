"""A data base is brought up to date step by step, or left as it is."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.store import schema
from initadvisor.store.schema import MIGRATIONS, NewerError, NotOursError
from initadvisor.store.store import open_store
from tests.fixtures.boots import boot_record
from tests.fixtures.lab_runs import fill, run

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

NEXT = (
    "ALTER TABLE lab_run ADD COLUMN note TEXT NOT NULL DEFAULT ''",
    "UPDATE lab_run SET note = 'from version 1'",
)
BROKEN = (
    "ALTER TABLE lab_run ADD COLUMN other TEXT",
    "UPDATE lab_run SET cpu_model = 'changed'",
    "INSERT INTO no_such_table VALUES (1)",
)


def version(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as database:
        [found] = database.execute("PRAGMA user_version").fetchone()
        return int(found)


def column(path: Path, name: str) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return [value for [value] in database.execute(f"SELECT {name} FROM lab_run")]  # noqa: S608


def later(monkeypatch: pytest.MonkeyPatch, *steps: tuple[str, ...]) -> None:
    """Be a later program, which knows more migrations."""
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, *steps))


def test_a_new_data_base_has_every_migration(host: Host, path: Path) -> None:
    with open_store(host):
        pass
    assert version(path) == len(MIGRATIONS)


@pytest.mark.parametrize("known", range(len(MIGRATIONS)))
def test_from_every_version_the_newest_is_reached(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    def tables() -> list[tuple[str, str]]:
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()

    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", MIGRATIONS[:known])
        with open_store(host):
            pass
    assert version(path) == known
    with open_store(host) as store:
        fill(store, 1)
    upgraded = tables()
    path.unlink()
    with open_store(host):
        pass
    assert upgraded == tables()


def test_what_an_earlier_program_measured_is_kept(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(host) as store:
        fill(store, 1, 2)
    later(monkeypatch, NEXT)
    with open_store(host) as store:
        [recorded] = store.lab_runs()
    assert recorded.run == run()
    assert len(recorded.samples) == 2
    assert version(path) == len(MIGRATIONS) + 1
    assert column(path, "note") == ["from version 1"]


def test_a_reader_of_an_older_one_changes_nothing(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(host) as store:
        fill(store, 1, 2)
    before = path.read_bytes()
    later(monkeypatch, NEXT)
    with open_store(host, readonly=True) as store:
        [recorded] = store.lab_runs()
    assert len(recorded.samples) == 2
    assert path.read_bytes() == before


def test_a_step_that_fails_leaves_no_half_of_it(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(host) as store:
        fill(store, 1)
    later(monkeypatch, NEXT, BROKEN)
    with pytest.raises(InitadvisorError, match="cannot write"), open_store(host):
        pass
    assert version(path) == len(MIGRATIONS) + 1
    assert column(path, "note") == ["from version 1"]
    assert column(path, "cpu_model") == [run().cpu_model]


def newer(host: Host, path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Have a later program measure something; return the data base's bytes."""
    with monkeypatch.context() as future:
        later(future, NEXT)
        with open_store(host) as store:
            fill(store, 1)
    return path.read_bytes()


def test_who_only_reads_refuses_a_newer_one_and_leaves_it(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (newer(host, path, monkeypatch), path.stat().st_mtime_ns)
    with (
        pytest.raises(NewerError, match="a newer initadvisor wrote it") as caught,
        open_store(host, readonly=True),
    ):
        pass
    assert str(path) in caught.value.message
    assert caught.value.hint == "update initadvisor"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_who_writes_moves_a_newer_one_aside_with_a_word(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = newer(host, path, monkeypatch)
    with open_store(host) as store:
        fill(store, 7)
        assert len(store.lab_runs()) == 1
    aside = path.with_name("initadvisor.sqlite.aside-1")
    assert aside.read_bytes() == before
    [said] = [record.getMessage() for record in caplog.records]
    assert "a newer initadvisor wrote it" in said
    assert f"moved to {aside}" in said
    with monkeypatch.context() as future:
        later(future, NEXT)
        aside.rename(path)
        with open_store(host) as store:
            assert len(store.lab_runs()) == 1  # its own program still reads it


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE address (name TEXT)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 252006673",
        f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = -1",
    ],
)
def test_the_data_base_of_another_program_is_left_alone(
    host: Host, path: Path, script: str, readonly: bool
) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(script)
    before = path.read_bytes()
    with (
        pytest.raises(NotOursError, match="another program"),
        open_store(host, readonly=readonly),
    ):
        pass
    assert path.read_bytes() == before


def test_boots_of_a_store_that_knew_no_disks_are_told_apart_by_their_records(
    host: Host, path: Path
) -> None:
    """As the second version kept them: no disk, no hardware, and an old way to compute classes."""
    records = (boot_record(1, boot_disk="SSD"), boot_record(2, boot_disk="HDD"), boot_record(3))
    with open_store(host) as store:
        store.add_boots(records)
        now = store.boot_figures()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        rows = database.execute(
            "SELECT boot_record.record, boot.* "
            "FROM boot JOIN boot_record ON boot_record.boot = boot.number"
        ).fetchall()
        [(kind,)] = database.execute("SELECT count(DISTINCT class_key) FROM boot_kind")
        database.execute("DROP TABLE boot_record")
        database.execute("DROP TABLE boot")
        database.execute("CREATE TEMP TABLE kinds AS SELECT * FROM boot_kind")
        database.execute("DROP TABLE boot_kind")
        for statement in MIGRATIONS[1]:
            database.execute(statement)
        database.execute(
            "INSERT INTO boot_kind SELECT min(number), owner, way, kernel, 'old', kernel_counts, "
            "loader_counts, waiting, read_source, read_beside, certainty, image_sha256, setting "
            "FROM kinds GROUP BY owner, way, kernel, kernel_counts, loader_counts, waiting, "
            "read_source, read_beside, certainty, image_sha256, setting"
        )
        [(number,)] = database.execute("SELECT number FROM boot_kind")
        for record, *columns in rows:
            columns[3] = number
            holders = ", ".join("?" * len(columns))
            database.execute(f"INSERT INTO boot VALUES ({holders})", columns)  # noqa: S608
            database.execute("INSERT INTO boot_record VALUES (?, ?)", (columns[0], record))
        database.execute("PRAGMA user_version = 2")
    assert kind == 1
    with open_store(host) as store:
        assert version(path) == len(MIGRATIONS)
        assert store.boot_figures() == now
        assert list(store.boots()) == sorted(records, key=lambda r: r.started_at, reverse=True)
