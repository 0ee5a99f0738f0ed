"""``initadvisor settle``: finish or undo what was begun; systemd's units run it."""

from __future__ import annotations

import click

from initadvisor.model.text import shown


@click.command()
@click.option(
    "--before-sleep", is_flag=True, help="Take an armed boot back; without, it is armed again."
)
def settle(*, before_sleep: bool) -> None:
    """Judge the boot of a new image, and finish or undo what was interrupted.

    initadvisor-settle.timer runs this after each boot that something is waiting for. What was done
    is printed, a line each; where there is nothing to do, nothing is.
    """
    from initadvisor.host import Host
    from initadvisor.workflow.proving import settle as settle_pending
    from initadvisor.workflow.proving import take_back_before_sleep

    done = take_back_before_sleep(Host()) if before_sleep else settle_pending(Host())
    for line in done:
        click.echo(shown(line))
