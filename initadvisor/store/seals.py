"""A checksum for each row: what is damaged is left out, and the rest is read all the same.

Every row of a measurement has a ``seal`` over its other columns, so that a single flipped byte in
one is noticed. Each connection has views, under the names of the tables, that show only rows whose
seal is right: statements that read need not know of it, and those that write name ``main``.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Value = str | int | None


_OWN_NUMBERS = {"number", "seal"}
"""Columns that a seal does not cover: SQLite gives out the first when a row is inserted."""

_NAMES = {
    "boot": ("'boot ' || substr(boot_id, 1, 8)", "number"),
    "boot_record": (
        "'boot ' || coalesce((SELECT substr(boot_id, 1, 8) FROM main.boot"
        " WHERE number = main.boot_record.boot), '?')",
        "boot",
    ),
    "boot_kind": ("'boots of kind ' || number", "number"),
    "lab_run": ("'lab run ' || number", "number"),
    "lab_subject": ("'lab run ' || run || ', image ' || position", "run, position"),
    "lab_sample": ("'lab run ' || run || ', sample ' || number", "number"),
    "lab_lost": ("'lab run ' || run || ', lost boot ' || number", "number"),
    "lab_warning": ("'lab run ' || run || ', warning ' || position", "run, position"),
    "verification": ("'verification ' || number", "number"),
    "engine_trial": ("'trial of ' || engine", "engine, circumstances"),
}
"""The tables with seals: how a row is called, and its key."""


_A_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRow:
    """A row whose seal is broken, as it is called."""

    name: str


def seal_of(table: str, values: Mapping[str, Value]) -> int:
    """Return the checksum of a row; columns without a value do not count."""
    kept = sorted((name, value) for name, value in values.items() if name not in _OWN_NUMBERS)
    return _seal(table, ((name, _bytes(value)) for name, value in kept if value is not None))


def _bytes(value: str | int) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else b"%d" % value


def _seal(table: str, columns: Iterator[tuple[str, bytes]]) -> int:
    seal = zlib.crc32(table.encode())
    for name, value in columns:
        seal = zlib.crc32(b"\0%s\0%d\0%s" % (name.encode(), len(value), value), seal)
    return seal


@cache
def _split(names: str) -> tuple[str, ...]:
    return tuple(names.split(" "))


def _sql_seal(table: str, names: str, *values: bytes | None) -> int:
    columns = zip(_split(names), values, strict=True)
    return _seal(table, ((name, value) for name, value in columns if value is not None))


def show_whole_rows(connection: sqlite3.Connection) -> None:
    """Have a connection see only rows that are as they were written."""
    connection.create_function("seal_of", -1, _sql_seal, deterministic=True)
    connection.execute("PRAGMA temp_store = MEMORY")
    for table in _NAMES:
        condition = _is_whole(connection, table)
        if table == "boot":
            condition += " AND kind IN (SELECT number FROM temp.boot_kind)"
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE {condition}"  # noqa: S608
        )


def damaged_rows(connection: sqlite3.Connection) -> tuple[DamagedRow, ...]:
    """Return the rows that are left out."""
    found = []
    for table, (name, _) in _NAMES.items():
        condition = _is_whole(connection, table)
        rows = connection.execute(
            f"SELECT {name} AS name FROM main.{table} WHERE NOT ({condition})"  # noqa: S608
        )
        found += [DamagedRow(name=str(row["name"])) for row in rows]
    return tuple(found)


def drop_damaged_rows(connection: sqlite3.Connection) -> None:
    """Delete the rows that are left out, with what belongs to them."""
    broken = {table: f"NOT ({_is_whole(connection, table)})" for table in _NAMES}
    for table, (_, key) in _NAMES.items():
        if table in {"boot_kind", "boot_record"}:
            column = "kind" if table == "boot_kind" else "number"
            connection.execute(
                f"DELETE FROM main.boot WHERE {column} IN "  # noqa: S608
                f"(SELECT {key} FROM main.{table} WHERE {broken[table]})"
            )
        connection.execute(f"DELETE FROM main.{table} WHERE {broken[table]}")  # noqa: S608
    connection.execute("REINDEX")


def _is_whole(connection: sqlite3.Connection, table: str) -> str:
    """Return the condition that a row's seal is right; of a table without one it is an error."""
    columns = [row["name"] for row in connection.execute(f"PRAGMA main.table_info({table})")]
    names = sorted(name for name in columns if name not in _OWN_NUMBERS)
    if not all(map(_A_NAME.fullmatch, names)):
        err = sqlite3.DatabaseError(f"{table} has columns {', '.join(names)}")
        err.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise err
    values = ", ".join(f"CAST({name} AS BLOB)" for name in names)
    return f"{table}.seal = seal_of('{table}', '{' '.join(names)}'{', ' * bool(values)}{values})"
