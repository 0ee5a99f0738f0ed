"""What the lab found, in the data base: runs, their kernels, verifications, trials of engines.

Every function expects to be called within a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from initadvisor.core.settings import Setting
from initadvisor.records.lab import (
    BootKind,
    Engine,
    EngineTrial,
    LabKernel,
    LabRun,
    LabSample,
    LabSubject,
    LostBoot,
    RecordedRun,
    RunEnd,
    Unpacked,
    Verification,
)
from initadvisor.store.rows import as_bytes, insert, number, text, utc_text, utc_time
from initadvisor.store.seals import seal_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from initadvisor.store.rows import Value


def begin(connection: sqlite3.Connection, run: LabRun) -> int:
    """Record that a run begins; return its number."""
    own = insert(
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
                "run": own,
                "position": position,
                "setting": str(subject.setting),
                "path": subject.path,
                "sha256": subject.sha256,
                "size_bytes": subject.size_bytes,
                "today": int(subject.today),
            },
        )
    return own


def add_sample(connection: sqlite3.Connection, run: int, sample: LabSample) -> None:
    """Record a sample of ``run``."""
    insert(
        connection,
        "lab_sample",
        {
            "run": run,
            "image_sha256": sample.image_sha256,
            "round": sample.round,
            "kind": sample.kind,
            "unpack_us": sample.unpack_us,
            "init_us": sample.init_us,
            "waiter": sample.waiter,
        },
    )


def add_lost(connection: sqlite3.Connection, run: int, lost: LostBoot) -> None:
    """Record a boot of ``run`` that gave no sample."""
    insert(
        connection,
        "lab_lost",
        {
            "run": run,
            "image_sha256": lost.image_sha256,
            "round": lost.round,
            "reason": lost.reason,
        },
    )


def finish(connection: sqlite3.Connection, run: int, end: RunEnd, warnings: Iterable[str]) -> None:
    """Record how ``run`` ended, in place of what was recorded of its end before."""
    there = connection.execute("SELECT * FROM lab_run WHERE number = ?", (run,)).fetchone()
    if there is not None:
        seal = seal_of("lab_run", {**dict(there), "ended": end})
        connection.execute(
            "UPDATE main.lab_run SET ended = ?, seal = ? WHERE number = ?", (end, seal, run)
        )
    connection.execute("DELETE FROM main.lab_warning WHERE run = ?", (run,))
    for position, warning in enumerate(warnings):
        insert(connection, "lab_warning", {"run": run, "position": position, "warning": warning})


def runs(
    connection: sqlite3.Connection,
    *,
    engine: Engine | None,
    limit: int | None,
    since: datetime | None,
) -> tuple[RecordedRun, ...]:
    """Return the runs that began at ``since`` or later, the newest first, at most ``limit``."""
    rows = connection.execute(
        "SELECT * FROM lab_run WHERE (?1 IS NULL OR engine = ?1) AND started_at >= ?2 "
        "ORDER BY number DESC LIMIT ?3",
        (engine, utc_text(since) if since else "", -1 if limit is None else limit),
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
    for row in rows:
        runs[number(row, "run")].append(number(row, "unpack_us"))
    return tuple(tuple(times) for times in runs.values())


def _recorded_run(connection: sqlite3.Connection, row: sqlite3.Row) -> RecordedRun:
    own = number(row, "number")
    run = LabRun(
        started_at=utc_time(text(row, "started_at")),
        engine=Engine(text(row, "engine")),
        engine_version=text(row, "engine_version"),
        kernel=kernel_of(row),
        cpu_model=text(row, "cpu_model"),
        subjects=_subjects(connection, own),
    )
    warnings = connection.execute(
        "SELECT * FROM lab_warning WHERE run = ? ORDER BY position", (own,)
    )
    return RecordedRun(
        number=own,
        run=run,
        samples=_samples(connection, own),
        lost=_lost(connection, own),
        end=None if row["ended"] is None else RunEnd(text(row, "ended")),
        warnings=tuple(text(warning, "warning") for warning in warnings),
    )


def _subjects(connection: sqlite3.Connection, run: int) -> tuple[LabSubject, ...]:
    rows = connection.execute("SELECT * FROM lab_subject WHERE run = ? ORDER BY position", (run,))
    return tuple(
        LabSubject(
            setting=Setting.parse(text(row, "setting")),
            path=text(row, "path"),
            sha256=text(row, "sha256"),
            size_bytes=number(row, "size_bytes"),
            today=bool(number(row, "today")),
        )
        for row in rows
    )


def _samples(connection: sqlite3.Connection, run: int) -> tuple[LabSample, ...]:
    rows = connection.execute("SELECT * FROM lab_sample WHERE run = ? ORDER BY number", (run,))
    return tuple(
        LabSample(
            image_sha256=text(row, "image_sha256"),
            round=number(row, "round"),
            kind=BootKind(text(row, "kind")),
            unpack_us=number(row, "unpack_us"),
            init_us=None if row["init_us"] is None else number(row, "init_us"),
            waiter=None if row["waiter"] is None else text(row, "waiter"),
        )
        for row in rows
    )


def _lost(connection: sqlite3.Connection, run: int) -> tuple[LostBoot, ...]:
    rows = connection.execute("SELECT * FROM lab_lost WHERE run = ? ORDER BY number", (run,))
    return tuple(
        LostBoot(
            image_sha256=text(row, "image_sha256"),
            round=number(row, "round"),
            reason=text(row, "reason"),
        )
        for row in rows
    )


def kernel_columns(kernel: LabKernel) -> dict[str, Value]:
    """Return a kernel as the columns that every table with one has."""
    return {
        "kernel_path": kernel.path,
        "kernel_sha256": kernel.sha256,
        "kernel_release": kernel.release,
    }


def kernel_of(row: sqlite3.Row) -> LabKernel:
    """Return the kernel of a row."""
    return LabKernel(
        path=text(row, "kernel_path"),
        sha256=text(row, "kernel_sha256"),
        release=text(row, "kernel_release"),
    )


def add_verification(connection: sqlite3.Connection, verification: Verification) -> None:
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


def verifications(
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
