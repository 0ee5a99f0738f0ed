"""What a generator's files, read one after the other, say about one variable.

That is: which commands set it for certain, and which may do so in a way nobody can foresee.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.rewrite.parser import parse
from initadvisor.rewrite.syntax import Array, Command, Script, UnreadableError, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.rewrite.files import ConfigFile, ReadingRules
    from initadvisor.rewrite.syntax import Assignment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unit:
    """What is read at once: a file, or all files as one text.

    ``starts[i]`` is where file ``first + i`` starts in ``text``. No two units are the same.
    """

    text: str
    script: Script
    files: tuple[ConfigFile, ...]
    first: int
    starts: tuple[int, ...]

    def file_at(self, offset: int) -> int:
        """Return which of the unit's files an offset lies in (the end of one belongs to it)."""
        return max(i for i, start in enumerate(self.starts) if start < offset or i == 0)

    def line_around(self, start: int, end: int) -> tuple[int, int]:
        """Return where the lines begin and end that something stands in."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", end)
        return first, len(self.text) if last < 0 else last


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlace:
    """A command of a unit."""

    unit: Unit
    command: Command

    @property
    def file(self) -> ConfigFile:
        """The file that the command starts in."""
        return self.unit.files[self.unit.file_at(self.command.start + 1)]

    @property
    def position(self) -> int:
        """The number of files read before this one."""
        return self.unit.first + self.unit.file_at(self.command.start + 1)

    def refusal(self, reason: str, hint: str) -> RefusedRewriteError:
        """Return the error that names the line."""
        return refusal(self.unit, self.command.start, reason, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertainCommand:
    """A command because of which it is not certain what the variable will be.

    ``vague``: it does not name the variable, but may set any.
    """

    place: CommandPlace
    reason: str
    vague: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableOrigin:
    """Where a variable gets its value.

    ``place`` and ``assignment`` are the last that surely happen, ``since`` all assignments that the
    value is made of; ``alone`` tells that nothing before them can have set it.
    """

    place: CommandPlace | None = None
    assignment: Assignment | None = None
    since: tuple[Assignment, ...] = ()
    alone: bool = True
    obstacles: tuple[UncertainCommand, ...] = ()

    @property
    def words(self) -> tuple[str, ...] | None:
        """The elements of an array, or the words of a string; None if they cannot be told."""
        values: list[str] = []
        for assignment in self.since:
            found = assignment.value
            if isinstance(found, Array):
                if found.values is None:
                    return None
                values += found.values
            elif len(self.since) == 1 and self.alone and _is_one_line(found):
                values += (found.value or "").split()
            else:
                return None
        return tuple(values)

    @property
    def text(self) -> str | None:
        """The string; None if it cannot be told."""
        values = [a.value.value if isinstance(a.value, Word) else None for a in self.since]
        return None if None in values else "".join(value or "" for value in values)

    @property
    def is_computed(self) -> bool:
        """Whether the shell computes the value or a part of it."""
        return any(
            (a.value.value if isinstance(a.value, Word) else _all(a.value)) is None
            for a in self.since
        )


def survey(files: Sequence[ConfigFile], reading: ReadingRules) -> tuple[Unit, ...]:
    """Read the files as the generator does.

    Raises ``RefusedRewriteError`` for a file of the administrator's that is not understood; in
    another it counts as one command that may set anything.
    """
    if not reading.merged:
        return tuple(_unit((file,), index, reading) for index, file in enumerate(files))
    return (_unit(tuple(files), 0, reading),) if files else ()


def refusal(unit: Unit, offset: int, reason: str, hint: str) -> RefusedRewriteError:
    """Return the error that names the line of an offset."""
    index = unit.file_at(offset + 1)
    file, start = unit.files[index], unit.starts[index]
    within = min(offset - start, len(file.text))
    number = file.text.count("\n", 0, within) + 1
    line = file.text.split("\n")[number - 1].removesuffix("\r")
    return RefusedRewriteError(
        reason, path=file.path or None, line_number=number, line=line, hint=hint
    )


def find(units: Sequence[Unit], name: str) -> VariableOrigin:
    """Return where a variable gets its value, and what stands in the way of knowing it."""
    places = [CommandPlace(unit=unit, command=c) for unit in units for c in unit.script.commands]
    sure = [(i, a) for i, place in enumerate(places) if (a := assigned(place.command, name))]
    last = sure[-1][0] if sure else -1
    base = max((i for i, assignment in sure if not assignment.append), default=-1)
    before = [assignment for i, assignment in sure if i < base]
    obstacles = [
        obstacle
        for i, place in enumerate(places)
        if (obstacle := _obstacle(place, name))
        and (i > base or always_matters(place.command) or ends_shell(place.command))
    ]
    obstacles += [
        UncertainCommand(place=place, reason="the reading of the file may end here", vague=True)
        for place in (places[:last] if sure else places)
        if ends_reading(place.command) and not (sure and place.unit is not places[last].unit)
    ]
    if not sure:
        return VariableOrigin(obstacles=tuple(obstacles))
    suspects = [place for place in places[: max(base, 0)] if _obstacle(place, name)]
    return VariableOrigin(
        place=places[last],
        assignment=sure[-1][1],
        since=tuple(assignment for i, assignment in sure if i >= base),
        alone=not before and not suspects,
        obstacles=tuple(obstacles),
    )


def _obstacle(place: CommandPlace, name: str) -> UncertainCommand | None:
    if assigned(place.command, name):
        return None
    if reason := may_change(place.command, place.unit.text, name):
        return UncertainCommand(place=place, reason=reason)
    if reason := is_dynamic(place.command):
        return UncertainCommand(place=place, reason=reason, vague=True)
    if ends_shell(place.command):
        return UncertainCommand(place=place, reason="the shell may end here", vague=True)
    return None


def _unit(files: tuple[ConfigFile, ...], first: int, reading: ReadingRules) -> Unit:
    starts = [0]
    for file in files[:-1]:
        starts.append(starts[-1] + len(file.text))
    text = "".join(file.text for file in files)
    script = Script(commands=())
    unit = Unit(text=text, script=script, files=files, first=first, starts=tuple(starts))
    try:
        script = parse(text, reading.shell)
    except UnreadableError as err:
        if any(file.editable for file in files):
            reason = f"this is not understood: {err.reason}"
            raise refusal(unit, err.offset, reason, "set the compression by hand") from err
        whole = Word(start=0, end=len(text), value=None)
        script = Script(commands=(Command(start=0, end=len(text), words=(whole,)),))
    return Unit(text=text, script=script, files=files, first=first, starts=tuple(starts))


def _is_one_line(word: Word) -> bool:
    return word.value is not None and word.value.isprintable()


def _all(array: Array) -> tuple[str, ...] | None:
    """Return the elements, also of what ends in a carriage return and is no array because of it."""
    if any(word.value is None for word in array.elements):
        return None
    return tuple(word.value or "" for word in array.elements)


_READS_FILES = frozenset({".", "source"})
_RUNS_TEXT = frozenset({"eval", "trap", "alias", "enable"})
_ENDS = frozenset({"return", "exit", "exec"})
_DECLARES = frozenset({"export", "declare", "typeset"})
_HARMLESS = frozenset({"echo", ":", "true", "false", "[", "test"})


def assigned(command: Command, name: str) -> Assignment | None:
    """Return the last assignment by which a command surely sets the variable, if it does.

    Besides ``NAME=value`` that is ``export``, ``declare`` or ``typeset`` of it without options.
    """
    if not command.plain or not (not command.words or _declares_plainly(command)):
        return None
    found = [a for a in command.assignments if a.name == name and a.whole]
    return found[-1] if found else None


def ends_reading(command: Command) -> bool:
    """Tell whether a command may end the reading of its file before what follows it."""
    return _verb(command) in _ENDS


def ends_shell(command: Command) -> bool:
    """Tell whether a command may end the shell, so that no other file is read either."""
    return _verb(command) in _ENDS - {"return"}


def is_dynamic(command: Command) -> str:
    """Return why a command may set any variable, "" if it cannot."""
    if command.test or not command.words:
        return ""
    verb = _verb(command)
    if verb is None:
        return "the name of a command is computed"
    if verb in _READS_FILES:
        return "another file is read here"
    if verb in _RUNS_TEXT:
        return f"{verb} may set anything"
    return ""


def may_change(command: Command, text: str, name: str) -> str:
    """Return why a command that does not plainly set the variable may do so, "" if it cannot."""
    code = text[command.start : command.end]
    if not re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", code):
        return ""
    if any(assignment.name == name for assignment in command.assignments):
        return _why_not_plain(command)
    if _declares_plainly(command):
        return ""
    harmless = not command.words or command.test or _verb(command) in _HARMLESS
    if harmless and (command.test or command.words or command.assignments):
        changing = re.search(rf"\$\{{{name}:?=|\(\([^)]*{name}", code)
        return f"{name} may be set in an expression" if changing else ""
    reads = re.compile(rf"\$(?:{name}(?![A-Za-z0-9_])|\{{#?{name}(?:\[[@*0-9]+\])?\}})")
    if re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", reads.sub("", code)):
        return f"a command is given the name {name} here"
    return ""


def always_matters(command: Command) -> bool:
    """Tell whether a command can take effect elsewhere than where it stands.

    A function runs when it is called, ``declare -i`` or ``readonly`` change what later assignments
    do.
    """
    verb = _verb(command)
    lasting = verb in {"readonly", "local"} or (
        verb in _DECLARES and not _declares_plainly(command)
    )
    return command.in_function or lasting


def _why_not_plain(command: Command) -> str:
    if command.in_function:
        return "the assignment is inside a function"
    if not command.plain:
        return "the assignment depends on a condition or runs in a command of its own"
    if command.words and _verb(command) in _DECLARES | {"readonly", "local"}:
        return f"the assignment is made by {_verb(command)} with options or for good"
    if command.words:
        return "the assignment is for one command only"
    return "the assignment is to one element"


def _declares_plainly(command: Command) -> bool:
    options = [word for word in command.words[1:] if word.value is None or word.value[:1] in "-+"]
    return _verb(command) in _DECLARES and not options


def _verb(command: Command) -> str | None:
    """Return the name of the command that is run, "" where there is none; None if computed."""
    words = [word.value for word in command.words]
    while words and words[0] in {"command", "builtin"}:
        words = [word for word in words[1:] if word != "--"]
    if not words:
        return ""
    return words[0]
