"""The images that the lab has timed, for what asks nothing else of it and has no time to lose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.settings import Setting
from initadvisor.records.attribution import KnownImage
from initadvisor.store.rows import number, text, utc_time

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


def images(connection: sqlite3.Connection) -> tuple[tuple[KnownImage, datetime], ...]:
    """Return the images of all runs, each with when a run with it began for the first time."""
    rows = connection.execute(
        """
        SELECT sha256, size_bytes, setting, path, min(started_at) AS since
        FROM lab_subject JOIN lab_run ON lab_run.number = lab_subject.run
        GROUP BY sha256 ORDER BY since
        """
    )
    return tuple(
        (
            KnownImage(
                path=text(row, "path"),
                size_bytes=number(row, "size_bytes"),
                sha256=text(row, "sha256"),
                setting=Setting.parse(text(row, "setting")),
                candidate=True,
            ),
            utc_time(text(row, "since")),
        )
        for row in rows
    )
