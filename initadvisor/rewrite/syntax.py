"""The parts of a configuration file and where they stand, and the shells that read such files.

Offsets count characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class UnreadableError(Exception):
    """Text that is no complete shell code, or more involved than what is understood here.

    Never reaches the user: who parses knows the file and refuses with path and line.
    """

    def __init__(self, reason: str, *, offset: int) -> None:
        super().__init__(f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One shell word. ``value`` is what it stands for, None where the shell computes that.

    ``continued``: it goes on behind a backslash at the end of a line.
    """

    start: int
    end: int
    value: str | None
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """The ``(...)`` of an assignment to an array.

    ``literal`` is false where it is none after all: bash takes ``(a)b`` for a string.
    """

    start: int
    end: int
    elements: tuple[Word, ...]
    has_comments: bool = False
    literal: bool = True

    @property
    def continued(self) -> bool:
        """Whether an element goes on behind a backslash at the end of a line."""
        return any(word.continued for word in self.elements)

    @property
    def values(self) -> tuple[str, ...] | None:
        """The elements, None where the shell computes one."""
        if not self.literal or any(word.value is None for word in self.elements):
            return None
        return tuple(word.value or "" for word in self.elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``NAME=value`` or ``NAME+=value``; ``whole`` is false for ``NAME[0]=value``."""

    name: str
    append: bool
    whole: bool
    start: int
    value: Word | Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A simple command, or the head of a compound one (``for x in``, ``[[ ... ]]``).

    ``plain``: it runs whenever the file is read, in the shell that reads it, and redirects nothing.
    ``in_function``: it runs when the function is called, if ever. ``test``: it can only compare.
    """

    start: int
    end: int
    assignments: tuple[Assignment, ...] = ()
    words: tuple[Word, ...] = ()
    plain: bool = False
    in_function: bool = False
    continued: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment that has its line to itself, where a command could stand as well."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The commands of a text in its order, and the comments between them."""

    commands: tuple[Command, ...]
    comments: tuple[Comment, ...] = ()


class Shell(StrEnum):
    """The shell that a generator's configuration is written for."""

    BASH = "bash"
    SH = "sh"
