"""Configuration files as texts, and what is changed in them: as little as possible.

Texts are what ``bytes.decode("utf-8", "surrogateescape")`` gives, with carriage returns as they
are, so that encoding them the same way gives every other byte back. What is put in place of an
assignment's value is quoted as that was.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.rewrite.syntax import Array, Word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from initadvisor.rewrite.syntax import Assignment, Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file that a generator reads.

    ``editable``: the administrator's, not one that a package replaces when it is upgraded.
    """

    path: str
    text: str
    editable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIn:
    """A file that does not exist yet and would be read after the first ``position`` files."""

    path: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    """How a generator reads its files.

    ``merged``: as one text, without a newline added between files. ``home`` is the file that gets
    an assignment nobody has made yet; None: the drop-in does.
    """

    shell: Shell
    merged: bool = False
    home: int | None = 0
    drop_in: DropIn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """What one file is to hold; ``before`` is None where there is no such file yet."""

    path: str
    before: str | None
    after: str

    @property
    def diff(self) -> str:
        """The change as ``diff -u`` shows it; not made safe for a terminal."""
        old, new = _lines(self.before or ""), _lines(self.after)
        start = self.path if self.before is not None else "/dev/null"
        shown = difflib.unified_diff(old, new, fromfile=start, tofile=self.path)
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in shown
        )


def _lines(text: str) -> list[str]:
    r"""Split at newlines only: ``str.splitlines`` takes form feeds and ``\r`` for ends, too."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


_BARE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_SPECIAL_IN_DOUBLE_QUOTES = frozenset('"$`\\')


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredAssignment:
    """What a variable is to be: one value, or the elements of an array; nothing: empty.

    ``quote`` is how a line is written where there is none to take over the style of. ``or_unset``:
    a variable that nothing sets is right, too.
    """

    name: str
    values: tuple[str, ...] = ()
    array: bool = False
    quote: str = ""
    or_unset: bool = False

    @property
    def line(self) -> str:
        """The assignment as a line of its own, without its end."""
        if self.array:
            return f"{self.name}=({_joined(self.values)})"
        value = self.values[0] if self.values else ""
        return f"{self.name}={quoted(value, self.quote)}"


@dataclass(frozen=True, slots=True)
class Edit:
    """``text`` in place of what is between two offsets.

    ``line``: it is a line of its own, so that the one before it has to end first.
    """

    start: int
    end: int
    text: str
    line: bool = False


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made; they do not overlap.

    Those at the same offset come in the order they are given in, lines behind all others: they
    begin where what was there before ends, which may be an empty value.
    """
    done, at = "", 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end, edit.line)):
        done += text[at : edit.start]
        if edit.line and done and not done.endswith("\n"):
            done += "\n"
        done += edit.text
        at = edit.end
    return done + text[at:]


def quoted(value: str, quote: str) -> str:
    """Return a word that means ``value`` in every shell, with ``quote`` around it if that can be.

    Without any quotes where ``quote`` is "" and none are needed.
    """
    if not quote and (not value or _BARE.fullmatch(value)):
        return value
    if quote == "'" and "'" not in value:
        return f"'{value}'"
    if _SPECIAL_IN_DOUBLE_QUOTES.isdisjoint(value):
        return f'"{value}"'
    return "'" + value.replace("'", "'\\''") + "'"


def edits_for(
    text: str, assignment: Assignment, wanted: DesiredAssignment, *, as_string: bool
) -> list[Edit]:
    """Return what turns an assignment into that of the wish.

    ``as_string``: an array that is written as words in a string may stay one.
    """
    value = assignment.value
    edits: list[Edit] = []
    if assignment.append:
        plus = assignment.start + len(assignment.name)
        edits.append(Edit(plus, plus + 1, ""))
    if not wanted.array:
        return [*edits, _scalar(text, value, wanted)]
    if isinstance(value, Array) and value.literal:
        return edits + _elements(text, value, wanted.values)
    if isinstance(value, Word) and as_string and all(map(_BARE.fullmatch, wanted.values)):
        words = quoted(" ".join(wanted.values), _style(text[value.start : value.end]))
        return [*edits, Edit(value.start, value.end, words)]
    return [*edits, Edit(value.start, value.end, f"({_joined(wanted.values)})")]


def _scalar(text: str, value: Word | Array, wanted: DesiredAssignment) -> Edit:
    old = text[value.start : value.end]
    style = wanted.quote if isinstance(value, Array) else _style(old)
    return Edit(value.start, value.end, quoted("".join(wanted.values), style))


def _elements(text: str, array: Array, words: tuple[str, ...]) -> list[Edit]:
    """Replace element by element where lines or comments are to stay where they are."""
    old = array.elements
    styles = [_style(text[word.start : word.end]) for word in old]
    new = [quoted(word, styles[min(i, len(old) - 1)] if old else "") or "''"
           for i, word in enumerate(words)]  # fmt: skip
    if not array.has_comments and len(old) != len(new):
        inside = (old[0].start, old[-1].end) if old and new else (array.start + 1, array.end - 1)
        return [Edit(*inside, " ".join(new))]
    edits = [Edit(was.start, was.end, now) for was, now in zip(old, new, strict=False)]
    if added := new[len(old) :]:
        at = old[-1].end if old else array.start + 1
        behind = " " if not old and text[at] == "#" else ""
        edits.append(Edit(at, at, " ".join(["", *added] if old else added) + behind))
    return _without_overlap(edits) + [_removal(text, word) for word in old[len(new) :]]


def _without_overlap(edits: list[Edit]) -> list[Edit]:
    """Make one edit of a replaced element and what is added right behind it."""
    if len(edits) > 1 and edits[-1].start == edits[-2].end:
        *first, last, added = edits
        return [*first, Edit(last.start, last.end, last.text + added.text)]
    return edits


def _removal(text: str, word: Word) -> Edit:
    """Take an element away with the blanks before it, and its line if it had that to itself."""
    start = word.start
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n" and text[word.end : word.end + 1] == "\n":
        return Edit(start, word.end + 1, "")
    return Edit(start, word.end, "")


def _joined(words: tuple[str, ...]) -> str:
    return " ".join(quoted(word, "") or "''" for word in words)


def _style(raw: str) -> str:
    """Return the quotes a word is written with, those it begins with if they are mixed."""
    return raw[0] if raw[:1] in {"'", '"'} else ""
