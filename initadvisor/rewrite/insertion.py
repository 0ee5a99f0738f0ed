"""Where a line is put that sets a variable nobody has set yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.rewrite.edits import Edit
from initadvisor.rewrite.survey import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.rewrite.edits import DesiredAssignment
    from initadvisor.rewrite.survey import CommandPlace, Unit


def insertion(
    units: Sequence[Unit],
    wanted: DesiredAssignment,
    *,
    beside: CommandPlace | None,
    home: int | None,
) -> list[tuple[Unit, Edit]]:
    """Return the line as an edit: after the commented default, else below ``beside``, else last.

    The commented default is looked for in the file of ``beside``, which has the variable that
    belongs to this one, or in the file ``home``. Nothing is returned where there is neither.

    Raises ``RefusedRewriteError`` where the end of the file is not the end of a line.
    """
    position = beside.position if beside else home
    unit = next((u for u in units if position in range(u.first, u.first + len(u.files))), None)
    if unit is None or position is None:
        return []
    start, end = _bounds(unit, position - unit.first)
    at = _after_default(unit, wanted.name, start, end)
    if at is None and beside:
        at = _below(unit, beside)
    if at is None or at > end:
        at = end
    if at > start and unit.text[at - 1] != "\n" and at < len(unit.text):
        reason = "the file has no newline at its end and runs into the next one"
        raise refusal(unit, at - 1, reason, "end the file with a newline")
    return [(unit, Edit(at, at, f"{wanted.line}\n", line=True))]


def _bounds(unit: Unit, index: int) -> tuple[int, int]:
    ends = (*unit.starts[1:], len(unit.text))
    return unit.starts[index], ends[index]


def _after_default(unit: Unit, name: str, start: int, end: int) -> int | None:
    """Return where the line after the last comment like ``#NAME=value`` begins."""
    pattern = re.compile(rf"#+[ \t]*{name}=")
    found = [
        comment.end + 1
        for comment in unit.script.comments
        if start <= comment.start < end and pattern.match(unit.text, comment.start)
    ]
    return found[-1] if found else None


def _below(unit: Unit, place: CommandPlace) -> int | None:
    """Return where the line after a command begins, None if it shares its own with others."""
    line_start, line_end = unit.line_around(place.command.start, place.command.end)
    before = unit.text[line_start : place.command.start].strip(" \t")
    behind = unit.text[place.command.end : line_end].lstrip(" \t")
    return line_end + 1 if not before and behind[:1] in {"", "#"} else None
