"""Which commands set a variable for certain, and which may do so in a way nobody can foresee."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.rewrite.syntax import Assignment, Command


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
