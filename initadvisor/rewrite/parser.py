"""Splits a configuration file into commands: which assignments there are, and when they run.

Not a shell: nothing is executed or expanded. Text that leaves a doubt about where a command ends
raises ``UnreadableError``.
"""

from __future__ import annotations

import re

from initadvisor.rewrite.assignment import DECLARING, read_assignment
from initadvisor.rewrite.cursor import Cursor
from initadvisor.rewrite.obstacles import redefines
from initadvisor.rewrite.syntax import Assignment, Command, Script, Shell, UnreadableError, Word
from initadvisor.rewrite.words import META, skip_parentheses

_CLOSERS = {"while": ("do", "done"), "until": ("do", "done"), "{": ("}",)}
_ENDS = frozenset({"fi", "done", "esac", "}"})
_COMPOUND = frozenset({"if", "while", "until", "for", "select", "case", "[[", "{"})
_INNER = frozenset({"then", "elif", "else", "do"})
_CASE_ENDS = frozenset({";;&", ";;", ";&", "esac"})
_TIMING = re.compile(r"(?<=\btime)(?:[ \t]+-p)?(?:[ \t]+--)?(?=[ \t])")
_IN = re.compile(r"in(?=[ \t\n])")
_NO_ARGUMENTS = re.compile(r"[ \t]*\([ \t]*\)")
_FUNCTION = re.compile(r"[^\s;&|()<>'\"$`\\#=]+[ \t]*\([ \t]*\)")


def parse(text: str, shell: Shell) -> Script:
    """Return the commands of a text.

    Raises ``UnreadableError`` where it ends inside of something, or cannot be told for certain.
    """
    if "\0" in text:
        msg = "a NUL byte"
        raise UnreadableError(msg, offset=text.index("\0"))
    parser = _Parser(text, shell)
    try:
        parser.read_list(frozenset())
    except RecursionError as err:
        msg = "commands inside of too many others"
        raise UnreadableError(msg, offset=parser.at) from err
    if parser.here_documents:
        msg = "a here-document that does not end"
        raise UnreadableError(msg, offset=parser.here_documents[0][0])
    return Script(commands=tuple(parser.commands), comments=tuple(parser.comments))


def _unexpected(what: str, offset: int) -> UnreadableError:
    return UnreadableError(f"an unexpected {what!r}", offset=offset)


