"""``initadvisor apply``: change the compression or the content, configuration and images alike.

The options, the call, and the plan as JSON and as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from initadvisor.apply.plan_values import ApplyStep
from initadvisor.cli.options import machine_options, refuse_if, settings_beginning_with
from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.progress import Progress
from initadvisor.cli.rendering.text import (
    Table,
    figure,
    print_item,
    print_list,
    print_paragraph,
    print_table,
    turned_round,
)
from initadvisor.core.errors import UnsafeError
from initadvisor.core.text import shown
from initadvisor.generators import VariantName
from initadvisor.transaction.transaction import ProofStage, TransactionState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.apply.apply import Applied
    from initadvisor.apply.plan_values import ApplyPlan, PlannedImage, StagedImage
    from initadvisor.core.estimates import Estimate
    from initadvisor.image.difference import ImageDifference


_WITHOUT = {
    ApplyStep.VERIFYING: "--unverified",
    ApplyStep.PROVING_BOOT: "--immediate",
    ApplyStep.PREVIOUS_ENTRY: "--without-entry",
    ApplyStep.UNLOCKING: "--ignore-unlocking",
}
"""The option that goes on where a step cannot be done."""


@click.command()
@click.argument("setting", required=False, shell_complete=settings_beginning_with)
@click.option(
    "--variant",
    type=click.Choice([name.value for name in VariantName]),
    help="Take content out of the image, as contents --variants has built it.",
)
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
@machine_options
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def apply(
    *,
    setting: str | None,
    variant: str | None,
    confirm: bool,
    everything: bool,
    immediate: bool,
    unverified: bool,
    accept_content_changes: bool,
    without_backup: bool,
    without_entry: bool,
    ignore_unlocking: bool,
    read_speed: float | None,
    overlap: float | None,
    as_json: bool,
) -> None:
    """Change the compression to SETTING, or to the recommended setting, or the content.

    Without --confirm nothing is changed: the plan is shown, and the exit status is 3 unless there
    is nothing to do. With it, images are built beside the installed ones, compared with builds of
    today's setting and unpacked by a kernel in a virtual machine. A setting that has not booted on
    this machine yet then boots once, at the next reboot, before anything is replaced.
    """
    from initadvisor.apply.apply import ApplyChoices
    from initadvisor.apply.apply import apply as apply_planned
    from initadvisor.apply.plan import ApplyRequest, plan_apply
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host

    refuse_if(confirm and as_json, "--confirm and --json exclude each other")
    refuse_if(variant and setting, "--variant and SETTING exclude each other")
    refuse_if(variant and everything, "--variant and --all exclude each other")
    host = Host()
    request = ApplyRequest(
        setting=None if setting is None else Setting.parse(setting),
        variant=None if variant is None else VariantName(variant),
        everything=everything,
        keep=not without_backup,
        read_speed_mb_s=read_speed,
        overlap_ms=overlap,
    )
    with Progress() as progress:
        plan = plan_apply(host, request, observer=progress)
    if as_json:
        print_json(_document(plan))
    else:
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
    with _ApplyProgress() as progress:
        applied = apply_planned(host, plan, choices, observer=progress)
    print_applied(applied)


def _unless(plan: ApplyPlan) -> str:
    """Say what --confirm would refuse for, and with which options it would not."""
    if not plan.blockers:
        return ""
    in_the_way = {obstacle.step for obstacle in plan.blockers}
    options = [option for step, option in _WITHOUT.items() if step in in_the_way]
    if ApplyStep.BUILD in in_the_way or not options:
        return ", once nothing is in the way"
    return f", once nothing is in the way or with {' '.join(options)}"


class _ApplyProgress(Progress):
    """Shows progress on a terminal, and what was built once it is there."""

    def built(self, staged: Sequence[StagedImage]) -> None:
        """Print what was built, before anything is decided about it."""
        print_staged(staged)


def _document(plan: ApplyPlan) -> dict[str, Any]:
    saving, variant = plan.saving_ms, plan.variant
    return {
        "generator": plan.generator,
        "setting": str(plan.setting),
        "why": plan.why,
        "variant": variant
        and {
            "name": variant.name,
            "line": variant.line,
            "loses": variant.loses,
            "removed": variant.expected.removed,
            "added": variant.expected.added,
        },
        "today": {"setting": str(plan.today.setting), "source": plan.today.source},
        "edits": [
            {"path": edit.path, "new": edit.before is None, "diff": edit.diff}
            for edit in plan.edits
        ],
        "images": [_image(planned) for planned in plan.images],
        "space": [
            {
                "mount_point": room.mount_point,
                "needed_bytes": room.needed_bytes,
                "free_bytes": room.free_bytes,
                "purpose": room.purpose,
                "enough": room.enough,
            }
            for room in plan.space
        ],
        "saving_ms": saving
        and {
            "mean": saving.mean,
            "median": saving.middle,
            "low": saving.low,
            "high": saving.high,
        },
        "blockers": [
            {"step": one.step.value, "reason": one.reason, "remedy": one.remedy}
            for one in plan.blockers
        ],
        "warnings": list(plan.warnings),
    }


def _image(planned: PlannedImage) -> dict[str, Any]:
    return {
        "path": str(planned.image.path),
        "kernel": planned.image.kernel_release,
        "uki": planned.image.uki,
        "fallback": planned.image.fallback,
        "copies": [str(path) for path in planned.image.copies],
        "rebuilt": planned.rebuilt,
        "may_stay": planned.may_stay,
        "setting": str(planned.after.setting),
        "size_bytes": planned.size_bytes,
        "expected_bytes": planned.expected_bytes,
    }


_MOST_LINES = 10
_LEAVE_IT = (
    "A boot is measured about two minutes after it is complete: let it run that long. initadvisor "
    "status tells how far it is."
)
_IN_THE_WAY = {
    ApplyStep.BUILD: "In the way of applying it",
    ApplyStep.VERIFYING: "In the way of having a kernel unpack it in a virtual machine",
    ApplyStep.PROVING_BOOT: "In the way of booting it once before it becomes the default",
    ApplyStep.PREVIOUS_ENTRY: "In the way of a menu entry for the previous image",
    ApplyStep.UNLOCKING: "In the way of unlocking the disk without a passphrase",
}


def print_plan(plan: ApplyPlan) -> None:
    """Print the whole plan to stdout."""
    click.echo(f"Today: {shown(str(plan.today.setting))} ({shown(plan.today.source)})")
    click.echo(f"To apply: {shown(plan.change)} ({shown(plan.why)})")
    if not plan.edits:
        click.echo("There is nothing to change in the configuration.")
        return
    if plan.saving_ms:
        click.echo(f"Expected to {_save_or_cost(plan.saving_ms)} per boot.")
    click.echo("\nConfiguration:\n")
    for edit in plan.edits:
        for line in edit.diff.rstrip("\n").split("\n"):
            click.echo(shown(line.replace("\t", "    ")))
    if plan.variant:
        click.echo("\nIn the image (all of it: contents --variants --files):\n")
        _print_difference(plan.variant.expected)
    click.echo(f"\nImages of {plan.generator}:\n")
    print_table(_images(plan.images))
    for room in plan.space:
        enough = "" if room.enough else ": NOT ENOUGH"
        print_item(
            f"{room.mount_point}: {_mb(room.needed_bytes)} MB for {room.purpose}, "
            f"{_mb(room.free_bytes)} MB free{enough}"
        )
    for step, title in _IN_THE_WAY.items():
        found = [obstacle for obstacle in plan.blockers if obstacle.step is step]
        said = (one.reason + (f" ({one.remedy})" if one.remedy else "") for one in found)
        print_list(title, tuple(dict.fromkeys(said)))
    print_list("Worth knowing", plan.warnings)


def _save_or_cost(saving_ms: Estimate) -> str:
    if saving_ms.middle >= 0:
        return f"save {figure(saving_ms)} ms"
    return f"cost {figure(turned_round(saving_ms))} ms"


def print_staged(staged: Sequence[StagedImage]) -> None:
    """Print what was built and what the installed images lack."""
    for image in staged:
        content = "same content as with today's setting"
        if image.missing:
            content = f"files missing: {len(image.missing)}, all of them expected"
        click.echo()
        print_paragraph(
            f"{shown(str(image.image.path))}: built as {image.codec}, {_mb(image.size_bytes)} MB, "
            f"lint: {image.lint.verdict}, {content}"
        )
        for reason in image.lint.reasons:
            print_item(reason)
        if image.updates is None:
            print_item(f"the installed image cannot be compared: {image.unreadable}")
        elif image.updates.count:
            click.echo("Updates since the installed image was built, which any rebuild brings:")
            _print_difference(image.updates)


def print_applied(applied: Applied) -> None:
    """Print what came of it, and what is still to come."""
    transaction, setting = applied.transaction, applied.transaction.setting
    after = shown(setting.variant or setting.after) if setting else ""
    click.echo()
    for left in applied.left:
        click.echo(f"{shown(str(left.image.path))} stays as it is: {shown(left.objection)}")
    if applied.unverified:
        print_paragraph(f"No kernel was asked whether it unpacks them: {applied.unverified}")
    if transaction.state is TransactionState.COMMITTED:
        if applied.proven:
            started = f"{applied.proven.started_at.astimezone():%Y-%m-%d}"
            click.echo(f"{after} has booted on this machine before, on {started}.")
        print_paragraph(
            f"{after} is configured and installed. initadvisor rollback --confirm goes back."
        )
    elif transaction.armed_boot and transaction.armed_boot.stage is ProofStage.REHEARSAL:
        print_paragraph(
            "Nothing was replaced yet. The next boot is a rehearsal: it uses today's image, from "
            f"an entry of its own. If all goes well, the boot after it uses {after}, and when that "
            f"was measured it becomes the default. {_LEAVE_IT}"
        )
    else:
        print_paragraph(
            f"Nothing was replaced yet. The next boot uses {after} once; when it was measured, "
            f"{after} becomes the default. {_LEAVE_IT}"
        )


def _print_difference(found: ImageDifference) -> None:
    lines = [f"new: {path}" for path in found.added]
    lines += [f"gone: {path}" for path in found.removed_files]
    lines += [f"changed: {entry.path} ({', '.join(entry.aspects)})" for entry in found.changed]
    for line in lines[:_MOST_LINES]:
        print_item(line)
    if len(lines) > _MOST_LINES:
        print_item(f"and {len(lines) - _MOST_LINES} more")


def _images(images: Sequence[PlannedImage]) -> Table:
    return Table(
        titles=("image", "kernel", "MB", "about", "what happens"),
        rows=tuple(
            (
                shown(str(path)),
                shown(planned.image.kernel_release),
                _mb(planned.size_bytes),
                "?" if planned.expected_bytes is None else _mb(planned.expected_bytes),
                _fate(planned) if path == planned.image.path else _fate_of_copy(planned),
            )
            for planned in images
            for path in planned.image.paths
        ),
        text=0,
    )


def _fate(planned: PlannedImage) -> str:
    kind = " (unified kernel image)" if planned.image.uki else ""
    if planned.rebuilt:
        return f"rebuilt with {planned.after.setting}{kind}"
    return f"stays{' (fallback)' if planned.image.fallback else ''}{kind}"


def _fate_of_copy(planned: PlannedImage) -> str:
    return f"a copy of it: {'replaced with it' if planned.rebuilt else 'stays'}"


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f}"
