"""Boots in the data base; every function expects to be called within a transaction.

The columns of ``boot`` repeat what of a record is searched, counted or computed with;
``boot_record`` has all of it as JSON, in a table of its own so that nobody else has to read it.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Certainty
from initadvisor.core.plain_values import from_json
from initadvisor.records.boot import BootModules, RecordSource, as_record, as_text
from initadvisor.records.read_interval import ReadInterval
from initadvisor.store.rows import OWN, bound, holder, insert, number, since_text, text, utc_text
from initadvisor.store.seals import seal_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from initadvisor.records.boot import BootRecord
    from initadvisor.store.rows import Value


_UNKNOWN_MACHINE = "?"
_TELLING = {Certainty.CERTAIN, Certainty.LIKELY}


def add(connection: sqlite3.Connection, record: BootRecord) -> bool:
    """Record a boot once; tell whether anything changed.

    A record of the same boot that is there stays, unless this one's source ranks higher. Raises
    ``UnfitRecordError`` for one that is not to be kept; nothing has changed then.
    """
    if not is_new(connection, record):
        return False
    kept = as_text(record)
    row = _insert_boot(connection, record)
    insert(connection, "boot_record", {"boot": row, "record": kept}, replace=True)
    return True


def is_new(connection: sqlite3.Connection, record: BootRecord) -> bool:
    """Tell whether there is no record of the boot yet, or one whose source ranks lower."""
    there = connection.execute(
        "SELECT source FROM boot WHERE boot_id = ?", (record.boot_id,)
    ).fetchone()
    return there is None or RecordSource(text(there, "source")).rank < record.source.rank


def recorded(
    connection: sqlite3.Connection,
    *,
    since: datetime | None,
    limit: int | None,
    source: RecordSource | None,
) -> Iterator[BootRecord]:
    """Yield the boots that started at ``since`` or later, the latest first, at most ``limit``."""
    found = connection.execute(
        "SELECT number FROM boot WHERE started_at >= ?1 AND (?2 IS NULL OR source = ?2) "
        "ORDER BY started_at DESC, number DESC",
        (since_text(since), source),
    ).fetchall()
    records = (
        row
        for boot in found
        for row in connection.execute(
            "SELECT record FROM boot_record WHERE boot = ?", (number(boot, "number"),)
        )
    )
    for row in islice(records, limit):
        yield as_record(from_json(text(row, "record")))


def boot(connection: sqlite3.Connection, boot_id: str) -> BootRecord | None:
    """Return the record of one boot, None where there is none."""
    row = connection.execute(
        "SELECT record FROM boot JOIN boot_record ON boot_record.boot = boot.number "
        "WHERE boot_id = ?",
        (boot_id,),
    ).fetchone()
    return None if row is None else as_record(from_json(text(row, "record")))


def of_images(connection: sqlite3.Connection, images: Collection[str]) -> Iterator[BootRecord]:
    """Yield this machine's boots that certainly used one of these images, by their SHA-256.

    The latest come first.
    """
    rows = connection.execute(
        "SELECT record FROM boot JOIN boot_record ON boot_record.boot = boot.number "
        "JOIN boot_kind ON boot_kind.number = boot.kind "
        "WHERE owner = ? AND certainty = ? AND image_sha256 IN (SELECT value FROM json_each(?)) "
        "ORDER BY started_at DESC, boot.number DESC",
        (OWN, Certainty.CERTAIN, json.dumps([*images])),
    )
    for row in rows:
        yield as_record(from_json(text(row, "record")))


def modules(connection: sqlite3.Connection, *, limit: int) -> Iterator[BootModules]:
    """Yield what the latest boots that were measured while they ran tell of modules, if they do."""
    rows = connection.execute(
        "SELECT record FROM boot JOIN boot_record ON boot_record.boot = boot.number "
        "WHERE source = ? ORDER BY started_at DESC, number DESC LIMIT ?",
        (RecordSource.UNIT, limit),
    )
    for row in rows:
        found = BootModules.of_record(from_json(text(row, "record")))
        if found.modules is not None:
            yield found


def known(connection: sqlite3.Connection) -> Mapping[str, RecordSource]:
    """Return the identifiers of all boots that are recorded, and where each record is from."""
    rows = connection.execute("SELECT boot_id, source FROM boot")
    return {text(row, "boot_id"): RecordSource(text(row, "source")) for row in rows}


def write_anew(connection: sqlite3.Connection) -> None:
    """Make all that is repeated of records anew, from those that are whole; delete the others.

    To be called without ``PRAGMA foreign_keys``, as ``seals.rewrite_whole_rows``.
    """
    rows = connection.execute("SELECT record FROM boot_record ORDER BY boot").fetchall()
    for table in ("boot_record", "boot", "boot_kind"):
        connection.execute(f"DELETE FROM main.{table}")  # noqa: S608
    for row in rows:
        add(connection, as_record(from_json(text(row, "record"))))


def _insert_boot(connection: sqlite3.Connection, record: BootRecord) -> int:
    """Insert a boot's columns, or put them in place of those that are there."""
    columns: dict[str, Value] = {
        "boot_id": record.boot_id,
        "source": record.source,
        "kind": _insert_kind(connection, record),
        "started_at": utc_text(record.started_at),
        "unpack_us": record.unpack_us,
        "begin_to_init_us": record.begin_to_init_us,
        "shadow_us": record.shadow.shadow_us,
        "shadow_min_us": record.shadow.shadow_min_us,
        "shadow_max_us": record.shadow.shadow_max_us,
        "rest_us": record.shadow.rest_us,
        "loaded_bytes": record.loaded_bytes,
        "read_us": record.read_us,
        "reboot_gap_us": record.reboot_gap.duration_us,
    }
    return insert(connection, "boot", columns, replace=True)