class _Parser(Cursor):
    """Reads lists of commands, which compound commands have inside."""

    def read_list(self, closers: frozenset[str], *, may_be_empty: bool = False) -> str:
        """Read commands up to and including one of ``closers``; return it, "" at the end."""
        started, complete = self.at, False
        while True:
            self.skip_blanks()
            at = self.at
            if at >= len(self.text):
                if closers or self.bound:
                    msg = "a command that is not closed"
                    raise UnreadableError(msg, offset=started)
                return ""
            if closer := self._closer(closers):
                if self.bound or not may_be_empty:
                    raise _unexpected(closer, at)
                return closer
            complete = self._read_item(complete=complete)
            may_be_empty |= complete

    def _read_item(self, *, complete: bool) -> bool:
        """Read a command, or what stands between two; return whether a command has been completed.

        ``complete``: that was so before, without which there is nothing for an operator to divide.
        """
        char, word = self.text[self.at], self.reserved()
        if char == "#":
            self.read_comment()
            return complete
        if char == "\n":
            self.read_newline()
            return False
        if char in ";&|" and not self.redirection():
            if not complete:
                raise _unexpected(char, self.at)
            self._read_operator()
            return False
        if char == ")" or word in _ENDS | _INNER:
            raise _unexpected(word or char, self.at)
        self._read_command()
        self.bound = False
        return True

    def _closer(self, closers: frozenset[str]) -> str:
        for closer in sorted(closers, key=len, reverse=True):
            is_word = closer[0] not in ";)"
            if self.reserved() == closer if is_word else self.text.startswith(closer, self.at):
                self.at += len(closer)
                return closer
        return ""

    def _read_operator(self) -> None:
        for operator in ("&&", "||", "|&", "|"):
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                self.bound = True
                return
        if self.text.startswith((";;", ";&"), self.at):
            msg = "a ;; outside of a case"
            raise UnreadableError(msg, offset=self.at)
        self.at += 1
        self.bound = False

    def _read_command(self) -> None:
        if self.text.startswith("((", self.at) and self.shell is Shell.BASH:
            start = self.at
            self.at = skip_parentheses(self.text, start, self.shell, code=False)
            self._add_head(start)
            self._finish_compound()
            return
        if self.text.startswith("(", self.at):
            self.at += 1
            with self.nested():
                self.read_list(frozenset({")"}))
            self._finish_compound()
            return
        start, word = self.at, self.reserved()
        if word:
            self.at += len(word)
            self._read_compound(word, start)
        elif function := _FUNCTION.match(self.text, start):
            self._refuse_builtin(function[0].split("(")[0].rstrip(), start)
            self.at = function.end()
            self._read_body()
        else:
            self._read_simple()

    def _read_compound(self, word: str, start: int) -> None:
        match word:
            case "if":
                self._read_if()
            case "while" | "until" | "{":
                with self.nested():
                    for closer in _CLOSERS[word]:
                        self.read_list(frozenset({closer}))
            case "for" | "select":
                self._read_for(start)
            case "case":
                self._read_case(start)
            case "[[":
                self._read_test(start)
            case "function":
                self.skip_blanks()
                self._refuse_builtin(self.read_word().value, start)
                if parentheses := _NO_ARGUMENTS.match(self.text, self.at):
                    self.at = parentheses.end()
                self._read_body()
            case "!" | "time" | "coproc":
                self._read_prefixed()
                return
            case _:
                raise _unexpected(word, start)
        self._finish_compound()

    def _refuse_builtin(self, name: str | None, start: int) -> None:
        if name is None or redefines(name):
            msg = f"a function that takes the place of {name or 'a command'}"
            raise UnreadableError(msg, offset=start)

    def _read_prefixed(self) -> None:
        if options := _TIMING.match(self.text, self.at):
            self.at = options.end()
        with self.nested():
            self.skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char in "\n;&|)#" and not self.redirection():
                raise _unexpected(char, self.at)
            self._read_command()

    def _read_if(self) -> None:
        with self.nested():
            part = "elif"
            while part == "elif":
                self.read_list(frozenset({"then"}))
                part = self.read_list(frozenset({"elif", "else", "fi"}))
            if part == "else":
                self.read_list(frozenset({"fi"}))

    def _finish_compound(self) -> None:
        """Read redirections; what comes then must be divided off."""
        self.read_redirections()
        char = self.text[self.at : self.at + 1]
        if char not in "\n;&|)#" and self.reserved() not in _INNER | _ENDS:
            raise _unexpected(char, self.at)

    def _read_body(self) -> None:
        with self.nested(function=True):
            self.skip_lines()
            is_compound = self.text.startswith("(", self.at) or self.reserved() in _COMPOUND
            if not is_compound:  # dash takes any command, and no other shell does
                raise _unexpected(self.text[self.at : self.at + 1], self.at)
            self._read_command()

    def _read_for(self, start: int) -> None:
        self.skip_blanks()
        if self.text.startswith("((", self.at):
            self.at = skip_parentheses(self.text, self.at, self.shell, code=False)
        else:
            self.skip_blanks()
            self.read_word()
            self.skip_blanks()
            if self.text[self.at : self.at + 1] not in "\n;#" and self.reserved() != "do":
                self._read_items()
        self._add_head(start)
        if self.text.startswith(";", self.at):
            self.at += 1
        self.skip_lines()
        if self.reserved() != "do":
            raise _unexpected(self.text[self.at : self.at + 1], self.at)
        self.at += len("do")
        with self.nested():
            self.read_list(frozenset({"done"}))

    def _read_items(self) -> None:
        if self.read_word().value != "in":
            raise _unexpected(self.text[self.at : self.at + 1], self.at)
        self.skip_blanks()
        while self.text[self.at : self.at + 1] not in "\n;#":
            self.read_word()
            self.skip_blanks()

    def _read_case(self, start: int) -> None:
        self.skip_blanks()
        self.read_word()
        self._add_head(start)
        self.skip_lines()
        if not _IN.match(self.text, self.at):
            msg = "a case without in"
            raise UnreadableError(msg, offset=start)
        self.at += 2
        end = ""
        with self.nested():
            while end != "esac":
                self.skip_lines()
                if self.reserved() == "esac":
                    self.at += len("esac")
                    return
                self._read_patterns()
                end = self.read_list(_CASE_ENDS, may_be_empty=True)

    def _read_patterns(self) -> None:
        if self.text.startswith("(", self.at):
            self.at += 1
        while True:
            self.skip_blanks()
            pattern = self.read_word()
            self.note_expansions(pattern.start, pattern.end)
            self.skip_blanks()
            mark = self.text[self.at : self.at + 1]
            self.at += 1
            if mark == ")":
                return
            if mark != "|":
                msg = "a case with a pattern that does not end"
                raise UnreadableError(msg, offset=min(self.at, len(self.text)) - 1)

    def _read_test(self, start: int) -> None:
        while True:
            self.skip_blanks()
            if self.at >= len(self.text):
                msg = "a [[ that is not closed"
                raise UnreadableError(msg, offset=start)
            if self.text[self.at] in META:
                self.at += 1
                continue
            if self.read_word().value == "]]":
                break
        self._add_head(start, test=True)

    def _add_head(self, start: int, *, test: bool = False) -> None:
        self.commands.append(
            Command(start=start, end=self.at, in_function=self.functions > 0, test=test)
        )

    def _read_simple(self) -> None:
        start = end = self.at
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirected = continued = False
        while True:
            continued |= self.skip_blanks()
            if self.read_redirection():
                redirected, end = True, self.at
                continue
            if self.text[self.at : self.at + 1] in "\n;&|)#":  # or at the end
                break
            found = None
            if not words or words[0].value in DECLARING:
                found = read_assignment(self.text, self.at, self.shell)
            if found:
                assignments.append(found)
                self.pass_over(found.value.end)
            else:
                words.append(self.read_word())
            end = self.at
        if words and words[0].continued:
            msg = "a command's name that goes on in the next line"
            raise UnreadableError(msg, offset=start)
        command = Command(
            start=start,
            end=end,
            assignments=tuple(assignments),
            words=tuple(words),
            plain=not (self.depth or self.bound or redirected or self._in_subshell()),
            in_function=self.functions > 0,
            continued=continued,
        )
        self.commands.append(command)

    def _in_subshell(self) -> bool:
        """Tell whether the command just read is part of a pipe or runs in the background."""
        rest = self.text[self.at : self.at + 2]
        return rest[:1] in {"|", "&"} and rest not in {"||", "&&"}
