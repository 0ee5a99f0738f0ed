"""``initadvisor status``: what is configured, used by this boot, pending and kept.

The options, the call, and the answer as JSON and as text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from initadvisor.bootloaders.entry import OneShotState
from initadvisor.cli.rendering.output import kernel_room_document, print_json
from initadvisor.cli.rendering.text import print_item, print_list, print_paragraph
from initadvisor.core.text import shown
from initadvisor.transaction.transaction import Duty, ProofStage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.campaign.campaign import Campaign
    from initadvisor.core.config import Policy
    from initadvisor.doctor.loop_stages import StageReached
    from initadvisor.doctor.status import Entries, RunningBoot, Status
    from initadvisor.transaction.backups import Backup
    from initadvisor.transaction.transaction import Transaction
    from initadvisor.trial.ownership import Unrecorded


@click.command()
@click.option("--check", is_flag=True, help="Read what is kept whole, and compare it.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(*, check: bool, as_json: bool) -> None:
    """Show what is configured, what this boot used, and what initadvisor did to this machine.

    Transactions that are not over, entries in the boot menu and images that are kept for going
    back. Without root, what the boot loader has is not shown.
    """
    from initadvisor.doctor.status import status as look
    from initadvisor.host import Host

    found = look(Host(), check=check)
    if as_json:
        print_json(_document(found))
    else:
        print_status(found)


def _document(found: Status) -> dict[str, Any]:
    configured = found.configured
    return {
        "generator": found.generator,
        "image": found.image and str(found.image),
        "configured": configured
        and {
            "setting": str(configured.setting),
            "source": configured.source,
            "warnings": list(configured.warnings),
        },
        "enabled": {
            "policy": found.enabled.policy,
            "units": found.enabled.units and dict(found.enabled.units),
        },
        "stages": [
            {"stage": reached.stage.value, "at_s": reached.at_s, "words": reached.words or None}
            for reached in found.stages
        ],
        "running": _running(found.running),
        "loader": _entries(found.entries),
        "kernel_room": found.kernels
        and {
            **kernel_room_document(found.kernels.room),
            "switched": dict(found.kernels.switched),
        },
        "pending": [transaction.number for transaction in found.pending],
        "transactions": [_transaction(transaction) for transaction in found.transactions],
        "backups": [
            {
                "path": backup.path,
                "of": backup.of,
                "transaction": backup.transaction,
                "size_bytes": backup.size_bytes,
                "current": backup.current,
                "compared": backup.compared,
                "problem": backup.problem or None,
            }
            for backup in found.backups
        ],
        "campaign": found.campaign
        and {
            "number": found.campaign.number,
            "state": found.campaign.state.value,
            "reason": found.campaign.reason,
        },
        "unrecorded": [
            {
                "name": left.name,
                "owner": left.owner,
                "entry": left.is_entry,
                "removed_by": left.removed_by or None,
            }
            for left in found.unrecorded
        ],
        "published_at_s": found.published_at_s,
        "notes": list(found.notes),
    }


def _running(running: RunningBoot) -> dict[str, Any]:
    return {
        "certainty": running.certainty and running.certainty.value,
        "image": running.image,
        "setting": running.setting and str(running.setting),
        "reason": running.reason,
    }


def _entries(entries: Entries) -> dict[str, Any]:
    selected, default = entries.next_boot, entries.default
    return {
        "name": entries.loader,
        "default": default
        and {
            "identifier": default.identifier,
            "title": default.title,
            "images": list(default.images),
            "source": default.source,
            "damaged": list(default.damaged),
        },
        "unclear": entries.unclear or None,
        "trial": entries.trial,
        "previous": entries.previous,
        "next_boot": selected
        and {"state": selected.state.value, "identifier": selected.identifier},
        "problem": entries.problem or None,
    }


def _transaction(transaction: Transaction) -> dict[str, Any]:
    setting, armed = transaction.setting, transaction.armed_boot
    return {
        "number": transaction.number,
        "state": transaction.state.value,
        "purpose": transaction.purpose,
        "began_at_s": transaction.began_at_s,
        "reason": transaction.reason or None,
        "before": setting and setting.before,
        "after": setting and setting.after,
        "waits_for": armed and armed.stage.value,
        "files": [change.path for change in transaction.files],
        "left": list(transaction.left),
    }


_LATEST = 5
_INDENT = "  "
_TO_DO = {
    Duty.WAIT: "waits for a boot",
    Duty.REPLACE: "was interrupted; initadvisor settle finishes it",
    Duty.RESTORE: "was interrupted; initadvisor settle undoes it",
}


def print_status(found: Status) -> None:
    """Print all of it to stdout."""
    if found.published_at_s is not None:
        _print_published(found.published_at_s)
    if found.configured:
        source = shown(found.configured.source)
        _print_line(f"Configured: {shown(str(found.configured.setting))} ({source})")
        for warning in found.configured.warnings:
            print_paragraph(shown(warning), first=_INDENT, others=_INDENT)
    if found.enabled.units is not None:
        _print_line(f"Enabled: {_enabled(found.enabled.units, found.enabled.policy)}")
    _print_running(found.running)
    _print_entries(found.entries)
    if found.kernels:
        _print_line(f"Room on {shown(found.kernels.words)}")
    reached = [stage for stage in found.stages if stage.words or stage.at_s is not None]
    print_list("By itself", [_reached(stage) for stage in reached])
    print_list("Not over", [f"{_name(t)}: {_to_do(t)}" for t in found.pending])
    _print_campaign(found.campaign)
    over = [t for t in found.transactions if t.state.duty is Duty.NOTHING]
    print_list("The latest changes", [_ended(t) for t in over[-_LATEST:]])
    if found.backups:
        _print_backups(found.backups)
    print_list("Not in this system's records", [_left(left) for left in found.unrecorded])
    print_list("Worth knowing", found.notes)


def _print_line(text: str) -> None:
    print_paragraph(text, others=_INDENT)


def _reached(found: StageReached) -> str:
    when = f"{_local(found.at_s):%Y-%m-%d %H:%M}" if found.at_s is not None else "not yet"
    return f"{found.stage}, {when}" + (f": {shown(found.words)}" if found.words else "")


def _enabled(units: Mapping[str, bool], policy: Policy | None) -> str:
    off = [unit for unit, on in units.items() if not on]
    if not off:
        return f"yes, policy {policy or 'not known'}"
    how = "no" if len(off) == len(units) else f"in part, without {', '.join(off)}"
    return f"{how} (sudo initadvisor enable)"


def _print_published(at_s: int) -> None:
    """Say that it is a copy; 0: from when is not known."""
    since = f"{_local(at_s):%Y-%m-%d %H:%M}" if at_s else "a time that is not known"
    print_paragraph(
        f"What was measured and changed is shown as root published it, on {since} "
        "for the last time; as root, it is shown as it is."
    )


def _local(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC).astimezone()


def _print_running(running: RunningBoot) -> None:
    if running.certainty is None:
        _print_line(f"This boot used: not known ({shown(running.reason)})")
        return
    setting = f"{shown(str(running.setting))}, " if running.setting else ""
    _print_line(f"This boot used: {setting}{running.certainty} ({shown(running.reason)})")


def _print_entries(entries: Entries) -> None:
    if entries.problem:
        _print_line(f"Boot loader: {shown(entries.problem)}")
        return
    click.echo(f"Boot loader: {entries.loader}")
    if entries.default:
        print_item(f"boots by default: {shown(entries.default.words)}")
        for damaged in entries.default.damaged:
            print_item(shown(damaged))
    elif entries.unclear:
        print_item(f"what it boots by default is not known: {shown(entries.unclear)}")
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


def _left(left: Unrecorded) -> str:
    what = f"boot entry {left.name}" if left.is_entry else left.name
    if left.removed_by:
        return f"{what}: this system's own, left without a record; {left.removed_by} removes it"
    owner = f"system {left.owner}" if left.owner else "an unknown system"
    return f"{what}: of {owner}, and left alone"


def _name(transaction: Transaction) -> str:
    began = _local(transaction.began_at_s)
    return f"{transaction.number}, {began:%Y-%m-%d %H:%M}, {transaction.purpose}"


def _ended(transaction: Transaction) -> str:
    why = f" ({shown(transaction.reason)})" if transaction.reason else ""
    return f"{_name(transaction)}: {transaction.state}{why}"


def _to_do(transaction: Transaction) -> str:
    if transaction.armed_boot and transaction.armed_boot.stage is ProofStage.REHEARSAL:
        return "waits for a boot with today's image from the trial's entry, a rehearsal"
    return _TO_DO[transaction.state.duty]
