"""``initadvisor apply``: change the compression, in the configuration and in the images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.model.apply import Step
from initadvisor.model.errors import UnsafeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.cli.progress import Progress
    from initadvisor.host import Host
    from initadvisor.model.apply import ApplyPlan, StagedImage
    from initadvisor.workflow.apply import ApplyChoices

_WITHOUT = {
    Step.VERIFYING: "--unverified",
    Step.PROVING_BOOT: "--immediate",
    Step.PREVIOUS_ENTRY: "--without-entry",
    Step.UNLOCKING: "--ignore-unlocking",
}
"""The option that goes on where a step cannot be done."""


@click.command()
@click.argument("setting", required=False)
@click.option("--confirm", is_flag=True, help="Do it; without, only the plan is shown.")
@click.option(
    "--all", "everything", is_flag=True, help="Fallback images and those of other kernels, too."
)
@click.option("--immediate", is_flag=True, help="Replace the images without a proving boot.")
@click.option("--unverified", is_flag=True, help="Go on where no kernel can unpack them on trial.")
@click.option(
    "--accept-content-changes",
    is_flag=True,
    help="Go on where a rebuild brings more than another compression.",
)
@click.option("--without-backup", is_flag=True, help="Do not keep the previous images.")
@click.option(
    "--without-entry", is_flag=True, help="Go on without a menu entry for the previous image."
)
@click.option(
    "--ignore-unlocking", is_flag=True, help="Go on where a disk may ask for its passphrase."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def apply(
    *,
    setting: str | None,
    confirm: bool,
    everything: bool,
    immediate: bool,
    unverified: bool,
    accept_content_changes: bool,
    without_backup: bool,
    without_entry: bool,
    ignore_unlocking: bool,
    as_json: bool,
) -> None:
    """Change the compression to SETTING, or to the recommended setting.

    Without --confirm nothing is changed: the plan is shown, and the exit status is 3 unless there
    is nothing to do. With it, images are built beside the installed ones, compared with builds of
    today's setting and unpacked by a kernel in a virtual machine. A setting that has not booted on
    this machine yet then boots once, at the next reboot, before anything is replaced.
    """
    from initadvisor.cli.progress import Progress
    from initadvisor.host import Host
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.apply import ApplyChoices
    from initadvisor.workflow.apply_plan import ApplyRequest, plan_apply

    if confirm and as_json:
        msg = "--confirm and --json exclude each other"
        raise click.UsageError(msg)
    host = Host()
    request = ApplyRequest(
        setting=None if setting is None else Setting.parse(setting),
        everything=everything,
        keep=not without_backup,
    )
    with Progress() as progress:
        plan = plan_apply(host, request, observer=progress)
    if as_json:
        from initadvisor.cli.apply_json import print_plan as print_json

        print_json(plan)
    else:
        from initadvisor.cli.apply_text import print_plan

        print_plan(plan)
    if not plan.edits:
        return
    if not confirm:
        msg = "nothing was changed: this is what would be done"
        raise UnsafeError(msg, hint=f"--confirm does it{_unless(plan)}")
    choices = ApplyChoices(
        immediate=immediate,
        unverified=unverified,
        accept_content_changes=accept_content_changes,
        without_backup=without_backup,
        without_entry=without_entry,
        ignore_unlocking=ignore_unlocking,
    )
    _apply(host, plan, choices)


def _unless(plan: ApplyPlan) -> str:
    """Say what --confirm would refuse for, and with which options it would not."""
    if not plan.obstacles:
        return ""
    in_the_way = {obstacle.step for obstacle in plan.obstacles}
    options = [option for step, option in _WITHOUT.items() if step in in_the_way]
    if Step.BUILD in in_the_way or not options:
        return ", once nothing is in the way"
    return f", once nothing is in the way or with {' '.join(options)}"


class _Shown:
    """Shows progress on a terminal, and what was built once it is there."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def doing(self, what: str) -> None:
        """Show what goes on."""
        self._progress.doing(what)

    def built(self, staged: Sequence[StagedImage]) -> None:
        """Print what was built, before anything is decided about it."""
        from initadvisor.cli.apply_text import print_staged

        print_staged(staged)


def _apply(host: Host, plan: ApplyPlan, choices: ApplyChoices) -> None:
    from initadvisor.cli.apply_text import print_applied
    from initadvisor.cli.progress import Progress
    from initadvisor.workflow.apply import apply as apply_planned

    with Progress() as progress:
        applied = apply_planned(host, plan, choices, observer=_Shown(progress))
    print_applied(applied)
