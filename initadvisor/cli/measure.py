"""``initadvisor measure``: record what this machine's boots spent, and on which image."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import click

from initadvisor.cli.file_name import FileName

if TYPE_CHECKING:
    from pathlib import Path

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
    help="The same with a journal's file; may be repeated.",
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

    from initadvisor.cli.progress import Progress
    from initadvisor.host import Host
    from initadvisor.measure.journal_files import JournalSource
    from initadvisor.workflow.measure import measure as measure_boots
    from initadvisor.workflow.measure import measure_journal

    host = Host()
    with Progress() as progress:
        progress.doing("reading what this boot left behind")
        if directory is not None or files:
            source = JournalSource(directory=directory, files=files)
            measured = measure_journal(host, source, observer=progress, dry_run=dry_run)
        else:
            measured = measure_boots(host, observer=progress, backfill=backfill, dry_run=dry_run)
    if as_json:
        from initadvisor.cli.boots_export import write_json
        from initadvisor.cli.measure_json import head_document

        write_json(head_document(measured, dry_run=dry_run), measured.records, sys.stdout)
    else:
        from initadvisor.cli.measure_text import print_measured

        print_measured(measured, dry_run=dry_run)
