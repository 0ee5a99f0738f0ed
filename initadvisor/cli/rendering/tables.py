"""Tables: drawn with rich on a terminal, plain columns elsewhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass

WIDTH = 80
"""What is to be read in a terminal, or in a mail, is no wider."""

_GAP = "  "


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
