"""Boots for a person, and as JSON and CSV, whose fields are part of the interface.

What can be imported elsewhere is made to be given away, so a machine's ID stands nowhere in it,
whatever file or entry is named after it.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from typing import IO, TYPE_CHECKING, Any

import click

from initadvisor.boots.machine_name import without_id
from initadvisor.cli.rendering.text import (
    Table,
    explain_intervals,
    measured_interval,
    moment,
    print_item,
    print_paragraph,
    print_table,
)
from initadvisor.core.estimates import Certainty
from initadvisor.core.text import shown
from initadvisor.records.boot import RecordSource, as_exported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from initadvisor.boots.summary import ClassSummary, SettingSummary
    from initadvisor.core.settings import Setting
    from initadvisor.decide.repeats import Middle
    from initadvisor.records.boot import BootRecord


def print_boots(records: Sequence[BootRecord]) -> None:
    """Print a table of boots to stdout, and why some are no samples."""
    click.echo("Boots:\n")
    print_table(
        Table(
            titles=("started", "setting", "MB", "read ms", "unpack ms", "/init ms", "no sample"),
            rows=tuple(_row(record) for record in records),
            text=1,
        )
    )
    reasons = Counter(reason for record in records for reason in record.rejections)
    for reason in reasons:
        print_item(f"{reason}: {reason.explanation}")
    if any(record.source is RecordSource.IMPORT for record in records):
        print_item("boots of other machines are marked with *")
    click.echo()


def print_summaries(classes: Sequence[ClassSummary]) -> None:
    """Print, for each class of boots, a table of its settings to stdout, and what figures are."""
    for same in classes:
        whose = "This machine" if same.machine is None else f"Machine {same.machine[:8]}"
        kernel = shown(f"Linux {same.kernel}" if same.kernel else "an unknown kernel")
        print_paragraph(f"{whose}, {kernel}, class {shown(same.class_key[:8])}:")
        click.echo()
        print_table(
            Table(
                titles=("setting", "boots", "unpack ms", "95 %", "n", "read ms", "95 %", "n"),
                rows=tuple(_summary_row(summary) for summary in same.settings),
                text=0,
            )
        )

    settings = [summary for same in classes for summary in same.settings]
    if any(summary.group.certainty is Certainty.LIKELY for summary in settings):
        print_item("a setting with a question mark is likely, not certain; ? alone is not known")
    if any(s.group.image_sha256 is None and s.group.boots > 1 for s in settings):
        print_item("boots whose images are not known to be the same are counted, not compared")
    sources = {s.group.read_source for s in settings if s.group.read_source is not None}
    for source in sorted(sources):
        print_item(f"read: {source}, in which there is more than the reading of the image")
    explain_intervals([m for s in settings for m in (s.unpack_ms, s.read_ms) if m is not None])
    if len(classes) > 1:
        print_item("boots of different classes are not to be compared")


def setting_words(setting: Setting | None, certainty: Certainty) -> str:
    """Return the setting of an image, as far as it is known."""
    if setting is None or certainty not in {Certainty.CERTAIN, Certainty.LIKELY}:
        return "?"
    return shown(str(setting)) + ("" if certainty is Certainty.CERTAIN else " ?")


def milliseconds(duration_us: int | None) -> str:
    """Return a time in ms, nothing for one that is not known."""
    return "" if duration_us is None else f"{duration_us / 1000:.1f}"


def _row(record: BootRecord) -> tuple[str, ...]:
    image = record.attribution.image
    size = record.loaded_bytes
    imported = "*" if record.source is RecordSource.IMPORT else ""
    return (
        imported + moment(record.started_at),
        setting_words(image.setting if image else None, record.attribution.certainty),
        "" if size is None else f"{size / 1e6:.1f}",
        milliseconds(record.read_us),
        milliseconds(record.unpack_us),
        milliseconds(record.begin_to_init_us),
        record.rejections[0] if record.rejections else "",
    )


def _summary_row(summary: SettingSummary) -> tuple[str, ...]:
    group = summary.group
    name = shown(f" {group.initrd}") if group.image_sha256 is None and group.initrd else ""
    return (
        setting_words(group.setting, group.certainty) + name,
        str(group.boots),
        *_middle(summary.unpack_ms, summary.samples),
        *_middle(summary.read_ms, summary.reads),
    )


def _middle(middle: Middle | None, count: int) -> tuple[str, str, str]:
    if middle is None:
        return "", "", ""
    return f"{middle.median:.1f}", measured_interval(middle), str(count)


RECORD = "record"
"""The column of the CSV that has everything, as JSON."""


def figures(record: BootRecord) -> dict[str, str | int | bool | None]:
    """Return what is computed with, None for what is not known."""
    return {
        "unpack_us": record.unpack_us,
        "begin_to_init_us": record.begin_to_init_us,
        "slack_us": record.shadow.slack_us,
        "waiting": record.shadow.waiting,
        "overlap_us": record.shadow.shadow_us,
        "overlap_min_us": record.shadow.shadow_min_us,
        "overlap_max_us": record.shadow.shadow_max_us,
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
        document = {**as_exported(record), "figures": figures(record)}
        file.write(without_id(_json(document), record.machine))
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
            RECORD: _json(as_exported(record)),
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