def _insert_kind(connection: sqlite3.Connection, record: BootRecord) -> int:
    """Return the number of the record's kind, a new one where there is none like it.

    Text is "" where there is none: SQL takes no NULL to be like another.
    """
    read, certainty = record.read, record.attribution.certainty
    told = record.attribution.image if certainty in _TELLING else None
    imported = record.source is RecordSource.IMPORT
    columns: dict[str, Value] = {
        "owner": (record.machine or _UNKNOWN_MACHINE) if imported else OWN,
        "way": record.start.method,
        "kernel": record.boot_class.kernel or "",
        "class_key": record.class_key,
        "hardware_key": record.hardware_key,
        "boot_disk": record.boot_class.hardware.boot_disk or "",
        "kernel_counts": int(record.kernel_counts),
        "loader_counts": int(record.loader_counts),
        "waiting": record.shadow.waiting,
        "read_source": read.source if isinstance(read, ReadInterval) else "",
        "read_beside": json.dumps(read.beside if isinstance(read, ReadInterval) else ()),
        "certainty": certainty,
        "image_sha256": told.sha256 if told else "",
        "setting": str(told.setting) if told and told.setting else "",
        "initrd": record.evidence.initrd or "",
    }
    conditions = " AND ".join(f"{name} = {holder(value)}" for name, value in columns.items())
    there = _kind_like(connection, conditions, columns)
    if there is None:
        _reseal_kind(connection, conditions, columns)
        there = _kind_like(connection, conditions, columns)
    return number(there, "number") if there else insert(connection, "boot_kind", columns)


def _kind_like(
    connection: sqlite3.Connection, conditions: str, columns: Mapping[str, Value]
) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        f"SELECT number FROM boot_kind WHERE {conditions}",  # noqa: S608
        [bound(value) for value in columns.values()],
    ).fetchone()
    return row


def _reseal_kind(
    connection: sqlite3.Connection, conditions: str, columns: Mapping[str, Value]
) -> None:
    """Seal a kind again of which only the seal is damaged: there cannot be another like it."""
    connection.execute(
        f"UPDATE main.boot_kind SET seal = ? WHERE {conditions}",  # noqa: S608
        [seal_of("boot_kind", columns), *(bound(value) for value in columns.values())],
    )
