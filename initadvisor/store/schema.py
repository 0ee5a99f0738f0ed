"""The tables, as numbered migrations: the data base's ``user_version`` says how many it has had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import from_json
from initadvisor.records.boot_form import as_record
from initadvisor.store.connection import transaction

if TYPE_CHECKING:
    import sqlite3


APPLICATION_ID = 0x494E4144
"""What marks a data base as ours (PRAGMA application_id): "INAD"."""

_LAB = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """
    CREATE TABLE lab_run (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        started_at TEXT NOT NULL,
        engine TEXT NOT NULL,
        engine_version TEXT NOT NULL,
        kernel_path TEXT NOT NULL,
        kernel_sha256 TEXT NOT NULL,
        kernel_release TEXT NOT NULL,
        cpu_model TEXT NOT NULL,
        ended TEXT
    ) STRICT
    """,
    """
    CREATE TABLE lab_subject (
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        setting TEXT NOT NULL,
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        today INTEGER NOT NULL,
        PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE lab_sample (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        image_sha256 TEXT NOT NULL,
        round INTEGER NOT NULL,
        kind TEXT NOT NULL,
        unpack_us INTEGER NOT NULL,
        init_us INTEGER,
        waiter TEXT
    ) STRICT
    """,
    "CREATE INDEX lab_sample_of_run ON lab_sample (run)",
    "CREATE INDEX lab_sample_of_image ON lab_sample (image_sha256)",
    """
    CREATE TABLE lab_lost (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        image_sha256 TEXT NOT NULL,
        round INTEGER NOT NULL,
        reason TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX lab_lost_of_run ON lab_lost (run)",
    """
    CREATE TABLE lab_warning (
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        warning TEXT NOT NULL,
        PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE verification (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        engine TEXT NOT NULL,
        kernel_path TEXT NOT NULL,
        kernel_sha256 TEXT NOT NULL,
        kernel_release TEXT NOT NULL,
        image_sha256 TEXT NOT NULL,
        content_sha256 TEXT NOT NULL,
        unpacked TEXT NOT NULL,
        words TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX verification_of_image ON verification (image_sha256)",
    """
    CREATE TABLE engine_trial (
        engine TEXT NOT NULL,
        circumstances TEXT NOT NULL,
        works INTEGER NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (engine, circumstances)
    ) STRICT, WITHOUT ROWID
    """,
)

_BOOTS = (
    """
    CREATE TABLE boot_kind (
        number INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        way TEXT NOT NULL,
        kernel TEXT NOT NULL,
        class_key TEXT NOT NULL,
        kernel_counts INTEGER NOT NULL,
        loader_counts INTEGER NOT NULL,
        waiting TEXT NOT NULL,
        read_source TEXT NOT NULL,
        read_beside TEXT NOT NULL,
        certainty TEXT NOT NULL,
        image_sha256 TEXT NOT NULL,
        setting TEXT NOT NULL,
        UNIQUE (owner, class_key, setting, image_sha256, certainty, kernel, way, kernel_counts,
            loader_counts, waiting, read_source, read_beside)
    ) STRICT
    """,
    """
    CREATE TABLE boot (
        number INTEGER PRIMARY KEY,
        boot_id TEXT NOT NULL UNIQUE,
        source TEXT NOT NULL,
        kind INTEGER NOT NULL REFERENCES boot_kind (number),
        started_at TEXT NOT NULL,
        unpack_us INTEGER,
        begin_to_init_us INTEGER,
        shadow_us INTEGER,
        shadow_min_us INTEGER,
        shadow_max_us INTEGER,
        rest_us INTEGER,
        loaded_bytes INTEGER,
        read_us INTEGER,
        reboot_gap_us INTEGER
    ) STRICT
    """,
    "CREATE INDEX boot_by_time ON boot (started_at)",
    """
    CREATE TABLE boot_record (
        boot INTEGER PRIMARY KEY REFERENCES boot (number) ON DELETE CASCADE,
        record TEXT NOT NULL
    ) STRICT
    """,
)

_KIND_COLUMNS = (
    "owner, way, kernel, kernel_counts, loader_counts, waiting, read_source, read_beside, "
    "certainty, image_sha256, setting"
)
_BOOT_COLUMNS = (
    "boot_id, source, started_at, unpack_us, begin_to_init_us, shadow_us, shadow_min_us, "
    "shadow_max_us, rest_us, loaded_bytes, read_us, reboot_gap_us"
)

_DISKS = (
    """
    CREATE TABLE new_boot_kind (
        number INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        way TEXT NOT NULL,
        kernel TEXT NOT NULL,
        class_key TEXT NOT NULL,
        hardware_key TEXT NOT NULL,
        boot_disk TEXT NOT NULL,
        kernel_counts INTEGER NOT NULL,
        loader_counts INTEGER NOT NULL,
        waiting TEXT NOT NULL,
        read_source TEXT NOT NULL,
        read_beside TEXT NOT NULL,
        certainty TEXT NOT NULL,
        image_sha256 TEXT NOT NULL,
        setting TEXT NOT NULL,
        UNIQUE (owner, class_key, setting, image_sha256, certainty, kernel, way, kernel_counts,
            loader_counts, waiting, read_source, read_beside, hardware_key, boot_disk)
    ) STRICT
    """,
    """
    CREATE TABLE new_boot (
        number INTEGER PRIMARY KEY,
        boot_id TEXT NOT NULL UNIQUE,
        source TEXT NOT NULL,
        kind INTEGER NOT NULL REFERENCES new_boot_kind (number),
        started_at TEXT NOT NULL,
        unpack_us INTEGER,
        begin_to_init_us INTEGER,
        shadow_us INTEGER,
        shadow_min_us INTEGER,
        shadow_max_us INTEGER,
        rest_us INTEGER,
        loaded_bytes INTEGER,
        read_us INTEGER,
        reboot_gap_us INTEGER
    ) STRICT
    """,
    """
    CREATE TABLE new_boot_record (
        boot INTEGER PRIMARY KEY REFERENCES new_boot (number) ON DELETE CASCADE,
        record TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TEMPORARY TABLE keys AS
    SELECT boot, boot.kind AS kind,
        record_key('class', record, class_key) AS class_key,
        record_key('hardware', record, '') AS hardware_key,
        record_key('disk', record, '') AS boot_disk
    FROM boot_record JOIN boot ON boot.number = boot JOIN boot_kind ON boot_kind.number = boot.kind
    """,
    f"""
    INSERT INTO new_boot_kind (class_key, hardware_key, boot_disk, {_KIND_COLUMNS})
    SELECT DISTINCT keys.class_key, hardware_key, boot_disk, {_KIND_COLUMNS}
    FROM keys JOIN boot_kind ON boot_kind.number = keys.kind
    """,  # noqa: S608 - names of columns
    f"""
    INSERT INTO new_boot (number, kind, {_BOOT_COLUMNS})
    SELECT boot.number, new_boot_kind.number, {_BOOT_COLUMNS}
    FROM keys JOIN boot ON boot.number = keys.boot JOIN boot_kind AS old ON old.number = keys.kind
    JOIN new_boot_kind USING (class_key, hardware_key, boot_disk)
    WHERE ({", ".join(f"new_boot_kind.{c}" for c in _KIND_COLUMNS.split(", "))})
        = ({", ".join(f"old.{c}" for c in _KIND_COLUMNS.split(", "))})
    """,  # noqa: S608 - names of columns
    "INSERT INTO new_boot_record SELECT boot, record FROM boot_record",
    "DROP TABLE keys",
    "DROP TABLE boot_record",
    "DROP TABLE boot",
    "DROP TABLE boot_kind",
    "ALTER TABLE new_boot_kind RENAME TO boot_kind",
    "ALTER TABLE new_boot RENAME TO boot",
    "ALTER TABLE new_boot_record RENAME TO boot_record",
    "CREATE INDEX boot_by_time ON boot (started_at)",
)
"""Which board and disk a boot was of, by the records; what they are a class of is computed anew."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (_LAB, _BOOTS, _DISKS)
"""What each version adds to the one before. One that was released is never changed."""


class NotOursError(InitadvisorError):
    """A data base of something else: it is left as it is."""


class NewerError(InitadvisorError):
    """A data base that a newer initadvisor wrote: nothing in it can be relied on."""


def version_of(connection: sqlite3.Connection, name: str) -> int:
    """Return how many migrations a data base has had; 0 for a new one.

    Raises ``NotOursError`` or ``NewerError`` for one that this program must not touch; ``name``
    says which.
    """
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version < 0 or (application != APPLICATION_ID and (application or version or tables)):
        msg = f"cannot use {name}: it is a data base of another program"
        raise NotOursError(msg, hint="move it away, or set another STATE_DIRECTORY")
    if version > len(MIGRATIONS):
        msg = (
            f"cannot use {name}: a newer initadvisor wrote it "
            f"(version {version}, this one knows {len(MIGRATIONS)})"
        )
        raise NewerError(msg, hint="update initadvisor")
    return int(version)


def is_current(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether a data base has had every migration; raises as ``version_of`` does."""
    return version_of(connection, name) == len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring a data base to the newest version, each step and its record in one transaction."""
    connection.create_function("record_key", 3, _record_key)
    while not is_current(connection, name):
        with transaction(connection):
            # Another process may have been here while this one waited for the lock.
            version = version_of(connection, name)
            if version == len(MIGRATIONS):
                break
            for statement in MIGRATIONS[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")


def _record_key(which: str, record: str, otherwise: str) -> str:
    """Return what a record is told apart by; ``otherwise`` for one that cannot be read back."""
    try:
        found = as_record(from_json(record))
    except (InitadvisorError, ValueError):
        return otherwise
    match which:
        case "class":
            return found.class_key
        case "hardware":
            return found.hardware_key
        case _:
            return found.boot_class.hardware.boot_disk or ""
