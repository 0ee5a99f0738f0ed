"""The status for a person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from initadvisor.cli.paragraphs import print_item, print_paragraph
from initadvisor.model.one_shot import OneShotState
from initadvisor.model.proof import ProofStage
from initadvisor.model.text import shown
from initadvisor.model.transaction import Duty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.model.campaign import Campaign
    from initadvisor.model.status import Backup, Entries, RunningBoot, Status
    from initadvisor.model.transaction import Transaction

_LATEST = 5
_TO_DO = {
    Duty.WAIT: "waits for a boot",
    Duty.REPLACE: "was interrupted; initadvisor settle finishes it",
    Duty.RESTORE: "was interrupted; initadvisor settle undoes it",
}


def print_status(found: Status) -> None:
    """Print all of it to stdout."""
    if found.configured:
        source = shown(found.configured.source)
        click.echo(f"Configured: {shown(str(found.configured.setting))} ({source})")
    _print_running(found.running)
    _print_entries(found.entries)
    if found.pending:
        click.echo("\nNot over:")
        for transaction in found.pending:
            print_item(f"{_name(transaction)}: {_to_do(transaction)}")
    _print_campaign(found.campaign)
    over = [t for t in found.transactions if t.state.duty is Duty.NOTHING]
    if over:
        click.echo("\nThe latest changes:")
        for transaction in over[-_LATEST:]:
            why = f" ({shown(transaction.reason)})" if transaction.reason else ""
            print_item(f"{_name(transaction)}: {transaction.state}{why}")
    if found.backups:
        _print_backups(found.backups)
    if found.notes:
        click.echo("\nWorth knowing:")
        for note in found.notes:
            print_item(note)


def _print_running(running: RunningBoot) -> None:
    if running.certainty is None:
        click.echo(f"This boot used: not known ({shown(running.words)})")
        return
    setting = f"{shown(str(running.setting))}, " if running.setting else ""
    click.echo(f"This boot used: {setting}{running.certainty} ({shown(running.words)})")


def _print_entries(entries: Entries) -> None:
    if entries.problem:
        click.echo(f"Boot loader: {shown(entries.problem)}")
        return
    click.echo(f"Boot loader: {entries.loader}")
    if entries.trial:
        print_item(f"an entry of ours boots {entries.trial} on trial")
    if entries.previous:
        print_item(f"an entry of ours boots the previous image, {entries.previous}")
    selected = entries.next_boot
    if selected and selected.state is OneShotState.OURS:
        print_item("the next boot is the trial's")
    elif selected and selected.state is OneShotState.OTHERS:
        print_item(f"the next boot is somebody else's: {selected.identifier}")
    elif selected and selected.state is OneShotState.UNREADABLE:
        print_item(f"what the next boot uses cannot be read: {selected.reason}")


def _print_backups(backups: Sequence[Backup]) -> None:
    total = sum(backup.size_bytes for backup in backups)
    click.echo(f"\nKept for going back, {total / 1e6:.1f} MB:")
    for backup in backups:
        stale = "" if backup.current else ", which others have changed since"
        damage = f"; NOT AS IT WAS KEPT: {backup.problem}" if backup.problem else ""
        print_item(
            f"{shown(backup.path)}: {backup.size_bytes / 1e6:.1f} MB, before transaction "
            f"{backup.transaction} in {shown(backup.of)}{stale}{damage}"
        )
    latest = max(backup.transaction for backup in backups)
    older = sum(b.size_bytes for b in backups if b.transaction != latest)
    if older:
        print_paragraph(
            f"{older / 1e6:.1f} MB of that are of changes before the latest: initadvisor rollback "
            "--drop --keep 1 removes those."
        )


def _print_campaign(campaign: Campaign | None) -> None:
    if campaign:
        click.echo(f"\nCampaign {campaign.number} of trials: {campaign.state}")
        print_item(f"{campaign.reason} (initadvisor trial status)")


def _name(transaction: Transaction) -> str:
    began = datetime.fromtimestamp(transaction.began_at_s, UTC).astimezone()
    return f"{transaction.number}, {began:%Y-%m-%d %H:%M}, {transaction.purpose}"


def _to_do(transaction: Transaction) -> str:
    if transaction.proof and transaction.proof.stage is ProofStage.REHEARSAL:
        return "waits for a boot with today's image from the trial's entry, a rehearsal"
    return _TO_DO[transaction.state.duty]
