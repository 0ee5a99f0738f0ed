"""``initadvisor settle``: finish or undo what was begun, arm what is next; units run it."""

from __future__ import annotations

import click

from initadvisor.core.text import shown


@click.command()
@click.option(
    "--before-sleep", is_flag=True, help="Take an armed boot back; without, it is armed again."
)
def settle(*, before_sleep: bool) -> None:
    """Judge the boot of a new image or of a trial, and finish or undo what was interrupted.

    initadvisor-settle.timer runs this after each boot that something is waiting for. What was done
    is printed, a line each; where there is nothing to do, nothing is.
    """
    from initadvisor.apply import proving
    from initadvisor.host import Host
    from initadvisor.trial import campaigns

    host = Host()
    done = proving.take_back_before_sleep(host) if before_sleep else proving.settle(host)
    for line in done:
        click.echo(shown(line))
    told = (
        campaigns.take_back_before_sleep(host)
        if before_sleep
        else campaigns.advance(host, may_build=False).told
    )
    for line in told:
        click.echo(shown(line))
