"""Where the reading of a configuration file is, and what stands between its commands."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from initadvisor.rewrite.syntax import Command, Comment, Shell, UnreadableError, Word
from initadvisor.rewrite.words import read_word

if TYPE_CHECKING:
    from collections.abc import Iterator


_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|select|while|until|do|done|case|esac|function|time|coproc"
    r"|\{|\}|!|\[\[)(?=[ \t\n;&|()<>]|\Z)"
)
_BASH_ONLY = frozenset({"select", "function", "time", "coproc", "[["})
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-?|<&|<>|<(?!\()|>>|>&|>\||>(?!\()|&>>?)")


class Cursor:
    """Goes through a text: blanks, comments, here-documents, redirections.

    ``bound`` tells that what comes next runs on a condition or in a pipe.
    """

    def __init__(self, text: str, shell: Shell) -> None:
        self.text = text
        self.shell = shell
        self.at = 0
        self.commands: list[Command] = []
        self.comments: list[Comment] = []
        self.here_documents: list[tuple[int, str, bool, bool]] = []
        self.depth = 0
        self.functions = 0
        self.bound = False

    def reserved(self) -> str:
        """Return the reserved word that stands here, "" if there is none."""
        match = _RESERVED.match(self.text, self.at)
        if match is None or (self.shell is Shell.SH and match[0] in _BASH_ONLY):
            return ""
        return match[0]

    def redirection(self) -> re.Match[str] | None:
        """Return the operator of a redirection, if one stands here."""
        match = _REDIRECTION.match(self.text, self.at)
        if match and match[1].startswith("&") and self.shell is Shell.SH:
            return None
        return match

    def skip_blanks(self) -> bool:
        """Skip blanks and line continuations; tell whether there was one of these."""
        continued = False
        while self.at < len(self.text):
            if self.text.startswith("\\\n", self.at):
                continued = True
                self.at += 2
            elif self.text[self.at] in " \t":
                self.at += 1
            else:
                break
        return continued

    def skip_lines(self) -> None:
        """Skip blanks, newlines and comments where more of a command must follow."""
        while True:
            self.skip_blanks()
            if self.text.startswith("\n", self.at):
                self.read_newline()
            elif self.text.startswith("#", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def read_comment(self) -> None:
        """Read a comment, and note it where a command could take its place."""
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line_start = self.text.rfind("\n", 0, self.at) + 1
        alone = not self.text[line_start : self.at].strip(" \t")
        if alone and not (self.depth or self.bound):
            self.comments.append(Comment(start=self.at, end=end))
        self.at = end

    def read_newline(self) -> None:
        """Go to the next line, past the here-documents that start there."""
        self.at += 1
        for offset, delimiter, tabs, expanded in self.here_documents:
            start = self.at
            while True:
                if self.at >= len(self.text):
                    msg = "a here-document that does not end"
                    raise UnreadableError(msg, offset=offset)
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
            if expanded:
                self.note_expansions(start, self.at)
        self.here_documents.clear()

    def note_expansions(self, start: int, end: int) -> None:
        """Note a text that is no command, if the shell expands something in it."""
        if not {"$", "`"}.isdisjoint(self.text[start:end]):
            self.commands.append(
                Command(start=start, end=end, in_function=self.functions > 0, test=True)
            )

    def read_redirections(self) -> None:
        """Read what a compound command is redirected to."""
        self.skip_blanks()
        start = self.at
        while self.read_redirection():
            self.skip_blanks()
        self.note_expansions(start, self.at)

    def read_redirection(self) -> bool:
        """Read one redirection, if one comes; a here-document's text follows after the line."""
        match = self.redirection()
        if match is None:
            return False
        self.at = match.end()
        self.skip_blanks()
        target = self.read_word()
        if match[1] in {"<<", "<<-"}:
            if target.value is None or target.continued:
                msg = "a here-document with a computed end"
                raise UnreadableError(msg, offset=match.start())
            expanded = self.text[target.start : target.end] == target.value
            here = (match.start(), target.value, match[1] == "<<-", expanded)
            self.here_documents.append(here)
        return True

    def read_word(self) -> Word:
        """Read a word that must come here.

        A reserved word, too, may go on behind a backslash at the end of a line.
        """
        word = read_word(self.text, self.at, self.shell)
        if word.end == self.at:
            msg = f"an unexpected {self.text[self.at : self.at + 1]!r}"
            raise UnreadableError(msg, offset=self.at)
        self.pass_over(word.end)
        return word

    def pass_over(self, end: int) -> None:
        """Go on at ``end``; shells differ in where a here-document starts if that is lines on."""
        if self.here_documents and "\n" in self.text[self.at : end]:
            msg = "a here-document that starts inside of something"
            raise UnreadableError(msg, offset=self.at)
        self.at = end

    @contextmanager
    def nested(self, *, function: bool = False) -> Iterator[None]:
        """What is read meanwhile runs on a condition, in a subshell, or not at all."""
        bound = self.bound
        self.bound = False
        self.depth += 1
        self.functions += function
        yield
        self.functions -= function
        self.depth -= 1
        self.bound = bound
