"""Which files have to be changed, and how, so that variables get the wanted values.

The assignment that takes effect is the one that is edited. Where that stands in a file of a
package's, which the next upgrade replaces, a drop-in of the administrator's that is read later says
all of it. A variable that nobody has set yet gets a line of its own. Where it cannot be told what
will take effect, nothing is changed: the error names the line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.rewrite.files import (
    ConfigFile,
    DesiredAssignment,
    Edit,
    FileEdit,
    applied,
    edits_for,
)
from initadvisor.rewrite.survey import CommandPlace, Unit, VariableOrigin, find, refusal, survey
from initadvisor.rewrite.syntax import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.rewrite.files import DropIn, ReadingRules


WRITTEN_BY_APPLY = '# Written by "initadvisor apply"; "initadvisor rollback" takes it back.\n'
"""The first line of a file that was not there before."""


def rewrite(
    files: Sequence[ConfigFile],
    wanted_assignments: Sequence[DesiredAssignment],
    reading: ReadingRules,
) -> tuple[FileEdit, ...]:
    """Return what has to be changed for all wishes to come true; nothing if they have.

    What is set nowhere yet is set beside what belongs to it. The result is read again here: what
    does not say what is wished is never returned.

    Raises ``RefusedRewriteError``.
    """
    edits = _planned(files, wanted_assignments, reading)
    after = list(files)
    for edit in edits:
        if edit.before is None and reading.drop_in:
            after.insert(reading.drop_in.position, ConfigFile(path=edit.path, text=edit.after))
        else:
            after = [
                replace(file, text=edit.after) if file.path == edit.path else file for file in after
            ]
    units = survey(after, reading)
    failed = next(
        (
            wanted
            for wanted in wanted_assignments
            if not _is_granted(wanted, find(units, wanted.name))
        ),
        None,
    )
    if failed:
        msg = f"no place was found where {failed.line} surely takes effect"
        raise RefusedRewriteError(msg, path=files[0].path or None if files else None)
    return edits


def _planned(
    files: Sequence[ConfigFile],
    wanted_assignments: Sequence[DesiredAssignment],
    reading: ReadingRules,
) -> tuple[FileEdit, ...]:
    units = survey(files, reading)
    findings = [(wanted, find(units, wanted.name)) for wanted in wanted_assignments]
    for wanted, finding in findings:
        _refuse_unclear(wanted, finding)
    open_wishes = [
        (wanted, finding) for wanted, finding in findings if not _is_granted(wanted, finding)
    ]
    if not open_wishes:
        return ()
    if _needs_drop_in(findings, open_wishes, reading.drop_in):
        return _new_drop_in(findings, reading.drop_in)
    main = next((f.place for _, f in findings if f.place and f.place.file.editable), None)
    edits: dict[Unit, list[Edit]] = {}
    for wanted, finding in open_wishes:
        changes = _changes(units, wanted, finding, main, reading)
        if not changes:
            return _new_drop_in(findings, reading.drop_in)
        for unit, edit in changes:
            edits.setdefault(unit, []).append(edit)
    return tuple(change for unit, found in edits.items() for change in _per_file(unit, found))


def _refuse_unclear(wanted: DesiredAssignment, finding: VariableOrigin) -> None:
    """Refuse what cannot be told in a file that the administrator can change."""
    hint = f"set it by hand: {wanted.line}"
    for obstacle in finding.obstacles:
        if obstacle.place.file.editable and not (_is_unset(finding, wanted) and obstacle.vague):
            reason = f"it is not certain what {wanted.name} will be: {obstacle.reason}"
            raise obstacle.place.refusal(reason, hint)
    place, assignment = finding.place, finding.assignment
    if place is None or assignment is None or not place.file.editable:
        return
    value = assignment.value
    raw = place.unit.text[value.start : value.end]
    if finding.is_computed:
        reason = f"the value of {wanted.name} is computed"
        raise place.refusal(reason, hint)
    if isinstance(value, Array) and not value.literal and not raw.endswith(")\r"):
        reason = f"the value of {wanted.name} is no array after all"
        raise place.refusal(reason, hint)
    if place.command.continued or value.continued:
        reason = f"the assignment of {wanted.name} goes on in the next line"
        raise place.refusal(reason, hint)
    start, end = place.unit.line_around(place.command.start, place.command.end)
    if place.unit.file_at(start + 1) != place.unit.file_at(end):
        reason = "the file has no newline at its end and runs into the next one here"
        raise place.refusal(reason, "end the file with a newline")


def _is_unset(finding: VariableOrigin, wanted: DesiredAssignment) -> bool:
    return finding.place is None and (wanted.or_unset or not wanted.values)


def _is_granted(wanted: DesiredAssignment, finding: VariableOrigin) -> bool:
    """Tell whether the files already say what is wished, and nothing casts a doubt on it."""
    if _is_unset(finding, wanted):
        return not [obstacle for obstacle in finding.obstacles if not obstacle.vague]
    if finding.place is None or finding.obstacles:
        return False
    if wanted.array:
        return finding.words == wanted.values
    return finding.text == "".join(wanted.values)


def _needs_drop_in(
    findings: Sequence[tuple[DesiredAssignment, VariableOrigin]],
    open_wishes: Sequence[tuple[DesiredAssignment, VariableOrigin]],
    drop_in: DropIn | None,
) -> bool:
    """Tell whether a file that is not to be edited decides about an open wish.

    Raises ``RefusedRewriteError`` where no drop-in is read after it.
    """
    places = [obstacle.place for _, finding in open_wishes for obstacle in finding.obstacles]
    places += [finding.place for _, finding in open_wishes if finding.place]
    beyond = [place for place in places if not place.file.editable]
    last = max(beyond, key=lambda place: place.position, default=None)
    if last and (drop_in is None or last.position >= drop_in.position):
        names = " and ".join(wanted.name for wanted, _ in findings)
        reason = f"this decides about {names}, and no file that is yours is read after it"
        raise last.refusal(reason, "it is a package's file, or a link: change it where it is made")
    return last is not None


def _new_drop_in(
    findings: Sequence[tuple[DesiredAssignment, VariableOrigin]], drop_in: DropIn | None
) -> tuple[FileEdit, ...]:
    """Return a file that states everything, also that a variable which is set is to be empty."""
    if drop_in is None:
        msg = "no file sets the compression, and there is none to set it in"
        raise RefusedRewriteError(msg)
    lines = [
        f"{wanted.line}\n"
        for wanted, finding in findings
        if not _is_unset(finding, wanted) or any(not found.vague for found in finding.obstacles)
    ]
    after = WRITTEN_BY_APPLY + "".join(lines)
    return (FileEdit(path=drop_in.path, before=None, after=after),)


def _changes(
    units: Sequence[Unit],
    wanted: DesiredAssignment,
    finding: VariableOrigin,
    main: CommandPlace | None,
    reading: ReadingRules,
) -> list[tuple[Unit, Edit]]:
    """Return the edits of one wish; none if no file that exists is the place for it."""
    if finding.place and finding.assignment:
        as_string = finding.alone and len(finding.since) == 1
        unit = finding.place.unit
        edits = edits_for(unit.text, finding.assignment, wanted, as_string=as_string)
        return [(unit, edit) for edit in edits]
    return insertion(units, wanted, beside=main, home=reading.home)


def _per_file(unit: Unit, edits: Sequence[Edit]) -> list[FileEdit]:
    """Return the unit's edits as those of its files, whose starts they are counted from there."""
    changes = []
    for index, (file, start) in enumerate(zip(unit.files, unit.starts, strict=True)):
        own = [
            replace(edit, start=edit.start - start, end=edit.end - start)
            for edit in edits
            if unit.file_at(edit.end) == index
        ]
        if own:
            after = applied(file.text, own)
            changes.append(FileEdit(path=file.path, before=file.text, after=after))
    return changes


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
