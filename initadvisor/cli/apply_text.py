"""The plan of ``apply`` for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.paragraphs import print_item, print_paragraph
from initadvisor.cli.tables import Table, print_table
from initadvisor.cli.wording import figure, turned_round
from initadvisor.model.apply import Step
from initadvisor.model.proof import ProofStage
from initadvisor.model.text import shown
from initadvisor.model.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.model.apply import ApplyPlan, PlannedImage, StagedImage
    from initadvisor.model.estimate import Estimate
    from initadvisor.model.image_difference import ImageDifference
    from initadvisor.workflow.apply import Applied

_MOST_LINES = 10
_LEAVE_IT = (
    "A boot is measured about two minutes after it is complete: let it run that long. initadvisor "
    "status tells how far it is."
)
_IN_THE_WAY = {
    Step.BUILD: "In the way of applying it",
    Step.VERIFYING: "In the way of having a kernel unpack it in a virtual machine",
    Step.PROVING_BOOT: "In the way of booting it once before it becomes the default",
    Step.PREVIOUS_ENTRY: "In the way of a menu entry for the previous image",
    Step.UNLOCKING: "In the way of unlocking the disk without a passphrase",
}


def print_plan(plan: ApplyPlan) -> None:
    """Print the whole plan to stdout."""
    click.echo(f"Today: {shown(str(plan.today.setting))} ({shown(plan.today.source)})")
    click.echo(f"To apply: {shown(str(plan.setting))} ({shown(plan.why)})")
    if not plan.edits:
        click.echo("There is nothing to change in the configuration.")
        return
    if plan.saving_ms:
        click.echo(f"Expected to {_save_or_cost(plan.saving_ms)} per boot.")
    click.echo("\nConfiguration:\n")
    for edit in plan.edits:
        for line in edit.diff.rstrip("\n").split("\n"):
            click.echo(shown(line.replace("\t", "    ")))
    click.echo(f"\nImages of {plan.generator}:\n")
    print_table(_images(plan.images))
    for room in plan.room:
        enough = "" if room.enough else ": NOT ENOUGH"
        print_item(
            f"{room.mount_point}: {_mb(room.needed_bytes)} MB for {room.purpose}, "
            f"{_mb(room.free_bytes)} MB free{enough}"
        )
    _print_obstacles(plan)
    if plan.warnings:
        click.echo("\nWorth knowing:")
        for warning in plan.warnings:
            print_item(warning)


def _save_or_cost(saving_ms: Estimate) -> str:
    if saving_ms.mean >= 0:
        return f"save {figure(saving_ms)} ms"
    return f"cost {figure(turned_round(saving_ms))} ms"


def _print_obstacles(plan: ApplyPlan) -> None:
    for step, title in _IN_THE_WAY.items():
        if found := [obstacle for obstacle in plan.obstacles if obstacle.step is step]:
            click.echo(f"\n{title}:")
            for obstacle in found:
                remedy = f" ({obstacle.remedy})" if obstacle.remedy else ""
                print_item(f"{obstacle.reason}{remedy}")


def print_staged(staged: Sequence[StagedImage]) -> None:
    """Print what was built and what the installed images lack."""
    for image in staged:
        click.echo()
        print_paragraph(
            f"{shown(str(image.image.path))}: built as {image.codec}, {_mb(image.size_bytes)} MB, "
            f"lint: {image.lint.verdict}, same content as with today's setting"
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
    after = shown(setting.after) if setting else ""
    click.echo()
    if applied.unverified:
        print_paragraph(f"No kernel was asked whether it unpacks them: {applied.unverified}")
    if transaction.state is TransactionState.COMMITTED:
        if applied.proven:
            started = f"{applied.proven.started_at.astimezone():%Y-%m-%d}"
            click.echo(f"{after} has booted on this machine before, on {started}.")
        print_paragraph(
            f"{after} is configured and installed. initadvisor rollback --confirm goes back."
        )
    elif transaction.proof and transaction.proof.stage is ProofStage.REHEARSAL:
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
    lines += [f"gone: {path}" for path in found.removed]
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
                shown(str(planned.image.path)),
                shown(planned.image.kernel_release),
                _mb(planned.size_bytes),
                "?" if planned.expected_bytes is None else _mb(planned.expected_bytes),
                _fate(planned),
            )
            for planned in images
        ),
        text=0,
    )


def _fate(planned: PlannedImage) -> str:
    kind = " (unified kernel image)" if planned.image.uki else ""
    if planned.rebuilt:
        return f"rebuilt with {planned.after.setting}{kind}"
    return f"stays{' (fallback)' if planned.image.fallback else ''}{kind}"


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f}"
