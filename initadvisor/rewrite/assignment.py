"""``NAME=value``, ``NAME+=value`` and ``NAME=(...)`` as the shells tell them from other words."""

from __future__ import annotations

import re

from initadvisor.rewrite.syntax import Array, Assignment, Shell, UnreadableError, Word
from initadvisor.rewrite.words import META, read_word

DECLARING = frozenset({"export", "declare", "typeset", "readonly", "local"})
"""Commands whose arguments may be assignments."""

_START = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]\n]*\])?(\+?)=")


def read_assignment(text: str, start: int, shell: Shell) -> Assignment | None:
    """Read the assignment at ``start``; None if the word there is none.

    sh knows no arrays and no ``+=``: the latter makes a command's name of the word.
    """
    match = _START.match(text, start)
    if match is None or (shell is Shell.SH and (match[2] or match[3])):
        return None
    value: Word | Array
    if text.startswith("(", match.end()):
        if shell is Shell.SH:
            msg = "an array, which sh does not know"
            raise UnreadableError(msg, offset=start)
        value = _read_array(text, match.end())
    else:
        value = read_word(text, match.end(), shell)
    return Assignment(
        name=match[1], append=bool(match[3]), whole=match[2] is None, start=start, value=value
    )


def _read_array(text: str, start: int) -> Array:
    """Read ``(...)``; what follows without a blank makes a string of it (observed with bash 5.2).

    So a carriage return at the end of the line does.
    """
    at = start + 1
    elements: list[Word] = []
    has_comments = False
    while at < len(text) and text[at] != ")":
        if text[at] in " \t\n":
            at += 1
        elif text[at] == "#":
            has_comments = True
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("\\\n", at):
            at += 2
        elif text[at] in META and not text.startswith(("<(", ">("), at):
            msg = f"{text[at]!r} inside an array"
            raise UnreadableError(msg, offset=at)
        else:
            elements.append(read_word(text, at, Shell.BASH))
            at = elements[-1].end
    if at >= len(text):
        msg = "an array that is not closed"
        raise UnreadableError(msg, offset=start)
    end = at + 1
    literal = end >= len(text) or text[end] in META
    if not literal:
        end = read_word(text, end, Shell.BASH).end
    return Array(
        start=start,
        end=end,
        elements=tuple(elements),
        has_comments=has_comments,
        literal=literal,
    )
