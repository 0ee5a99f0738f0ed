"""The answer of ``whatif`` for a person: costs side by side, and where the best setting changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.rendering.text import WIDTH, Table, print_list, print_paragraph, print_table
from initadvisor.core.config import Objective
from initadvisor.core.text import shown
from initadvisor.decide.cost import Factor
from initadvisor.decide.whatif import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.advise.truth_tables import TruthTable
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.whatif_values import (
        Column,
        SettingFigures,
        SettingRank,
        Span,
        WhatIf,
        WhatIfLine,
        WinnersMap,
    )


_FACTORS = {
    Factor.LOADER: "read speed",
    Factor.CPU: "time the processor takes",
    Factor.SHADOW: "overlap",
}
_MOST_WITH_INTERVALS = 4
"""With more columns a table with an interval in each is too much to read."""


def print_what_if(answer: WhatIf) -> None:
    """Print the whole answer to stdout."""
    print_paragraph(f"{shown(answer.name)}: {shown(answer.source)}")
    click.echo()
    if answer.columns:
        _print_columns(answer, answer.columns, {})
    for line in answer.lines:
        _print_line(answer, line)
    for one in answer.maps:
        _print_map(one)
    print_paragraph(_legend(answer))
    print_list("Left out", [f"{skipped.setting}: {skipped.reason}" for skipped in answer.left_out])
    print_list("Given or assumed", answer.assumptions)


def print_tables(tables: Sequence[TruthTable]) -> None:
    """List tables of candidates, each with who measured it."""
    for number, table in enumerate(tables):
        if number:
            click.echo()
        sizes = [row.size_mb for row in table.rows]
        times = [row.unpack_ms for row in table.rows]
        click.echo(
            f"{table.name}: {len(table.rows)} settings, {min(sizes):.1f} to {max(sizes):.1f} MB, "
            f"unpacked in {min(times):.0f} to {max(times):.0f} ms"
        )
        print_paragraph(table.source, first="    ", others="    ")


def _print_line(answer: WhatIf, line: WhatIfLine) -> None:
    unit = UNITS[line.factor]
    place = f"{line.medium}, " if line.medium else ""
    span = f"{_rounded(line.span.low)} to {_rounded(line.span.high)} {unit}"
    click.echo(f"{place}{_FACTORS[line.factor]} from {span}:\n")
    print_table(
        Table(
            titles=(f"from {unit}", f"to {unit}", "best"),
            rows=tuple((_rounded(s.low), _rounded(s.high), str(s.setting)) for s in line.ranges),
            text=2,
        )
    )
    throughout = [
        str(setting) for setting, parts in line.suitable.items() if _covers(parts, line.span)
    ]
    if throughout:
        print_paragraph(f"As good as the best from end to end: {', '.join(throughout)}.")
    else:
        print_paragraph("No setting is as good as the best from end to end.")
    click.echo()
    suitable = {
        setting: ", ".join(f"{_rounded(part.low)}..{_rounded(part.high)}" for part in parts)
        for setting, parts in line.suitable.items()
    }
    _print_columns(answer, line.columns, suitable)


def _covers(parts: Sequence[Span], span: Span) -> bool:
    return len(parts) == 1 and parts[0].low <= span.low and parts[0].high >= span.high


def _print_columns(answer: WhatIf, columns: Sequence[Column], suitable: dict[Setting, str]) -> None:
    """Print what every setting costs, as much of it as 80 columns hold; the JSON has all."""
    fewer = (*columns[:-1:2], columns[-1]) if suitable else columns  # points of a range, not places
    intervals = len(columns) <= _MOST_WITH_INTERVALS
    tables = [
        _columns_table(answer, columns, suitable, of_unpacking=True, of_costs=intervals),
        _columns_table(answer, columns, suitable, of_unpacking=False, of_costs=intervals),
        _columns_table(answer, columns, suitable, of_unpacking=False, of_costs=False),
        _columns_table(answer, fewer, suitable, of_unpacking=False, of_costs=False),
    ]
    print_table(next((table for table in tables if table.width <= WIDTH), tables[-1]))


def _columns_table(
    answer: WhatIf,
    columns: Sequence[Column],
    suitable: dict[Setting, str],
    *,
    of_unpacking: bool,
    of_costs: bool,
) -> Table:
    """Return the table, what is best in the first column first; what has intervals is asked for."""

    def ranked_by(number: int) -> float:
        if answer.rule.by_size:
            return answer.choices[number].size_mb.mean
        return columns[0].ranks[number].cost_ms.mean

    order = sorted(range(len(answer.choices)), key=ranked_by)
    return Table(
        titles=(
            *("setting", "size MB", "unpack ms"),
            *(["build ms"] if answer.objective is Objective.BALANCED else []),
            *(column.title for column in columns),
            *(["as good from..to"] if suitable else []),
        ),
        rows=tuple(
            (
                *_figures(answer.choices[number], answer.objective, of_unpacking),
                *(_cell(column.ranks[number], of_costs) for column in columns),
                *([suitable[answer.choices[number].setting]] if suitable else []),
            )
            for number in order
        ),
        text=0,
    )


def _figures(choice: SettingFigures, objective: Objective, interval: bool) -> Iterator[str]:
    yield str(choice.setting)
    mark = "" if choice.built else "~"
    yield f"{mark}{choice.size_mb.mean:.1f}"
    yield f"{choice.unpack_ms.mean:.0f}" + (_interval(choice.unpack_ms) if interval else "")
    if objective is Objective.BALANCED:
        yield f"{choice.extra_ms:.0f}"


def _cell(comparison: SettingRank, intervals: bool) -> str:
    mark = "*" if comparison.best else "=" if comparison.as_good else " "
    cost = comparison.cost_ms
    return f"{cost.mean:.0f}{mark}" + (_interval(cost) if intervals else "")


def _interval(estimate: Estimate) -> str:
    if estimate.low == estimate.high:
        return ""
    return f" {estimate.low:.0f}..{estimate.high:.0f}"


def _print_map(one: WinnersMap) -> None:
    place = f"{one.medium}: the" if one.medium else "The"
    click.echo(
        f"{place} best setting, {_FACTORS[one.across]} across ({UNITS[one.across]}), "
        f"{_FACTORS[one.down]} down ({UNITS[one.down]}):\n"
    )
    print_table(
        Table(
            titles=("", *(_rounded(value) for value in one.values)),
            rows=tuple(
                (_rounded(row.value), *(_winner(settings) for settings in row.as_good))
                for row in one.rows
            ),
        )
    )


def _winner(as_good: Sequence[Setting]) -> str:
    return f"{as_good[0]}{'=' if len(as_good) > 1 else ' '}"


def _legend(answer: WhatIf) -> str:
    rule = answer.rule
    if answer.maps:
        todays = " Today's is named where it is one of them." if rule.today else ""
        return f"= others are as good (see initadvisor-whatif(1)).{todays}"
    if rule.by_size:
        return (
            "* the smallest; = as small: larger by at most "
            f"{100 * rule.tolerance_fraction:g} % of it. Times decide nothing here."
        )
    builds = ", and the build's share" if answer.objective is Objective.BALANCED else ""
    base = f"today's {rule.today}" if rule.today else "the best"
    return (
        f"Costs are ms per boot: reading, then the longer of overlap and unpacking{builds}. * the "
        f"best; = as good: dearer by at most {rule.tolerance_ms:g} ms or "
        f"{100 * rule.tolerance_fraction:g} % of what {base} takes to read "
        "and unpack. "
        "Intervals are each setting's own; differences are known better."
    )


def _rounded(value: float) -> str:
    """Return a number with three significant digits, in full."""
    return f"{float(f'{value:.3g}'):.10g}"
