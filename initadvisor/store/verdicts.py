"""Verifications and trials of engines in the data base."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.records.lab import Engine, EngineTrial, Unpacked, Verification
from initadvisor.store.lab_runs import kernel_columns, kernel_of
from initadvisor.store.rows import as_bytes, insert, number, text, utc_text, utc_time

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


def add(connection: sqlite3.Connection, verification: Verification) -> None:
    """Record a verification."""
    insert(
        connection,
        "verification",
        {
            "at": utc_text(verification.at),
            "engine": verification.engine,
            **kernel_columns(verification.kernel),
            "image_sha256": verification.image_sha256,
            "content_sha256": verification.content_sha256,
            "unpacked": verification.unpacked,
            "words": verification.reason,
        },
    )


def recorded(
    connection: sqlite3.Connection,
    image_sha256: str | None,
    *,
    limit: int | None,
    since: datetime | None,
) -> tuple[Verification, ...]:
    """Return the verifications, of one image or of all, the newest first, at most ``limit``."""
    rows = connection.execute(
        "SELECT * FROM verification WHERE (?1 IS NULL OR image_sha256 = ?1) AND at >= ?2 "
        "ORDER BY number DESC LIMIT ?3",
        (image_sha256, utc_text(since) if since else "", -1 if limit is None else limit),
    )
    return tuple(
        Verification(
            at=utc_time(text(row, "at")),
            engine=Engine(text(row, "engine")),
            kernel=kernel_of(row),
            image_sha256=text(row, "image_sha256"),
            content_sha256=text(row, "content_sha256"),
            unpacked=Unpacked(text(row, "unpacked")),
            reason=text(row, "words"),
        )
        for row in rows
    )


def remember(connection: sqlite3.Connection, trial: EngineTrial) -> None:
    """Record what came of trying an engine, in place of an earlier trial in the circumstances."""
    insert(
        connection,
        "engine_trial",
        {
            "engine": trial.engine,
            "circumstances": trial.circumstances,
            "works": int(trial.works),
            "reason": trial.reason,
            "at": utc_text(trial.at),
        },
        replace=True,
    )


def trial_of(
    connection: sqlite3.Connection, engine: Engine, circumstances: str
) -> EngineTrial | None:
    """Return what came of trying the engine in these very circumstances, None if never tried."""
    row = connection.execute(
        "SELECT * FROM engine_trial WHERE engine = ? AND circumstances = CAST(? AS TEXT)",
        (engine, as_bytes(circumstances)),
    ).fetchone()
    if row is None:
        return None
    return EngineTrial(
        engine=Engine(text(row, "engine")),
        circumstances=text(row, "circumstances"),
        works=bool(number(row, "works")),
        reason=text(row, "reason"),
        at=utc_time(text(row, "at")),
    )
