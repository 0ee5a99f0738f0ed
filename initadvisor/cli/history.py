"""``initadvisor history``: what was measured so far."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from initadvisor.cli.file_name import FileName
from initadvisor.cli.since import moment_since
from initadvisor.cli.span import Whole

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.store.store import Store

_SHOWN = 10


@click.command()
@click.option(
    "--limit",
    type=Whole(min=1, max=1_000_000_000),
    help=f"Show only so many of each, the latest ones [{_SHOWN}, of exported boots all].",
)
@click.option(
    "--since",
    callback=moment_since,
    metavar="WHEN",
    help="Only what is since a date (2026-01-31), or since so long ago (90d, 12w).",
)
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON, with every sample.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the boots as CSV.")
@click.option(
    "--import",
    "imported",
    type=FileName(),
    metavar="FILE",
    help="Keep the boots that another machine printed as JSON or CSV.",
)
def history(
    *,
    limit: int | None,
    since: datetime | None,
    as_json: bool,
    as_csv: bool,
    imported: Path | None,
) -> None:
    """Show what was measured: boots, lab runs, and what kernels made of images.

    Without root these are the user's own, or, where there are none, those of the machine.
    """
    from initadvisor.host import Host
    from initadvisor.store.store import open_store

    if sum([as_json, as_csv, imported is not None]) > 1:
        msg = "--json, --csv and --import exclude each other"
        raise click.UsageError(msg)
    if imported is not None and (since is not None or limit is not None):
        msg = "--import takes all boots of a file, without --since or --limit"
        raise click.UsageError(msg)
    host = Host()
    if imported is not None:
        _import(host, imported)
        return
    with open_store(host, readonly=True) as store:
        if as_csv:
            from initadvisor.cli.boots_export import write_csv

            with contextlib.closing(store.each_boot(since=since, limit=limit)) as boots:
                write_csv(boots, sys.stdout)
        elif as_json:
            _print_json(store, since, limit)
        else:
            _print_text(store, since, limit or _SHOWN)


def _import(host: Host, path: Path) -> None:
    from initadvisor.model.text import shown
    from initadvisor.workflow.boot_import import import_boots

    done = import_boots(host, path)
    click.echo(shown(f"{done.new} of {done.boots} boots are new; kept in {done.path}"))


def _print_json(store: Store, since: datetime | None, limit: int | None) -> None:
    from initadvisor.cli.boots_export import write_json
    from initadvisor.cli.history_json import as_document

    runs = store.lab_runs(limit=limit or _SHOWN, since=since)
    verifications = store.verifications(limit=limit or _SHOWN, since=since)
    head = as_document(store.path, runs, verifications)
    with contextlib.closing(store.each_boot(since=since, limit=limit)) as boots:
        write_json(head, boots, sys.stdout)


def _print_text(store: Store, since: datetime | None, limit: int) -> None:
    from initadvisor.cli.boots_text import explain_summaries, print_boots, print_summaries
    from initadvisor.cli.history_text import print_run, print_verifications
    from initadvisor.model.text import shown
    from initadvisor.workflow.boot_summary import summaries

    boots = store.boots(since=since, limit=limit)
    runs = store.lab_runs(limit=limit, since=since)
    verifications = store.verifications(limit=limit, since=since)
    if not boots and not runs and not verifications:
        click.echo("Nothing was measured yet." if since is None else "Nothing was measured since.")
        return
    if boots:
        print_boots(boots)
        classes = summaries(store.boot_groups(since=since), limit=limit)
        print_summaries(classes)
        explain_summaries(classes)
    for recorded in runs:
        print_run(recorded)
    if verifications:
        print_verifications(verifications)
    click.echo(f"Kept in {shown(str(store.path))}")
