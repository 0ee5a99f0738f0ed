"""The status for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from initadvisor.model.status import Entries, RunningBoot, Status
    from initadvisor.model.transaction import Transaction

_SCHEMA = 1


def print_status(found: Status) -> None:
    """Print all of it as one object."""
    configured = found.configured
    document = {
        "schema": _SCHEMA,
        "generator": found.generator,
        "image": found.image and str(found.image),
        "configured": configured
        and {
            "setting": str(configured.setting),
            "source": configured.source,
            "warnings": list(configured.warnings),
        },
        "running": _running(found.running),
        "loader": _entries(found.entries),
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
        "notes": list(found.notes),
    }
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def _running(running: RunningBoot) -> dict[str, Any]:
    return {
        "certainty": running.certainty and running.certainty.value,
        "image": running.image,
        "setting": running.setting and str(running.setting),
        "words": running.words,
    }


def _entries(entries: Entries) -> dict[str, Any]:
    selected = entries.next_boot
    return {
        "name": entries.loader,
        "trial": entries.trial,
        "previous": entries.previous,
        "next_boot": selected
        and {"state": selected.state.value, "identifier": selected.identifier},
        "problem": entries.problem or None,
    }


def _transaction(transaction: Transaction) -> dict[str, Any]:
    setting, proof = transaction.setting, transaction.proof
    return {
        "number": transaction.number,
        "state": transaction.state.value,
        "purpose": transaction.purpose,
        "began_at_s": transaction.began_at_s,
        "reason": transaction.reason or None,
        "before": setting and setting.before,
        "after": setting and setting.after,
        "waits_for": proof and proof.stage.value,
        "files": [change.path for change in transaction.files],
        "left": list(transaction.left),
    }
