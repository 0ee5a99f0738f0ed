"""The plan of ``apply`` for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from initadvisor.model.apply import ApplyPlan, PlannedImage

_SCHEMA = 1


def print_plan(plan: ApplyPlan) -> None:
    """Print the whole plan as one object."""
    saving = plan.saving_ms
    document = {
        "schema": _SCHEMA,
        "generator": plan.generator,
        "setting": str(plan.setting),
        "why": plan.why,
        "today": {"setting": str(plan.today.setting), "source": plan.today.source},
        "edits": [
            {"path": edit.path, "new": edit.before is None, "diff": edit.diff}
            for edit in plan.edits
        ],
        "images": [_image(planned) for planned in plan.images],
        "room": [
            {
                "mount_point": room.mount_point,
                "needed_bytes": room.needed_bytes,
                "free_bytes": room.free_bytes,
                "purpose": room.purpose,
                "enough": room.enough,
            }
            for room in plan.room
        ],
        "saving_ms": saving and {"mean": saving.mean, "low": saving.low, "high": saving.high},
        "obstacles": [
            {"step": one.step.value, "reason": one.reason, "remedy": one.remedy}
            for one in plan.obstacles
        ],
        "warnings": list(plan.warnings),
    }
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def _image(planned: PlannedImage) -> dict[str, Any]:
    return {
        "path": str(planned.image.path),
        "kernel": planned.image.kernel_release,
        "uki": planned.image.uki,
        "fallback": planned.image.fallback,
        "rebuilt": planned.rebuilt,
        "setting": str(planned.after.setting),
        "size_bytes": planned.size_bytes,
        "expected_bytes": planned.expected_bytes,
    }
