"""Rows: how values go in and come out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.store.seals import seal_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    Value = str | int | None


OWN = ""
"""The owner of this machine's boots; that of others is their machine, as far as it is known."""


def insert(
    connection: sqlite3.Connection,
    table: str,
    values: Mapping[str, Value],
    *,
    replace: bool = False,
) -> int:
    """Insert one row and return its number; ``table`` and the names of columns are the program's.

    It gets its seal. Text goes in as bytes, because paths may hold what is no UTF-8.
    """
    values = {**values, "seal": seal_of(table, values)}
    cursor = connection.execute(
        f"INSERT {'OR REPLACE ' if replace else ''}INTO main.{table} ({', '.join(values)}) "  # noqa: S608
        f"VALUES ({', '.join(map(holder, values.values()))})",
        [bound(value) for value in values.values()],
    )
    return int(cursor.lastrowid or 0)


def holder(value: Value) -> str:
    """Return the place in a statement that a value is bound to."""
    return "CAST(? AS TEXT)" if isinstance(value, str) else "?"


def bound(value: Value) -> bytes | int | None:
    """Return what is bound to it."""
    return as_bytes(value) if isinstance(value, str) else value


def as_bytes(text: str) -> bytes:
    """Return the bytes that ``text`` is kept as."""
    return text.encode("utf-8", "surrogateescape")


def since_text(since: datetime | None) -> str:
    """Return what ``started_at`` is compared with."""
    return utc_text(since) if since else ""


def utc_text(at: datetime) -> str:
    """Return a moment as text that sorts by time; raises ``ValueError`` if it has no time zone."""
    if at.tzinfo is None:
        msg = f"{at} has no time zone"
        raise ValueError(msg)
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def utc_time(text: str) -> datetime:
    """Return what ``utc_text`` made text of; raises ``ValueError`` for anything else."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        msg = f"{text} has no time zone"
        raise ValueError(msg)
    return at


def text(row: sqlite3.Row, column: str) -> str:
    """Return a text of a row; raises ``TypeError`` for anything else, which only damage puts there.

    The columns' types are enforced when they are written, not when they are read.
    """
    value = row[column]
    if not isinstance(value, str):
        raise TypeError(column)
    return value


def number(row: sqlite3.Row, column: str) -> int:
    """Return a number of a row; raises ``TypeError`` for anything else."""
    value = row[column]
    if not isinstance(value, int):
        raise TypeError(column)
    return value
