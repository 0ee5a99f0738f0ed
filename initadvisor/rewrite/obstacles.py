"""Which commands set a variable for certain, and which may do so in a way nobody can foresee."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.rewrite.expressions import may_set, may_set_any

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.rewrite.syntax import Assignment, Command


_READS_FILES = frozenset({".", "source"})
_LASTS = frozenset({"trap", "alias", "enable"})
"""Builtins that take effect with every later command."""
_RUNS_TEXT = _LASTS | {"eval", "compgen", "jobs"}
_ENDS = frozenset({"return", "exit", "exec"})
_DECLARES = frozenset({"export", "declare", "typeset"})
_HARMLESS = frozenset({"echo", ":", "true", "false", "[", "test"})
_ACTS = frozenset({"chmod", "chown", "echo", "logger", "mkdir", "rm", "rmdir", "sync", "touch"})
"""Commands that tell the shell nothing but their status."""
_SETS_NAMED = _DECLARES | {
    *("readonly", "local", "read", "mapfile", "readarray", "printf", "unset", "getopts", "wait"),
}
"""Builtins that set the variables whose names they are given."""
_BUILTINS = (
    _SETS_NAMED | _READS_FILES | _RUNS_TEXT | _ENDS | _HARMLESS | {"let", "builtin", "command"}
)


def assigned(command: Command, text: str, name: str) -> Assignment | None:
    """Return the last assignment by which a command surely sets the variable, if it does.

    Besides ``NAME=value`` that is ``export``, ``declare`` or ``typeset`` of it without options and
    with nothing before it.
    """
    if not command.plain or not (not command.words or _declares_plainly(command)):
        return None
    found = [a for a in command.assignments if a.name == name and a.whole]
    if not found or _is_prefix(command, found[-1]):
        return None
    later = tuple(a for a in command.assignments if a.start > found[-1].start)
    behind = replace(command, start=found[-1].value.end, assignments=later)
    return None if may_set(behind, text, name) else found[-1]


def redefines(name: str) -> bool:
    """Tell whether a function of that name changes what is known of a command."""
    return name in _BUILTINS


def names_given(command: Command) -> set[str]:
    """Return the names that a command is given to set variables by."""
    if _verb(command) not in _SETS_NAMED:
        return set()
    return {name for value in _values(command) for name in _NAME.findall(value)}


_NAME = re.compile(r"[A-Za-z_]\w*")
_COMPUTED_SUBSCRIPT = re.compile(r"\w\[(?!(?:[0-9]+|[@*])\])")
_CHANGING = re.compile(r"[-+][A-Za-z]*[knot]")


def ends_reading(command: Command) -> bool:
    """Tell whether a command may end the reading of its file before what follows it."""
    return _verb(command) in _ENDS


def ends_shell(command: Command) -> bool:
    """Tell whether a command may end the shell, so that no other file is read either."""
    return _verb(command) in _ENDS - {"return"}


def decides_nothing(command: Command, text: str) -> bool:
    """Tell whether neither a command's output nor its status goes anywhere in the shell."""
    if not command.plain or command.assignments or _verb(command) not in _ACTS:
        return False
    followed = text[command.end :].lstrip(" \t").startswith(("&&", "||"))
    looked_at = followed or "$?" in text or "PIPESTATUS" in text
    return not looked_at and all(word.value is not None for word in command.words)


def functions_removed(command: Command) -> set[str]:
    """Return the functions that a command takes away."""
    values = _values(command)
    return {*values[1:]} if _verb(command) == "unset" and "-f" in values else set()


def file_read(command: Command) -> str:
    """Return which file a command has the shell read; "" for none, and where that is computed."""
    if _verb(command) not in _READS_FILES:
        return ""
    words = [word.value for word in command.words]
    behind = words[next(i for i, word in enumerate(words) if word in _READS_FILES) + 1 :]
    path = behind[0] if behind else None
    return path if path and path.startswith("/") else ""


