"""GRUB's scripts, read as far as menus need it (GRUB manual, "Writing full configuration files").

Statements, blocks and quotes are found, nothing is evaluated: what depends on a condition or on a
variable is marked as such, and up to the caller to refuse.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\n]*)
    | (?P<end>[\n;])
    | (?P<blank>(?:[ \t\r]|\\\n)+)
    | (?P<word>(?:'[^']*' | "(?:\\.|[^"\\])*" | \$\{[^{}\n]*\} | \\. | [^\s;'"\\])+)
    """,
    re.VERBOSE | re.DOTALL,
)
_PIECE = re.compile(
    r"""
      '(?P<single>[^']*)'
    | "(?P<double>(?:\\.|[^"\\])*)"
    | \\(?P<escaped>.)
    | (?P<plain>[^'"\\]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = frozenset({"if", "for", "while", "until"})
_CLOSING = frozenset({"fi", "done"})
_PREFIXES = frozenset({"then", "else", "do", "elif"}) | _OPENING

_DEEPEST = 100
"""A menu has an entry in a submenu or two."""


class ScriptError(Exception):
    """Text that is no script of GRUB's; the message says where."""


@dataclass(frozen=True, slots=True)
class GrubWord:
    """A word as it is written, and where."""

    raw: str
    start: int
    end: int

    @property
    def literal(self) -> str | None:
        """What it stands for; None where that depends on a variable."""
        parts = []
        for piece in _PIECE.finditer(self.raw):
            text = piece["single"]
            if text is None and piece["escaped"] is not None:
                text = piece["escaped"]
            elif text is None:
                inner = piece["double"] if piece["double"] is not None else piece["plain"]
                if re.search(r"(?<!\\)\$", inner):
                    return None
                text = re.sub(r'\\([\\"$])', r"\1", inner) if piece["plain"] is None else inner
            parts.append(text)
        return "".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A command with its words.

    ``blocks``: the commands whose blocks (``{ ... }``) it is in, the outermost first.
    ``conditional``: whether it is inside ``if`` or a loop within the innermost of them.
    ``body``: what is between the braces that follow it, None where none do.
    """

    words: tuple[GrubWord, ...]
    blocks: tuple[Statement, ...] = ()
    conditional: bool = False
    body: tuple[int, int] | None = None

    @property
    def command(self) -> str:
        """Its first word."""
        return self.words[0].raw

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.words[0].start

    @property
    def end(self) -> int:
        """Where its last word ends."""
        return self.words[-1].end


@functools.lru_cache(maxsize=4)
def statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of a script in the order in which they begin.

    Kept for the latest texts, as each question about a menu reads it again.

    Raises ``ScriptError`` for unbalanced quotes and braces, and for more than 100 blocks inside of
    one another.
    """
    found: list[Statement] = []
    words: list[GrubWord] = []
    open_blocks: list[_Block] = []
    depth = 0
    for word in _tokens(text):
        blocks = open_blocks[-1].inner if open_blocks else ()
        if word is None:
            if words:
                found.append(Statement(words=tuple(words), blocks=blocks, conditional=depth > 0))
                words = []
        elif word.raw == "{" and words:
            if len(open_blocks) == _DEEPEST:
                msg = f"more than {_DEEPEST} blocks inside of one another at character {word.start}"
                raise ScriptError(msg)
            head = Statement(words=tuple(words), blocks=blocks, conditional=depth > 0)
            open_blocks.append(_Block(head, len(found), word.end, depth))
            found.append(head)
            words, depth = [], 0
        elif word.raw == "}" and not words:
            if not open_blocks:
                msg = f"a brace without an opening one at character {word.start}"
                raise ScriptError(msg)
            block = open_blocks.pop()
            found[block.index] = replace(block.head, body=(block.body_start, word.start))
            depth = block.depth
        elif not words and word.raw in _PREFIXES | _CLOSING:
            depth += (word.raw in _OPENING) - (word.raw in _CLOSING)
        else:
            words.append(word)
    if open_blocks:
        msg = "a brace is not closed"
        raise ScriptError(msg)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block whose end is still to come: the ``index`` of its head, and the depth around it."""

    head: Statement
    index: int
    body_start: int
    depth: int

    @property
    def inner(self) -> tuple[Statement, ...]:
        return (*self.head.blocks, self.head)


def _tokens(text: str) -> Iterator[GrubWord | None]:
    """Yield the words, and None where a statement ends."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            msg = f"a quote is not closed at character {position}"
            raise ScriptError(msg)
        if match["end"]:
            yield None
        elif match["word"]:
            yield GrubWord(match["word"], match.start(), match.end())
        position = match.end()
    yield None
