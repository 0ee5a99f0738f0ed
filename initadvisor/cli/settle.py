"""``initadvisor settle``: finish or undo what was begun, arm what is next; units run it."""

from __future__ import annotations

import click

from initadvisor.cli.rendering.output import print_json
from initadvisor.core.text import shown


@click.command(hidden=True)
@click.option(
    "--take-back",
    "step",
    flag_value="take-back",
    help="Have no boot armed until settle is run again.",
)
@click.option(
    "--withdraw", "step", flag_value="withdraw", help="Undo what waits for a boot; end a campaign."
)
@click.option(
    "--reboot", "step", flag_value="reboot", hidden=True, help="Reboot for an armed trial."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def settle(*, step: str | None, as_json: bool) -> None:
    """Judge the boot of a new image or of a trial, and finish or undo what was interrupted.

    initadvisor-settle.timer runs this after each boot that something is waiting for. What was done
    is printed, a line each; where there is nothing to do, nothing is.
    """
    from initadvisor.apply import proving
    from initadvisor.host import Host
    from initadvisor.trial.reboot import reboot_unattended

    steps = {
        None: proving.settle_everything,
        "take-back": proving.take_back_everything,
        "withdraw": proving.withdraw_everything,
        "reboot": reboot_unattended,
    }
    done = steps[step](Host())
    if as_json:
        print_json({"done": list(done)})
        return
    for line in done:
        click.echo(shown(line))
