"""``initadvisor measure``: record what this machine's boots spent, and on which image.

The options, the call, and the answer as JSON (an interface) and as text.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import click

from initadvisor.cli.boots import milliseconds, print_boots, setting_words, write_json
from initadvisor.cli.options import FileName
from initadvisor.cli.rendering.output import SCHEMA
from initadvisor.cli.rendering.text import boots, moment, print_item
from initadvisor.core.text import shown
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import ReadInterval

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.measure.measure import Measured
    from initadvisor.records.boot import BootRecord


_PATH = FileName()


@click.command()
@click.option("--backfill", is_flag=True, help="Record earlier boots, too, from the journal.")
@click.option("--dry-run", is_flag=True, help="Show what would be recorded, and record nothing.")
@click.option("--directory", type=_PATH, help="Record the boots in other machines' journals.")
@click.option(
    "--file",
    "files",
    type=_PATH,
    multiple=True,
    help="The same with a journal's file, or a kernel's log as text; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
def measure(
    *,
    backfill: bool,
    dry_run: bool,
    directory: Path | None,
    files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Record what this boot spent in firmware, loader and kernel, and which image it used.

    It is best run once, soon after each boot, by initadvisor-measure.timer. A boot is recorded only
    once, however often this is run.
    """
    if sum([backfill, directory is not None, bool(files)]) > 1:
        msg = "--backfill, --directory and --file exclude each other"
        raise click.UsageError(msg)
    if not (backfill or directory or files):
        gc.disable()  # one boot makes little garbage, and looking for it takes time

    from initadvisor.boots.journal_files import JournalSource
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host
    from initadvisor.measure.measure import measure as measure_boots
    from initadvisor.measure.measure import measure_journal

    host = Host()
    with Progress() as progress:
        progress.doing("reading what this boot left behind")
        if directory is not None or files:
            source = JournalSource(directory=directory, files=files)
            measured = measure_journal(host, source, observer=progress, dry_run=dry_run)
        else:
            measured = measure_boots(host, observer=progress, backfill=backfill, dry_run=dry_run)
    if as_json:
        head = {
            "schema": SCHEMA,
            "store": str(measured.path),
            "recorded": not dry_run,
            "new": [r.boot_id for r in measured.records if r.boot_id in measured.new],
            "known": measured.known,
            "warnings": list(measured.warnings),
        }
        write_json(head, measured.records, sys.stdout)
    else:
        print_measured(measured, dry_run=dry_run)


def print_measured(measured: Measured, *, dry_run: bool) -> None:
    """Print what was measured to stdout: one boot in words, several as a table."""
    if len(measured.records) == 1:
        [record] = measured.records
        click.echo(f"Boot of {moment(record.started_at)}:")
        for line in _described(record):
            print_item(line)
    elif measured.records:
        print_boots(measured.records)
    for warning in measured.warnings:
        print_item(warning)
    there = len(measured.records) - len(measured.new) + measured.known
    verb = "would be recorded" if dry_run else "recorded"
    click.echo(
        f"{boots(len(measured.new))} {verb}, {boots(there)} had been before, "
        f"in {shown(str(measured.path))}"
    )


def _described(record: BootRecord) -> Iterator[str]:
    """Yield what is known of a boot, a line for each."""
    yield f"started by {record.start.method.description} ({record.start.certainty})"
    if record.phases:
        phases = (f"{p.phase} {milliseconds(p.duration_us)} ms" for p in record.phases)
        yield ", ".join(phases)
    if isinstance(record.read, ReadInterval):
        beside = "; ".join(record.read.beside)
        took = milliseconds(record.read.duration_us)
        yield f"the image was read within {took} ms ({record.read.source}), beside: {beside}"
    else:
        yield f"the time to read the image is not known: {record.read.reason}"
    if record.reboot_gap.duration_us is not None:
        skipped = record.reboot_gap.duration_us / 1e6
        yield f"{skipped:.1f} s from the last sign of the boot before to this kernel's start"
    if record.unpack_us is not None:
        yield f"the kernel unpacked the image in {milliseconds(record.unpack_us)} ms"
    if record.begin_to_init_us is not None:
        yield f"/init ran {milliseconds(record.begin_to_init_us)} ms after that began"
    if words := _waited(record):
        yield words
    image = record.attribution.image
    setting = setting_words(image.setting if image else None, record.attribution.certainty)
    certainty = record.attribution.certainty
    yield f"image: {record.attribution.reason} ({certainty}); setting: {setting}"
    for reason in record.rejections:
        part = "its loader's times are no sample" if reason.only_loader else "no sample"
        yield f"{part}: {reason.explanation}"
    yield from record.notes


def _waited(record: BootRecord) -> str:
    shadow = record.shadow
    match shadow.waiting:
        case Waiting.WAITED:
            first = milliseconds(shadow.shadow_us)
            return f"the kernel waited for it, after {first} ms of other work ({shadow.waiter})"
        case Waiting.HIDDEN:
            return "the kernel had other work all the while: unpacking cost this boot nothing"
        case Waiting.SYNCHRONOUS:
            return "the kernel did nothing beside it"
        case Waiting.UNKNOWN:
            return ""
