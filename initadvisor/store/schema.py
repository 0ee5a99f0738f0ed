"""The tables of the data base, and what tells whether a data base has them.

A data base of another layout is never changed: what it holds can be measured again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.store.connection import MOVED_ASIDE, damaged, transaction

if TYPE_CHECKING:
    import sqlite3


APPLICATION_ID = 0x494E4144
"""What marks a data base as ours (PRAGMA application_id): "INAD"."""

LAYOUT = 5
"""Which tables it has (PRAGMA user_version): whoever changes one counts on. 1 to 4 were others."""

# ``seal``: a checksum of the row, see ``seals``. Runs and verifications are never given a number
# twice (AUTOINCREMENT). What is read as a whole by
# its key needs no row number of its own (WITHOUT ROWID).
_TABLES = (
    # What a run of the lab was of. ``ended`` is NULL for as long as it goes on, and forever if it
    # was killed.
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
        ended TEXT,
        seal INTEGER NOT NULL
    ) STRICT
    """,
    # The images that are timed in turn; ``today``: whether the machine boots this one.
    """
    CREATE TABLE lab_subject (
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        setting TEXT NOT NULL,
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        today INTEGER NOT NULL,
        seal INTEGER NOT NULL,
        PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID
    """,
    # A boot in a VM. It counts for the content of its image: other runs, and other paths, too.
    """
    CREATE TABLE lab_sample (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        image_sha256 TEXT NOT NULL,
        round INTEGER NOT NULL,
        kind TEXT NOT NULL,
        unpack_us INTEGER NOT NULL,
        init_us INTEGER,
        waiter TEXT,
        seal INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX lab_sample_of_run ON lab_sample (run)",
    "CREATE INDEX lab_sample_of_image ON lab_sample (image_sha256)",
    # A boot in a VM that gave no time.
    """
    CREATE TABLE lab_lost (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        image_sha256 TEXT NOT NULL,
        round INTEGER NOT NULL,
        reason TEXT NOT NULL,
        seal INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX lab_lost_of_run ON lab_lost (run)",
    """
    CREATE TABLE lab_warning (
        run INTEGER NOT NULL REFERENCES lab_run (number) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        warning TEXT NOT NULL,
        seal INTEGER NOT NULL,
        PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID
    """,
    # What a kernel made of an image; ``words``: what it said of one that it did not unpack.
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
        words TEXT NOT NULL,
        seal INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX verification_of_image ON verification (image_sha256)",
    # Whether an engine works here; it is tried again where the circumstances differ.
    """
    CREATE TABLE engine_trial (
        engine TEXT NOT NULL,
        circumstances TEXT NOT NULL,
        works INTEGER NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL,
        seal INTEGER NOT NULL,
        PRIMARY KEY (engine, circumstances)
    ) STRICT, WITHOUT ROWID
    """,
    # What boots have in common, once for all that have it: a row of ``boot`` is then little more
    # than numbers. Text is "" where there is none: to UNIQUE no NULL is like another.
    """
    CREATE TABLE boot_kind (
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
        initrd TEXT NOT NULL,
        seal INTEGER NOT NULL,
        UNIQUE (owner, class_key, setting, image_sha256, certainty, kernel, way, kernel_counts,
            loader_counts, waiting, read_source, read_beside, hardware_key, boot_disk, initrd)
    ) STRICT
    """,
    # What of a boot is searched, counted or computed with. Boots are sorted by time when they are
    # read: a damaged index on that would hide some.
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
        reboot_gap_us INTEGER,
        seal INTEGER NOT NULL
    ) STRICT
    """,
    # All of a boot, as JSON; apart, so that who only computes does not have to read it.
    """
    CREATE TABLE boot_record (
        boot INTEGER PRIMARY KEY REFERENCES boot (number) ON DELETE CASCADE,
        record TEXT NOT NULL,
        seal INTEGER NOT NULL
    ) STRICT
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {LAYOUT}",
)

_MADE = frozenset(made for made in map(str.strip, _TABLES) if made.startswith("CREATE"))


class NotOursError(InitadvisorError):
    """A data base of something else: it is left as it is."""


class OtherLayoutError(InitadvisorError):
    """A data base that an older or newer initadvisor wrote: nothing in it can be relied on."""


def has_tables(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether the data base has its tables: an empty one has none yet.

    Raises ``NotOursError`` or ``OtherLayoutError`` for one that this program must not touch, and
    ``DamagedError`` where a table is not as it was made; ``name`` says which.
    """
    # In one statement: another process may make the tables between two.
    [layout, application, tables] = connection.execute(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) "
        "FROM pragma_user_version, pragma_application_id"
    ).fetchone()
    if not (layout or application or tables):
        return False
    if layout < 0 or application != APPLICATION_ID:
        msg = f"cannot use {name}: it is a data base of another program"
        raise NotOursError(msg, hint="move it away, or set another STATE_DIRECTORY")
    if layout != LAYOUT:
        is_older = layout < LAYOUT
        who = f"{'an older' if is_older else 'a newer'} initadvisor wrote it"
        msg = f"cannot use {name}: {who} (layout {layout}, this one uses {LAYOUT})"
        raise OtherLayoutError(msg, hint=MOVED_ASIDE if is_older else "update initadvisor")
    made = {str(row["sql"]).strip() for row in connection.execute("SELECT sql FROM sqlite_schema")}
    if changed := sorted(_MADE - made):
        why = f"not as it was made: {' '.join(changed[0].split()[1:3])}"
        raise damaged(name, why, remedy=MOVED_ASIDE)
    return True


def make_tables(connection: sqlite3.Connection, name: str) -> None:
    """Make the tables in a data base that is empty; raises as ``has_tables`` does."""
    if has_tables(connection, name):
        return
    with transaction(connection):
        # Another process may have been here while this one waited for the lock.
        if not has_tables(connection, name):
            for statement in _TABLES:
                connection.execute(statement)
