"""``initadvisor disable``: nothing is done by itself any more, and nothing is left armed."""

from __future__ import annotations

import click

from initadvisor.cli.rendering.text import print_paragraph
from initadvisor.core.text import shown


@click.command()
def disable() -> None:
    """Turn the units off, stop trials and put the policy back; see initadvisor enable.

    Measured boots stay, and so does a setting that was applied: initadvisor rollback undoes that.
    """
    from initadvisor.daemon.enable import disable as turn_off
    from initadvisor.host import Host

    for line in turn_off(Host()):
        print_paragraph(shown(line))
