"""``initadvisor whatif``: what would be best with another disk, processor or overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName, number_or_range, tables_beginning_with
from initadvisor.cli.rendering.output import print_json, rounded
from initadvisor.core.config import Objective
from initadvisor.core.errors import UsageError
from initadvisor.decide.whatif import UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.advise.truth_tables import TruthTable
    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.cost import BestRange
    from initadvisor.decide.whatif_values import (
        Column,
        GivenValue,
        SettingFigures,
        WhatIf,
        WhatIfLine,
        WinnersMap,
    )


def _only_one(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> str | None:
    """Return the table that is named; which of two is meant, nobody can tell."""
    distinct = tuple(dict.fromkeys(names))
    if len(distinct) > 1:
        msg = f"one table is compared at a time, not {len(distinct)}"
        raise click.BadParameter(msg, ctx=ctx, param=param)
    return next(iter(distinct), None)


@click.command()
@click.option(
    "--read-speed",
    callback=number_or_range(least=0.01, most=1e6),
    metavar="MB/S",
    help="How fast the boot loader reads; also a range, 20..2000.",
)
@click.option(
    "--cpu-scale",
    callback=number_or_range(least=0.001, most=1000),
    metavar="X",
    help="How many times as long the processor takes (2: half as fast); also a range.",
)
@click.option(
    "--overlap",
    callback=number_or_range(least=0, most=1e6),
    metavar="MS",
    help="For how long the kernel is busy before it needs the initramfs; also a range.",
)
@click.option(
    "--table",
    callback=_only_one,
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=tables_beginning_with,
    help="Compare the settings of a table: a built-in one, or a TOML or CSV file.",
)
@click.option(
    "--image",
    type=FileName(),
    help="Compare candidates of this image, of any machine, instead of this machine's own.",
)
@click.option(
    "--objective",
    type=click.Choice([str(objective) for objective in Objective]),
    help="What is to be small: the time of a boot, the image, or boot and build together.",
)
@click.option("--list", "as_list", is_flag=True, help="List the built-in tables.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def whatif(
    *,
    read_speed: GivenValue | None,
    cpu_scale: GivenValue | None,
    overlap: GivenValue | None,
    table: str | None,
    image: Path | None,
    objective: str | None,
    as_list: bool,
    as_json: bool,
) -> None:
    """Say which setting would be best with another disk, processor or overlap.

    Without options: here, on an NVMe disk, a SATA SSD and an SD card. A range shows from where to
    where each setting is the best, two ranges a map. The images are this machine's, unless --table
    names other sizes and times.
    """
    if as_list:
        others = (read_speed, cpu_scale, overlap, table, image, objective)
        if any(other is not None for other in others):
            msg = "--list goes with --json only"
            raise UsageError(msg)
        _print_tables(as_json=as_json)
        return
    if table is not None and image is not None:
        msg = "--table and --image exclude each other"
        raise UsageError(msg)
    from initadvisor.advise.whatif import Question, what_if
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host

    question = Question(
        table=table,
        image=image,
        read_speed_mb_s=read_speed,
        cpu_scale=cpu_scale,
        overlap_ms=overlap,
        objective=Objective(objective) if objective else None,
    )
    with Progress() as progress:
        answer = what_if(Host(), question, observer=progress)
    if as_json:
        print_json(as_document(answer))
    else:
        from initadvisor.cli.whatif_text import print_what_if

        print_what_if(answer)


def _print_tables(*, as_json: bool) -> None:
    from initadvisor.advise.truth_tables import truth_table, truth_table_names
    from initadvisor.cli.whatif_text import print_tables

    tables: list[TruthTable] = [truth_table(name) for name in truth_table_names()]
    if as_json:
        print_json(tables_document(tables))
    else:
        print_tables(tables)


def as_document(answer: WhatIf) -> dict[str, Any]:
    """Return the answer as plain values for ``json.dumps``."""
    return {
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
        "overlap_ms": conditions.shadow_ms,
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
                "as_good": [[str(setting) for setting in found] for found in row.as_good],
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
