"""Lab runs in the data base; every function expects to be called within a transaction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from initadvisor.model.lab import (
    BootKind,
    Engine,
    LabRun,
    LabSample,
    LabSubject,
    LostBoot,
    RecordedRun,
    RunEnd,
)
from initadvisor.model.setting import Setting
from initadvisor.store.rows import as_bytes, insert, kernel_columns, kernel_of, utc_text, utc_time

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from datetime import datetime


def begin(connection: sqlite3.Connection, run: LabRun) -> int:
    """Record that a run begins; return its number."""
    number = insert(
        connection,
        "lab_run",
        {
            "started_at": utc_text(run.started_at),
            "engine": run.engine,
            "engine_version": run.engine_version,
            **kernel_columns(run.kernel),
            "cpu_model": run.cpu_model,
        },
    )
    for position, subject in enumerate(run.subjects):
        insert(
            connection,
            "lab_subject",
            {
                "run": number,
                "position": position,
                "setting": str(subject.setting),
                "path": subject.path,
                "sha256": subject.sha256,
                "size_bytes": subject.size_bytes,
                "today": int(subject.today),
            },
        )
    return number


def add_sample(connection: sqlite3.Connection, number: int, sample: LabSample) -> None:
    """Record a sample of run ``number``."""
    insert(
        connection,
        "lab_sample",
        {
            "run": number,
            "image_sha256": sample.image_sha256,
            "round": sample.round,
            "kind": sample.kind,
            "unpack_us": sample.unpack_us,
            "init_us": sample.init_us,
            "waiter": sample.waiter,
        },
    )


def add_lost(connection: sqlite3.Connection, number: int, lost: LostBoot) -> None:
    """Record a boot of run ``number`` that gave no sample."""
    insert(
        connection,
        "lab_lost",
        {
            "run": number,
            "image_sha256": lost.image_sha256,
            "round": lost.round,
            "reason": lost.reason,
        },
    )


def finish(
    connection: sqlite3.Connection, number: int, end: RunEnd, warnings: Iterable[str]
) -> None:
    """Record how run ``number`` ended, in place of what was recorded of its end before."""
    connection.execute("UPDATE lab_run SET ended = ? WHERE number = ?", (end, number))
    connection.execute("DELETE FROM lab_warning WHERE run = ?", (number,))
    for position, warning in enumerate(warnings):
        insert(connection, "lab_warning", {"run": number, "position": position, "warning": warning})


def recorded(
    connection: sqlite3.Connection, *, limit: int | None, since: datetime | None
) -> tuple[RecordedRun, ...]:
    """Return the runs that began at ``since`` or later, the newest first, at most ``limit``."""
    rows = connection.execute(
        "SELECT * FROM lab_run WHERE started_at >= ? ORDER BY number DESC LIMIT ?",
        (utc_text(since) if since else "", -1 if limit is None else limit),
    )
    return tuple(_recorded_run(connection, row) for row in rows.fetchall())


def unpack_us(
    connection: sqlite3.Connection,
    images: Iterable[str],
    *,
    engine: Engine,
    kernel_sha256: str,
    cpu_model: str,
) -> Mapping[str, tuple[tuple[int, ...], ...]]:
    """Return the times of these images, run by run; images without any are left out."""
    return {
        image: times
        for image in images
        if (times := _unpack_us_of(connection, image, engine, kernel_sha256, cpu_model))
    }


def _unpack_us_of(
    connection: sqlite3.Connection, image: str, engine: Engine, kernel_sha256: str, cpu_model: str
) -> tuple[tuple[int, ...], ...]:
    rows = connection.execute(
        """
        SELECT run, unpack_us FROM lab_sample JOIN lab_run ON lab_run.number = lab_sample.run
        WHERE image_sha256 = ? AND kind = ? AND engine = ? AND kernel_sha256 = ?
            AND cpu_model = CAST(? AS TEXT)
        ORDER BY run, lab_sample.number
        """,
        (image, BootKind.UNPACK, engine, kernel_sha256, as_bytes(cpu_model)),
    )
    runs: defaultdict[int, list[int]] = defaultdict(list)
    for run, time_us in rows:
        runs[run].append(time_us)
    return tuple(tuple(times) for times in runs.values())


def _recorded_run(connection: sqlite3.Connection, row: sqlite3.Row) -> RecordedRun:
    number = row["number"]
    run = LabRun(
        started_at=utc_time(row["started_at"]),
        engine=Engine(row["engine"]),
        engine_version=row["engine_version"],
        kernel=kernel_of(row),
        cpu_model=row["cpu_model"],
        subjects=_subjects(connection, number),
    )
    warnings = connection.execute(
        "SELECT warning FROM lab_warning WHERE run = ? ORDER BY position", (number,)
    )
    return RecordedRun(
        number=number,
        run=run,
        samples=_samples(connection, number),
        lost=_lost(connection, number),
        end=None if row["ended"] is None else RunEnd(row["ended"]),
        warnings=tuple(warning for [warning] in warnings),
    )


def _subjects(connection: sqlite3.Connection, number: int) -> tuple[LabSubject, ...]:
    rows = connection.execute(
        "SELECT * FROM lab_subject WHERE run = ? ORDER BY position", (number,)
    )
    return tuple(
        LabSubject(
            setting=Setting.parse(row["setting"]),
            path=row["path"],
            sha256=row["sha256"],
            size_bytes=row["size_bytes"],
            today=bool(row["today"]),
        )
        for row in rows
    )


def _samples(connection: sqlite3.Connection, number: int) -> tuple[LabSample, ...]:
    rows = connection.execute("SELECT * FROM lab_sample WHERE run = ? ORDER BY number", (number,))
    return tuple(
        LabSample(
            image_sha256=row["image_sha256"],
            round=row["round"],
            kind=BootKind(row["kind"]),
            unpack_us=row["unpack_us"],
            init_us=row["init_us"],
            waiter=row["waiter"],
        )
        for row in rows
    )


def _lost(connection: sqlite3.Connection, number: int) -> tuple[LostBoot, ...]:
    rows = connection.execute("SELECT * FROM lab_lost WHERE run = ? ORDER BY number", (number,))
    return tuple(
        LostBoot(image_sha256=row["image_sha256"], round=row["round"], reason=row["reason"])
        for row in rows
    )
