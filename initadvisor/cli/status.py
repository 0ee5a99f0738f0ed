"""``initadvisor status``: what is configured, used by this boot, pending and kept."""

from __future__ import annotations

import click


@click.command()
@click.option("--check", is_flag=True, help="Read what is kept whole, and compare it.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(*, check: bool, as_json: bool) -> None:
    """Show what is configured, what this boot used, and what initadvisor did to this machine.

    Transactions that are not over, entries in the boot menu and images that are kept for going
    back. Without root, what the boot loader has is not shown.
    """
    from initadvisor.host import Host
    from initadvisor.workflow.status import status as look

    found = look(Host(), check=check)
    if as_json:
        from initadvisor.cli.status_json import print_status as print_json

        print_json(found)
    else:
        from initadvisor.cli.status_text import print_status

        print_status(found)
