"""The JSON of ``measure``; its fields are part of the interface (schema 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from initadvisor.workflow.measure import Measured


def head_document(measured: Measured, *, dry_run: bool) -> dict[str, Any]:
    """Return what comes before the boots as plain values for ``json.dumps``."""
    return {
        "schema": 1,
        "store": str(measured.path),
        "recorded": not dry_run,
        "new": [record.boot_id for record in measured.records if record.boot_id in measured.new],
        "known": measured.known,
        "warnings": list(measured.warnings),
    }
