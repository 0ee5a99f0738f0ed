"""Text for a person in 80 columns: paragraphs, tables, figures in sentences."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.repeats import Middle


WIDTH = 80
"""What is to be read in a terminal, or in a mail, is no wider."""

_GAP = "  "


def print_paragraph(text: str, *, first: str = "", others: str = "") -> None:
    """Print text that is known to be fit for a terminal."""
    click.echo(
        textwrap.fill(
            text,
            width=WIDTH,
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def print_item(text: str) -> None:
    """Print one line of a list; whatever it holds, it cannot command the terminal."""
    print_paragraph(shown(text), first="  - ", others="    ")


def print_list(title: str, items: Collection[str]) -> None:
    """Print a list below its title and an empty line; nothing where there are no items."""
    if items:
        click.echo(f"\n{title}:")
    for item in items:
        print_item(item)


def moment(at: datetime) -> str:
    """Return a moment in the local time."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Titles and rows of text; numbers stand on the right, the column ``text`` on the left."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int | None = None

    @property
    def widths(self) -> tuple[int, ...]:
        """How wide each column is, in characters."""
        columns = zip(self.titles, *self.rows, strict=True)
        return tuple(max(map(len, column)) for column in columns)

    @property
    def width(self) -> int:
        """How wide it is where it is not folded."""
        return sum(self.widths) + len(_GAP) * (len(self.titles) - 1)


def print_table(table: Table) -> None:
    """Print a table to stdout, and an empty line after it.

    On a terminal long text is folded. Elsewhere nothing is, and rich, which takes as long to load
    as a small image to read, is not needed.
    """
    if sys.stdout.isatty():
        _draw(table)
        return
    for row in (table.titles, *table.rows):
        cells = (
            cell.ljust(width) if number == table.text else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, table.widths, strict=True))
        )
        sys.stdout.write(_GAP.join(cells).rstrip() + "\n")
    sys.stdout.write("\n")


def _draw(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn

    drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(table.titles):
        drawn.add_column(
            title, justify="left" if number == table.text else "right", overflow="fold"
        )
    for row in table.rows:
        drawn.add_row(*row)
    Console(highlight=False, markup=False, emoji=False).print(drawn)


def figure(estimate: Estimate) -> str:
    """Return the middle of an estimate and its interval, where there is one."""
    middle = short(estimate.middle)
    if middle == short(estimate.low) == short(estimate.high):
        return middle
    return f"{middle} ({interval(estimate)})"


def interval(estimate: Estimate) -> str:
    """Return the bounds of an estimate."""
    return f"{short(estimate.low)}..{short(estimate.high)}"


def more_or_less(estimate: Estimate) -> str:
    """Return a difference in ms as so much more or so much less."""
    if estimate.middle >= 0:
        return f"{figure(estimate)} ms more"
    return f"{figure(turned_round(estimate))} ms less"


def turned_round(estimate: Estimate) -> Estimate:
    """Return the difference of the same two figures the other way round."""
    return replace(
        estimate,
        mean=-estimate.mean,
        low=-estimate.high,
        high=-estimate.low,
        median=None if estimate.median is None else -estimate.median,
    )


def short(value: float) -> str:
    """Return a number without decimals, thousands of them as such."""
    # "-0" is no number to show.
    return f"{value / 1000:.0f}k" if abs(value) >= 10_000 else f"{round(value)}"


def rounded(value: float) -> str:
    """Return a number with two significant digits, in full."""
    return f"{float(f'{value:.2g}'):g}"


def percent(probability: float) -> str:
    """Return a probability in percent that never claims certainty."""
    if probability > 0.99:
        return "over 99 %"
    return "under 1 %" if probability < 0.01 else f"{probability * 100:.0f} %"


def boots(count: int) -> str:
    """Return so many boots."""
    return "1 boot" if count == 1 else f"{count} boots"


def listed(words: Sequence[object]) -> str:
    """Return words as a list in a sentence."""
    *others, last = (str(word) for word in words)
    return f"{', '.join(others)} and {last}" if others else last


def measured_interval(middle: Middle) -> str:
    """Return where another such median would be, nothing where that was not measured."""
    return "" if middle.assumed else f"{middle.low:.1f}..{middle.high:.1f}"


def explain_intervals(middles: Collection[Middle]) -> None:
    """Print to stdout what the intervals of tables rest on, and why some medians have none."""
    from initadvisor.decide.repeats import BETWEEN_RUNS_LOG_SD

    if any(not middle.assumed for middle in middles):
        print_item(
            "95 %: where the median of as many others would be, by how far all settings of the "
            f"table scatter, and {100 * BETWEEN_RUNS_LOG_SD:.0f} % (assumed) from one occasion to "
            "another"
        )
    if any(middle.assumed for middle in middles):
        print_item("no interval: too few boots of these settings to tell how far they scatter")
