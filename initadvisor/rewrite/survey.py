"""What a generator's files, read one after the other, say about one variable."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.rewrite.expressions import (
    facts_read,
    functions_asked,
    loop_names,
    names_followed,
    names_in,
    numbers,
)
from initadvisor.rewrite.files import ConfigFile, ReadingRules
from initadvisor.rewrite.obstacles import (
    always_matters,
    assigned,
    decides_nothing,
    ends_reading,
    ends_shell,
    file_read,
    functions_removed,
    is_dynamic,
    may_change,
    names_given,
)
from initadvisor.rewrite.parser import parse
from initadvisor.rewrite.syntax import Array, Command, Script, UnreadableError, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from initadvisor.rewrite.syntax import Assignment, Shell


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unit:
    """What is read at once: a file, or all files as one text.

    ``starts[i]`` is where file ``first + i`` starts in ``text``. No two units are the same.
    """

    text: str
    shell: Shell
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
    sure = [
        (i, a)
        for i, place in enumerate(places)
        if (a := assigned(place.command, place.unit.text, name))
    ]
    known = _numbers(units)
    found_obstacles = [_obstacle(place, name, known) for place in places]
    last = sure[-1][0] if sure else -1
    base = max((i for i, assignment in sure if not assignment.append), default=-1)
    before = [assignment for i, assignment in sure if i < base]
    obstacles = [
        obstacle
        for i, place in enumerate(places)
        if (obstacle := found_obstacles[i])
        and (i > base or always_matters(place.command) or ends_shell(place.command))
    ]
    obstacles += [
        UncertainCommand(place=place, reason="the reading of the file may end here", vague=True)
        for place in (places[:last] if sure else places)
        if ends_reading(place.command) and not (sure and place.unit is not places[last].unit)
    ]
    if not sure:
        return VariableOrigin(obstacles=tuple(obstacles))
    suspects = any(found_obstacles[: max(base, 0)])
    return VariableOrigin(
        place=places[last],
        assignment=sure[-1][1],
        since=tuple(assignment for i, assignment in sure if i >= base),
        alone=not before and not suspects,
        obstacles=tuple(obstacles),
    )


def unknown_facts(
    units: Sequence[Unit],
    names: Collection[str],
    functions: Collection[str] = (),
    read: Callable[[str], str] | None = None,
) -> set[str]:
    """Return the facts that the values of variables may depend on, and that the files do not set.

    Nothing where the variables ``names`` get their values for certain, but for ``functions`` of the
    program that reads the files if these take them away. ``read`` gives the text of a file that
    they read in turn.
    """
    found = [find(units, name) for name in names]
    code = [*_code_of(units, read)]
    removed = {name for command, _ in code for name in functions_removed(command)} & {*functions}
    if removed or not any(each.obstacles or each.is_computed for each in found):
        return removed
    held = _held(code)
    unused = _unused(code) - {*names}
    known = {*names}
    facts: set[str] = set()
    for command, text in code:
        if not (decides_nothing(command, text) or _is_for(command, text, unused)):
            seen = facts_read(command, text)
            seen |= {f"${name}" for name in _reached(names_followed(command, text), held)}
            facts |= seen - {f"${name}" for name in known}
            facts.update(functions_asked(command, text) & {*functions})
        known |= names_given(command) | loop_names(command, text)
        known.update(assignment.name for assignment in command.assignments)
    return facts


_MOST_FILES = 32


def _code_of(
    units: Sequence[Unit], read: Callable[[str], str] | None
) -> Iterator[tuple[Command, str]]:
    """Yield all commands with the text they stand in, those of a file where that is read."""
    done: set[str] = set()

    def inside(script: Script, text: str) -> Iterator[tuple[Command, str]]:
        for command in script.commands:
            yield command, text
            path = file_read(command)
            if read and path and path not in done and len(done) < _MOST_FILES:
                done.add(path)
                other = read(path)
                unit = _unit((ConfigFile(path=path, text=other, editable=False),), 0, reading)
                yield from inside(unit.script, other)

    for unit in units:
        reading = ReadingRules(shell=unit.shell)
        yield from inside(unit.script, unit.text)


def _held(code: Sequence[tuple[Command, str]]) -> dict[str, set[str]]:
    """Return by variable which names are in what it is set to."""
    held: dict[str, set[str]] = {}
    for command, text in code:
        for each in command.assignments:
            value = text[each.value.start : each.value.end]
            held.setdefault(each.name, set()).update(names_in(value))
    return held


def _reached(names: Collection[str], held: Mapping[str, set[str]]) -> set[str]:
    """Return the names that lie in what variables hold, and in what those hold in turn."""
    found: set[str] = set()
    left = [*names]
    while left:
        new = held.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def _unused(code: Sequence[tuple[Command, str]]) -> set[str]:
    """Return the variables that are set and named nowhere else."""
    texts = {id(text): text for _, text in code}.values()
    named = Counter(name for text in texts for name in names_in(text))
    set_by = Counter(each.name for command, _ in code for each in command.assignments)
    return {name for name, times in set_by.items() if named[name] == times}


def _is_for(command: Command, text: str, names: Collection[str]) -> bool:
    """Tell whether all that a command does is to set some of these variables."""
    value = text[command.start : command.end]
    only = command.assignments and not (command.words or command.test)
    runs = "$(" in value or "`" in value or ":=" in value or "=" not in value
    return bool(only) and not runs and all(each.name in names for each in command.assignments)


def _numbers(units: Sequence[Unit]) -> frozenset[str]:
    """Return the variables that hold nothing but numbers in every unit that sets them."""
    named = {name for unit in units for c in unit.script.commands for name in names_given(c)}
    found = [numbers(unit.script.commands, unit.text) for unit in units]
    every = frozenset(name for each, _ in found for name in each)
    return every.difference(named, *(others for _, others in found))


def _obstacle(place: CommandPlace, name: str, known: Collection[str]) -> UncertainCommand | None:
    if assigned(place.command, place.unit.text, name):
        return None
    if reason := may_change(place.command, place.unit.text, name):
        return UncertainCommand(place=place, reason=reason)
    if reason := is_dynamic(place.command, place.unit.text, known):
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
    unit = Unit(
        text=text,
        shell=reading.shell,
        script=script,
        files=files,
        first=first,
        starts=tuple(starts),
    )
    try:
        script = parse(text, reading.shell)
    except UnreadableError as err:
        if any(file.editable for file in files):
            reason = f"this is not understood: {err.reason}"
            raise refusal(unit, err.offset, reason, "set the compression by hand") from err
        whole = Word(start=0, end=len(text), value=None)
        script = Script(commands=(Command(start=0, end=len(text), words=(whole,)),))
    return replace(unit, script=script)


def _is_one_line(word: Word) -> bool:
    return word.value is not None and word.value.isprintable()


def _all(array: Array) -> tuple[str, ...] | None:
    """Return the elements, also of what ends in a carriage return and is no array because of it."""
    if any(word.value is None for word in array.elements):
        return None
    return tuple(word.value or "" for word in array.elements)
