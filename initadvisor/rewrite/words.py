"""Where a shell word ends, and what it stands for if nothing in it has to be computed.

Written after the token recognition and quoting of POSIX (XCU 2.2, 2.3) and bash(1). What two
readings are possible for is refused, not guessed: ``UnreadableError``.
"""

from __future__ import annotations

import re

from initadvisor.rewrite.syntax import Shell, UnreadableError, Word

META = frozenset(" \t\n;&|()<>")
"""What ends a word."""

_PATTERN = frozenset("*?[{~")
"""What the shell may replace by names of files or other words."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_CASE = re.compile(r"case[ \t\n]")


def read_word(text: str, start: int, shell: Shell) -> Word:
    """Read the word that starts at ``start``; it may be empty, as the value of ``NAME=`` is."""
    at = start
    parts: list[str] = []
    literal, continued = True, False
    while at < len(text):
        char = text[at]
        if char in META:
            after = _grouped(text, start, at, shell)
            if after is None:
                break
            at, literal = after, False
        elif char == "\\":
            continued |= text[at + 1 : at + 2] == "\n"
            parts.append(text[at + 1 : at + 2].replace("\n", ""))
            literal &= at + 1 < len(text)
            at += 2
        elif char == "'":
            end = _find(text, "'", at)
            parts.append(text[at + 1 : end])
            at = end + 1
        elif char == '"':
            quoted = _double_quoted(text, at, shell)
            parts.append(quoted.value or "")
            literal &= quoted.value is not None
            continued |= quoted.continued
            at = quoted.end
        elif char in "$`":
            at, literal = _skip_expansion(text, at, shell, quoted=False), False
        else:
            literal &= char not in _PATTERN
            parts.append(char)
            at += 1
    at = min(at, len(text))
    value = "".join(parts) if literal or text[start:at] == "[" else None
    return Word(start=start, end=at, value=value, continued=continued)


def skip_parentheses(text: str, start: int, shell: Shell, *, code: bool = True) -> int:
    """Return the offset after the ``)`` that belongs to the ``(`` at ``start``.

    ``code``: what is between are commands, not arithmetic.
    """
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char in "'\"\\$`":
            at = _skip_quoted(text, at, shell)
            continue
        at_word_start = text[at - 1] in META
        if code and text.startswith("<<", at) and not text.startswith("<<<", at):
            msg = "a here-document inside parentheses"
            raise UnreadableError(msg, offset=at)
        if code and at_word_start and _CASE.match(text, at):
            msg = "a case inside parentheses"
            raise UnreadableError(msg, offset=at)
        if char == "#" and at_word_start:
            at = _end_of_line(text, at)
            continue
        depth += (char == "(") - (char == ")")
        at += 3 if text.startswith("<<<", at) else 1
        if depth == 0:
            return at
    msg = "a parenthesis that is not closed"
    raise UnreadableError(msg, offset=start)


def _grouped(text: str, start: int, at: int, shell: Shell) -> int | None:
    """Skip ``<(...)`` and ``@(...)``, which bash makes part of a word; None: the word ends."""
    if shell is not Shell.BASH:
        return None
    if text[at] in "<>" and text.startswith("(", at + 1):
        return skip_parentheses(text, at + 1, shell)
    if text[at] == "(" and at > start and text[at - 1] in "?*+@!":
        return skip_parentheses(text, at, shell)
    return None


def _double_quoted(text: str, start: int, shell: Shell) -> Word:
    """Read from one double quote to after the next that is not escaped."""
    at = start + 1
    parts: list[str] = []
    literal, continued = True, False
    while at < len(text):
        char = text[at]
        if char == '"':
            value = "".join(parts) if literal else None
            return Word(start=start, end=at + 1, value=value, continued=continued)
        if char == "\\":
            following = text[at + 1 : at + 2]
            continued |= following == "\n"
            parts.append({"\n": ""}.get(following, following))
            if following not in set('$`"\\\n'):
                parts[-1] = char + following
            at += 2
        elif char in "$`":
            at, literal = _skip_expansion(text, at, shell, quoted=True), False
        else:
            parts.append(char)
            at += 1
    msg = "a double quote that is not closed"
    raise UnreadableError(msg, offset=start)


def _skip_expansion(text: str, start: int, shell: Shell, *, quoted: bool) -> int:
    """Return the offset after the ``$...`` or backquotes at ``start``."""
    if text[start] == "`":
        return _skip_escaped(text, start, "`")
    match text[start + 1 : start + 2]:
        case "(":
            arithmetic = text.startswith("((", start + 1)
            return skip_parentheses(text, start + 1, shell, code=not arithmetic)
        case "{":
            return _skip_braces(text, start, shell, quoted=quoted)
        case "'" if not quoted:
            if shell is not Shell.BASH:
                msg = "$'...', which not every sh knows"
                raise UnreadableError(msg, offset=start)
            return _skip_escaped(text, start + 1, "'")
        case _:
            name = _NAME.match(text, start + 1)
            return name.end() if name else start + 1


def _skip_braces(text: str, start: int, shell: Shell, *, quoted: bool) -> int:
    at = start + 2
    while at < len(text):
        char = text[at]
        if char == "}":
            return at + 1
        if char == "'" and quoted:
            msg = "a single quote inside ${...} inside double quotes"
            raise UnreadableError(msg, offset=at)
        if char in "$`":
            at = _skip_expansion(text, at, shell, quoted=quoted)
        elif char in "'\"\\":
            at = _skip_quoted(text, at, shell)
        else:
            at += 1
    msg = "a ${ that is not closed"
    raise UnreadableError(msg, offset=start)


def _skip_quoted(text: str, at: int, shell: Shell) -> int:
    """Return the offset after what is quoted or expanded at ``at``."""
    match text[at]:
        case "\\":
            return at + 2
        case "'":
            return _find(text, "'", at) + 1
        case '"':
            return _double_quoted(text, at, shell).end
        case _:
            return _skip_expansion(text, at, shell, quoted=False)


def _skip_escaped(text: str, start: int, mark: str) -> int:
    at = start + 1
    while at < len(text):
        if text[at] == mark:
            return at + 1
        at += 2 if text[at] == "\\" else 1
    msg = f"a {mark} that is not closed"
    raise UnreadableError(msg, offset=start)


def _find(text: str, mark: str, start: int) -> int:
    end = text.find(mark, start + 1)
    if end < 0:
        msg = "a single quote that is not closed"
        raise UnreadableError(msg, offset=start)
    return end


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
