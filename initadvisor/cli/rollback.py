"""``initadvisor rollback``: back to the state before the latest ``apply``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import refuse_if
from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.text import print_item
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from initadvisor.apply.rollback import RollbackPlan
    from initadvisor.host import Host


@click.command()
@click.option("--confirm", is_flag=True, help="Do it; without, it is only shown.")
@click.option(
    "--unverified", is_flag=True, help="Go on where no kernel can unpack a rebuilt image."
)
@click.option("--drop", is_flag=True, help="Remove what is kept for going back, instead.")
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --drop: not what is kept of the latest N changes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what would be done as JSON.")
def rollback(
    *, confirm: bool, unverified: bool, drop: bool, keep: int | None, as_json: bool
) -> None:
    """Go back to the state before the latest apply.

    The configuration and the images from before come back; images that were made anew since, by a
    kernel upgrade, are rebuilt with the old configuration. Several applies are gone back over one
    by one. Without --confirm nothing is changed, and the exit status is 3 unless there is nothing
    to go back to.
    """
    from initadvisor.apply.rollback import plan_rollback
    from initadvisor.host import Host

    refuse_if(keep and not drop, "--keep goes with --drop")
    refuse_if(as_json and (confirm or drop), "--json excludes --confirm and --drop")
    host = Host()
    if drop:
        _drop(host, confirm=confirm, keep=keep or 0)
        return
    plan = plan_rollback(host)
    if as_json:
        print_json({"transaction": plan and _document(plan)})
    elif plan:
        _print_plan(plan)
    else:
        click.echo("There is nothing to go back to.")
    if plan is None:
        return
    if not confirm:
        msg = "nothing was changed: this is what would be done"
        raise UnsafeError(msg, hint="--confirm does it")
    _roll_back(host, plan, unverified=unverified)


def _document(plan: RollbackPlan) -> dict[str, Any]:
    transaction = plan.transaction
    return {
        "number": transaction.number,
        "purpose": transaction.purpose,
        "setting": transaction.setting and transaction.setting.before,
        "waiting": plan.waiting,
        "restored": list(plan.restored),
        "rebuilt": [str(path) for image in plan.rebuilt for path in image.paths],
        "gone": list(plan.gone),
    }


def _print_plan(plan: RollbackPlan) -> None:
    transaction = plan.transaction
    click.echo(f"Transaction {transaction.number}: {shown(transaction.purpose)}")
    if plan.waiting:
        print_item("waits for a boot; it is taken back, and nothing was replaced yet")
    for path in plan.restored:
        print_item(f"{path}: the content from before comes back")
    for image in plan.rebuilt:
        for name in image.paths:
            print_item(f"{name}: rebuilt with the configuration from before")
    for path in plan.gone:
        print_item(f"{path}: is not there any more, and stays so")


def _roll_back(host: Host, plan: RollbackPlan, *, unverified: bool) -> None:
    from initadvisor.apply.rollback import rollback as roll_back
    from initadvisor.cli.rendering.progress import Progress

    with Progress() as progress:
        done = roll_back(host, plan, unverified=unverified, observer=progress)
    if done.unverified:
        click.echo(shown(f"No kernel was asked about the rebuilt images: {done.unverified}"))
    setting = done.transaction.setting
    what = "taken back" if plan.waiting else "undone"
    configured = f"; {shown(setting.before)} is configured" if setting else ""
    if setting and setting.variant:
        configured = f"; {shown(setting.variant)} is configured no more"
    click.echo(f"Transaction {done.transaction.number} is {what}{configured}.")


def _drop(host: Host, *, confirm: bool, keep: int) -> None:
    from initadvisor.apply.rollback import drop, kept
    from initadvisor.trial.ownership import orphans_of_changes

    found, orphans = kept(host, keep=keep), orphans_of_changes(host)
    if not found and not orphans:
        older = f" but for the latest {keep}" if keep else ""
        click.echo(f"Nothing is kept for going back{older}.")
        return
    for backup in found:
        print_item(f"{backup.path}: {backup.size_bytes / 1e6:.1f} MB, what {backup.of} held before")
    for orphan in orphans:
        print_item(f"{shown(orphan.name)}: this system's own, left without a record")
    if not confirm:
        msg = "nothing was removed: these would be"
        raise UnsafeError(msg, hint="--confirm does it")
    stay = drop(host, keep=keep)
    if stay:
        msg = f"{len(stay)} of {len(found)} files could not be removed yet"
        raise InitadvisorError(msg, hint="standard error says why; try again then")
    freed_bytes = sum(backup.size_bytes for backup in found)
    left = f"only the latest {keep} can be undone now" if keep else "nothing can be undone any more"
    if orphans:
        click.echo(f"Removed what no record told of: {len(orphans)}.")
    click.echo(f"Removed {len(found)} files, {freed_bytes / 1e6:.1f} MB: {left}.")
