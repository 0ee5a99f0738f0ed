"""``initadvisor settle``: finish or undo what was begun, arm what is next; units run it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command()
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
def settle(*, step: str | None) -> None:
    """Judge the boot of a new image or of a trial, and finish or undo what was interrupted.

    initadvisor-settle.timer runs this after each boot that something is waiting for. What was done
    is printed, a line each; where there is nothing to do, nothing is.
    """
    from initadvisor.apply import proving
    from initadvisor.core.errors import InitadvisorError
    from initadvisor.host import Host
    from initadvisor.transaction.files import raise_all
    from initadvisor.trial import campaigns, reboot

    host, reason = Host(), "it was withdrawn"
    steps: tuple[Callable[[], tuple[str, ...]], ...]
    match step:
        case "take-back":
            steps = (partial(proving.take_back, host), partial(campaigns.take_back, host))
        case "withdraw":
            steps = (
                partial(proving.withdraw_all, host, reason=reason),
                partial(campaigns.withdraw, host, reason=reason),
            )
        case "reboot":
            steps = (partial(reboot.reboot_unattended, host),)
        case _:
            steps = (partial(proving.settle, host), partial(campaigns.carry_on, host))
    failed: list[InitadvisorError] = []
    for do in steps:
        try:
            for line in do():
                click.echo(shown(line))
        except InitadvisorError as err:  # the other has nothing to do with it
            failed.append(err)
    raise_all(failed)
