"""A checksum for each row: what is damaged is left out, and the rest is read all the same.

Every row of a measurement has a ``seal`` over its other columns, so that a single flipped byte in
one is noticed. Each connection has views, under the names of the tables, that show only rows whose
seal is right: statements that read need not know of it, and those that write name ``main``.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Value = str | int | None


_OWN_NUMBERS = {"number", "seal"}
"""Columns that a seal does not cover: SQLite gives out the first when a row is inserted."""

_NAMES = {
    "boot": "'boot ' || substr(boot_id, 1, 8)",
    "boot_record": (
        "'boot ' || coalesce((SELECT substr(boot_id, 1, 8) FROM main.boot"
        " WHERE number = main.boot_record.boot), '?')"
    ),
    "boot_kind": "'boots of kind ' || number",
    "lab_run": "'lab run ' || number",
    "lab_subject": "'lab run ' || run || ', image ' || position",
    "lab_sample": "'lab run ' || run || ', sample ' || number",
    "lab_lost": "'lab run ' || run || ', lost boot ' || number",
    "lab_warning": "'lab run ' || run || ', warning ' || position",
    "verification": "'verification ' || number",
    "engine_trial": "'trial of ' || engine",
}
"""The tables with seals, and how a row is called."""

_OF_A_RUN = ("lab_subject", "lab_sample", "lab_lost", "lab_warning")
_OF_BOOTS = ("boot", "boot_record", "boot_kind")


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
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} WHERE {condition}"  # noqa: S608
        )


def damage(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the names of the records that are left out, or of what else is not as it was written.

    Indexes and pages are looked at where all rows are as they were: damage counts once.
    """
    found: list[str] = []
    for table, name in _NAMES.items():
        found += _names(
            connection,
            f"SELECT {name} FROM main.{table} WHERE NOT ({_is_whole(connection, table)})",  # noqa: S608
        )
    found += _out_of_place(connection)
    if not found:
        try:
            [words] = connection.execute("PRAGMA main.integrity_check(1)").fetchone()
        except sqlite3.DatabaseError as err:
            if err.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            words = str(err)
        found += [] if words == "ok" else [f"index or page: {words}"]
    return tuple(dict.fromkeys(found))


def _out_of_place(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the names of whole records whose number, or that of what belongs to them, is not.

    No seal covers the numbers that SQLite gives out.
    """
    name = _NAMES["boot"]
    yield from _names(
        connection,
        f"SELECT {name} FROM boot WHERE number NOT IN (SELECT boot FROM main.boot_record) "  # noqa: S608
        "OR kind NOT IN (SELECT number FROM main.boot_kind)",
    )
    for record in _names(
        connection,
        "SELECT record FROM boot_record WHERE boot NOT IN (SELECT number FROM main.boot)",
    ):
        yield f"boot {json.loads(record)['boot_id'][:8]}"
    for table in _OF_A_RUN:
        yield from _names(
            connection,
            f"SELECT {_NAMES[table]} FROM {table} "  # noqa: S608
            "WHERE run NOT IN (SELECT number FROM main.lab_run)",
        )


def _names(connection: sqlite3.Connection, statement: str) -> Iterator[str]:
    return (str(row[0]) for row in connection.execute(statement))


def rewrite_whole_rows(connection: sqlite3.Connection) -> None:
    """Write the whole rows of all tables but boots' anew, with their indexes, and delete the rest.

    To be called without ``PRAGMA foreign_keys``: then a table is emptied without its indexes being
    asked, which may be damaged.
    """
    for table in _NAMES:
        if table in _OF_BOOTS:
            continue
        connection.execute(f"CREATE TEMP TABLE kept AS SELECT * FROM {table}")  # noqa: S608
        connection.execute(f"DELETE FROM main.{table}")  # noqa: S608
        connection.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM kept")  # noqa: S608
        connection.execute("DROP TABLE kept")
    for table in _OF_A_RUN:
        connection.execute(
            f"DELETE FROM main.{table} WHERE run NOT IN (SELECT number FROM main.lab_run)"  # noqa: S608
        )


def _is_whole(connection: sqlite3.Connection, table: str) -> str:
    """Return the condition that a row's seal is right."""
    columns = [row["name"] for row in connection.execute(f"PRAGMA main.table_info({table})")]
    names = sorted(name for name in columns if name not in _OWN_NUMBERS)
    values = ", ".join(f"CAST({name} AS BLOB)" for name in names)
    return f"{table}.seal = seal_of('{table}', '{' '.join(names)}'{', ' * bool(values)}{values})"
