"""``initadvisor history``: what was measured so far."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many lab runs and how many verifications to show, the latest ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON, with every sample.")
def history(*, limit: int, as_json: bool) -> None:
    """Show what was measured: lab runs, and what kernels made of images.

    Without root these are the user's own, or, where there are none, those of the machine.
    """
    from initadvisor.host import Host
    from initadvisor.store.store import open_store

    with open_store(Host(), readonly=True) as store:
        path = store.path
        runs = store.lab_runs(limit=limit)
        verifications = store.verifications(limit=limit)
    if as_json:
        import json

        from initadvisor.cli.history_json import as_document

        click.echo(json.dumps(as_document(path, runs, verifications), indent=2, allow_nan=False))
    else:
        from initadvisor.cli.history_text import print_history

        print_history(path, runs, verifications)
