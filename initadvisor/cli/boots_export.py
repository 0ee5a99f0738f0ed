"""Boots as JSON and CSV; the fields are part of the interface and can be imported.

They are made to be given away, so a machine's ID stands nowhere in them, whatever file or entry is
named after it.
"""

from __future__ import annotations

import csv
import json
from typing import IO, TYPE_CHECKING, Any

from initadvisor.boots.machine_name import without_id
from initadvisor.core.text import shown
from initadvisor.records.boot_form import as_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from initadvisor.records.boot import BootRecord


RECORD = "record"
"""The column of the CSV that has everything, as JSON."""


def boot_document(record: BootRecord) -> dict[str, Any]:
    """Return a record as plain values, with the figures that follow from it."""
    return {**as_plain(record), "figures": figures(record)}


def figures(record: BootRecord) -> dict[str, str | int | bool | None]:
    """Return what is computed with, None for what is not known."""
    return {
        "unpack_us": record.unpack_us,
        "begin_to_init_us": record.begin_to_init_us,
        "slack_us": record.shadow.slack_us,
        "waiting": record.shadow.waiting,
        "shadow_us": record.shadow.shadow_us,
        "shadow_min_us": record.shadow.shadow_min_us,
        "shadow_max_us": record.shadow.shadow_max_us,
        "rest_us": record.shadow.rest_us,
        "read_us": record.read_us,
        "reboot_gap_us": record.reboot_gap.duration_us,
        "loaded_bytes": record.loaded_bytes,
        "certainty": record.attribution.certainty,
        "setting": None if record.setting is None else str(record.setting),
        "class_key": record.class_key,
        "kernel_counts": record.kernel_counts,
        "loader_counts": record.loader_counts,
    }


def write_json(head: dict[str, Any], records: Iterable[BootRecord], file: IO[str]) -> None:
    """Write a document whose last field, ``boots``, has a line for each: there may be many."""
    file.write(_json(head, indent=2).removesuffix("\n}"))
    file.write(',\n  "boots": [')
    for number, record in enumerate(records):
        file.write(",\n    " if number else "\n    ")
        file.write(without_id(_json(boot_document(record)), record.machine))
    file.write("\n  ]\n}\n")


def write_csv(records: Iterable[BootRecord], file: IO[str]) -> None:
    """Write a table with a row for each boot: what it is, its figures, and all of it as JSON."""
    writer: csv.DictWriter[str] | None = None
    for record in records:
        row: dict[str, object] = {
            "boot_id": record.boot_id,
            "machine": record.machine,
            "source": record.source,
            "started_at": record.started_at.isoformat(timespec="microseconds"),
            "kernel": record.boot_class.kernel,
            "method": record.start.method,
            **figures(record),
            "rejections": " ".join(record.rejections),
            RECORD: _json(as_plain(record)),
        }
        if writer is None:
            writer = csv.DictWriter(file, fieldnames=list(row))
            writer.writeheader()
        writer.writerow(
            {
                name: without_id(shown(value), record.machine) if isinstance(value, str) else value
                for name, value in row.items()
            }
        )


def _json(value: object, *, indent: int | None = None) -> str:
    """Return JSON that cannot command a terminal: it may leave DEL alone as it is (RFC 8259)."""
    return json.dumps(value, indent=indent, allow_nan=False).replace("\x7f", "\\u007f")
