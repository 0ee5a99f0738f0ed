"""``initadvisor apply``: what changing the compression would do, and building it on trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.model.errors import InitadvisorError, UnsafeError

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.model.apply import ApplyPlan


@click.command()
@click.argument("setting", required=False)
@click.option(
    "--all", "everything", is_flag=True, help="Fallback images and those of other kernels, too."
)
@click.option("--confirm", is_flag=True, help="Build and check the images, in the cache.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def apply(*, setting: str | None, everything: bool, confirm: bool, as_json: bool) -> None:
    """Show what changing to SETTING, or to the recommended setting, would do.

    Configuration, images, room and what is in the way. Nothing is changed: without --confirm the
    exit status is 3 unless there is nothing to do. With it the images are built in the cache and
    compared with builds of today's setting; this version cannot replace the installed ones yet,
    and ends with an error that says so.
    """
    from initadvisor.cli.progress import Progress
    from initadvisor.host import Host
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.apply_plan import ApplyRequest, plan_apply

    if confirm and as_json:
        msg = "--confirm and --json exclude each other"
        raise click.UsageError(msg)
    host = Host()
    request = ApplyRequest(
        setting=Setting.parse(setting) if setting else None, everything=everything
    )
    with Progress() as progress:
        plan = plan_apply(host, request, observer=progress)
    if as_json:
        from initadvisor.cli.apply_json import print_plan
    else:
        from initadvisor.cli.apply_text import print_plan
    print_plan(plan)
    if not plan.edits:
        return
    if not confirm:
        msg = "nothing was changed: this is what would be done"
        raise UnsafeError(msg, hint="--confirm builds the images and checks them")
    _build(host, plan)


def _build(host: Host, plan: ApplyPlan) -> None:
    """Build and check everything, and say that this is where it ends."""
    from initadvisor.cli.apply_text import print_staged
    from initadvisor.cli.progress import Progress
    from initadvisor.generators.detect import generator_of_image
    from initadvisor.workflow.apply_build import staged_images

    generator = generator_of_image(plan.generator)
    with Progress() as progress, staged_images(host, generator, plan, observer=progress) as staged:
        pass
    print_staged(staged)
    msg = "the images are right, but this version cannot replace the installed ones yet"
    raise InitadvisorError(msg, hint="nothing was changed, and what was built is removed")