def is_dynamic(command: Command, text: str, numbers: Collection[str]) -> str:
    """Return why a command may set any variable, "" if it cannot.

    ``numbers`` are the variables that are known to hold numbers.
    """
    if may_set_any(command, text, numbers):
        return "an expression may set anything"
    if command.test or not command.words:
        return ""
    verb, values = _verb(command), [word.value for word in command.words]
    options = [value for value in values if value and value.startswith("-")]
    reasons = {
        "the name of a command is computed": verb is None,
        "another file is read here": verb in _READS_FILES,
        f"{verb} may set anything": verb in _RUNS_TEXT | {"let"},
        f"{verb} is given a name that is computed": verb in _SETS_NAMED and None in values,
        f"{verb} is given an element that is computed": verb in _SETS_NAMED
        and (verb != "printf" or any(option.startswith("-v") for option in options))
        and any(_COMPUTED_SUBSCRIPT.search(value or "") for value in values),
        f"{verb} runs what it is given": verb in {"mapfile", "readarray"}
        and any("C" in option for option in options),
        f"{verb} changes how later commands are read": _changes_reading(command),
        f"{verb} makes something else of later assignments": verb in _DECLARES | {"local"}
        and not {"i", "n"}.isdisjoint("".join(options)),
        f"{verb} computes the name of a variable": verb in {"[", "test"}
        and not {"-v", "-R"}.isdisjoint(options),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def may_change(command: Command, text: str, name: str) -> str:
    """Return why a command that does not plainly set the variable may do so, "" if it cannot."""
    code = text[command.start : command.end]
    spelled = re.compile(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])")
    given = name in names_given(command)
    if not given and not spelled.search(code):
        return ""
    if may_set(command, text, name):
        return f"{name} may be set in an expression"
    if any(assignment.name == name for assignment in command.assignments):
        return _why_not_plain(command, name)
    reads = re.compile(rf"\$(?:{name}(?![A-Za-z0-9_])|\{{#?{name}(?:\[[@*0-9]+\])?\}})")
    if _declares_plainly(command):  # the name alone changes nothing
        given = any(value != name and name in _NAME.findall(value) for value in _values(command))
    elif not command.test and (
        _verb(command) not in _HARMLESS if command.words else not command.assignments
    ):
        given = given or spelled.search(reads.sub("", code)) is not None
    return f"a command is given the name {name} here" if given else ""


def always_matters(command: Command) -> bool:
    """Tell whether a command can take effect elsewhere than where it stands.

    A function runs when it is called, ``declare -i`` or ``readonly`` change what later assignments
    do, ``trap`` and ``set -k`` what later commands do.
    """
    verb = _verb(command)
    lasting = verb in _LASTS | {"readonly", "local"} or (
        verb in _DECLARES and not _declares_plainly(command)
    )
    return command.in_function or lasting or _changes_reading(command)


def _changes_reading(command: Command) -> bool:
    """Tell whether ``set`` has the shell run commands no more, or take other words for names."""
    return _verb(command) == "set" and any(_CHANGING.match(word) for word in _values(command))


def _why_not_plain(command: Command, name: str) -> str:
    if command.in_function:
        return "the assignment is inside a function"
    if not command.plain:
        return "the assignment depends on a condition or runs in a command of its own"
    if any(_is_prefix(command, a) for a in command.assignments if a.name == name):
        return "the assignment is for one command only"
    if command.words and _verb(command) in _DECLARES | {"readonly", "local"}:
        return f"the assignment is made by {_verb(command)} with options or for good"
    if command.words:
        return "the assignment is for one command only"
    return "the assignment is to one element"


def _is_prefix(command: Command, assignment: Assignment) -> bool:
    """Tell whether an assignment stands before a command, for which alone it is made, if at all."""
    return bool(command.words) and assignment.start < command.words[0].start


def _declares_plainly(command: Command) -> bool:
    options = [word for word in command.words[1:] if word.value is None or word.value[:1] in "-+"]
    return _verb(command) in _DECLARES and not options


def _values(command: Command) -> list[str]:
    return [word.value or "" for word in command.words]


def _verb(command: Command) -> str | None:
    """Return the name of the command that is run, "" where there is none; None if computed."""
    words = [word.value for word in command.words]
    while words and words[0] in {"command", "builtin"}:
        words = words[1:]
        while words and (words[0] or "").startswith("-"):
            words = words[1:]
    if not words:
        return ""
    return words[0]
