"""Boots for a person, in 80 columns."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from initadvisor.cli.rendering.paragraphs import moment, print_item, print_paragraph
from initadvisor.cli.rendering.tables import Table, print_table
from initadvisor.cli.rendering.wording import explain_intervals, measured_interval
from initadvisor.core.estimates import Certainty
from initadvisor.core.text import shown
from initadvisor.records.boot import RecordSource

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Print, for each class of boots, a table of its settings to stdout."""
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


def explain_summaries(classes: Sequence[ClassSummary]) -> None:
    """Print what the tables' figures are."""
    settings = [summary for same in classes for summary in same.settings]
    if any(summary.group.certainty is Certainty.LIKELY for summary in settings):
        print_item("a setting with a question mark is likely, not certain; ? alone is not known")
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
    return (
        setting_words(group.setting, group.certainty),
        str(group.boots),
        *_middle(summary.unpack_ms, summary.samples),
        *_middle(summary.read_ms, summary.reads),
    )


def _middle(middle: Middle | None, count: int) -> tuple[str, str, str]:
    if middle is None:
        return "", "", ""
    return f"{middle.median:.1f}", measured_interval(middle), str(count)
