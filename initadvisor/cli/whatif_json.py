"""The JSON of ``whatif``; its fields are part of the interface (schema 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from initadvisor.cli.rendering.output import SCHEMA, rounded
from initadvisor.decide.whatif_views import UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.cost import BestRange
    from initadvisor.decide.truth_table import TruthTable
    from initadvisor.decide.whatif_values import (
        Column,
        SettingFigures,
        WhatIf,
        WhatIfLine,
        WinnersMap,
    )


def as_document(answer: WhatIf) -> dict[str, Any]:
    """Return the answer as plain values for ``json.dumps``."""
    return {
        "schema": SCHEMA,
        "table": answer.name,
        "source": answer.source,
        "objective": answer.objective,
        "tolerance": {
            "ms": answer.rule.tolerance_ms,
            "fraction": answer.rule.tolerance_fraction,
        },
        "settings": [_choice(choice) for choice in answer.choices],
        "columns": [_column(column) for column in answer.columns],
        "ranges": [_line(line) for line in answer.lines],
        "maps": [_map(one) for one in answer.maps],
        "left_out": [
            {"setting": str(skipped.setting), "reason": skipped.reason}
            for skipped in answer.left_out
        ],
        "assumptions": list(answer.assumptions),
    }


def tables_document(tables: Sequence[TruthTable]) -> dict[str, Any]:
    """Return the built-in tables, all that is in them."""
    return {
        "schema": SCHEMA,
        "tables": [
            {
                "name": table.name,
                "source": table.source,
                "populate_ms": table.populate_ms,
                "settings": [
                    {
                        "setting": str(row.setting),
                        "size_mb": round(row.size_mb, 6),
                        "unpack_ms": row.unpack_ms,
                        "log_sd": row.log_sd,
                        "build_cpu_s": row.build_cpu_s,
                    }
                    for row in table.rows
                ],
            }
            for table in tables
        ],
    }


def _choice(choice: SettingFigures) -> dict[str, Any]:
    return {
        "setting": str(choice.setting),
        "codec": choice.setting.codec,
        "size_mb": _estimate(choice.size_mb),
        "unpack_ms": _estimate(choice.unpack_ms),
        "build_ms_per_boot": rounded(choice.extra_ms),
    }


def _column(column: Column) -> dict[str, Any]:
    conditions = column.conditions
    return {
        "title": column.title,
        "read_mb_s": conditions.read_mb_s,
        "cpu_scale": conditions.cpu_scale,
        "shadow_ms": conditions.shadow_ms,
        "settings": [
            {
                "setting": str(comparison.setting),
                "cost_ms": _estimate(comparison.cost_ms),
                "best": comparison.best,
                "as_good": comparison.as_good,
            }
            for comparison in column.ranks
        ],
    }


def _line(line: WhatIfLine) -> dict[str, Any]:
    return {
        "medium": line.medium or None,
        "varies": line.factor,
        "unit": UNITS[line.factor],
        "low": line.span.low + 0.0,
        "high": line.span.high + 0.0,
        "best": _ranges(line.ranges),
        "as_good": {
            str(setting): [{"low": part.low + 0.0, "high": part.high + 0.0} for part in parts]
            for setting, parts in line.suitable.items()
        },
        "columns": [_column(column) for column in line.columns],
    }


def _map(one: WinnersMap) -> dict[str, Any]:
    return {
        "medium": one.medium or None,
        "across": {
            "varies": one.across,
            "unit": UNITS[one.across],
            "values": list(one.values),
        },
        "down": {"varies": one.down, "unit": UNITS[one.down]},
        "rows": [
            {
                "value": row.value,
                "best": [str(setting) for setting in row.best],
                "ranges": _ranges(row.ranges),
            }
            for row in one.rows
        ],
    }


def _ranges(stretches: Sequence[BestRange]) -> list[dict[str, Any]]:
    return [
        {"low": s.low + 0.0, "high": s.high + 0.0, "setting": str(s.setting)} for s in stretches
    ]


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """Return a figure; where nothing is known of how far off it may be, its bounds are null."""
    known = estimate.low < estimate.high
    return {
        "mean": rounded(estimate.mean),
        "low": rounded(estimate.low) if known else None,
        "high": rounded(estimate.high) if known else None,
        "source": estimate.source,
    }
