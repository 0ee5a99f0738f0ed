"""``initadvisor disable``: nothing is done by itself any more, and nothing is left armed."""

from __future__ import annotations

import click

from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.text import print_paragraph
from initadvisor.core.text import shown


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def disable(*, as_json: bool) -> None:
    """Turn the units off, stop trials and put the policy back; see initadvisor enable.

    Measured boots stay, and so does a setting that was applied: initadvisor rollback undoes that.
    """
    from initadvisor.daemon.enable import disable as turn_off
    from initadvisor.host import Host

    done = turn_off(Host())
    if as_json:
        print_json({"done": list(done)})
        return
    for line in done:
        print_paragraph(shown(line))
