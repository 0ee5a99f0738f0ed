"""Entries and configuration of systemd-boot: a key and its value in each line.

The form is that of the Boot Loader Specification (Type #1) and loader.conf(5), as systemd-boot
reads it: white space around both is dropped, also a pair of double quotes around the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_LINE = re.compile(r"(?P<key>\S+)[ \t]+(?P<value>\S.*)")
_COUNTER = re.compile(r"\+\d+(-\d+)?(?=\.(conf|efi)$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues:
    """The lines of a file that say something, in order."""

    lines: tuple[tuple[str, str], ...]

    def all(self, *keys: str) -> tuple[str, ...]:
        """Return the values of every line with one of the keys."""
        return tuple(value for key, value in self.lines if key in keys)

    def last(self, key: str) -> str | None:
        """Return the value that counts: the last one."""
        values = self.all(key)
        return values[-1] if values else None


def parse(text: str) -> KeyValues:
    """Read a file; comments and lines without a value are left out."""
    found = []
    for raw in re.split(r"[\r\n]+", text):
        line = raw.strip(" \t")
        match = _LINE.fullmatch(line)
        if match and not line.startswith("#"):
            found.append((match["key"], _unquoted(match["value"])))
    return KeyValues(lines=tuple(found))


def entry_identifier(file_name: str) -> str:
    """Return what systemd-boot calls an entry: its file's name, small, without boot counters."""
    return _COUNTER.sub("", file_name).lower()


def is_counted(file_name: str) -> bool:
    """Tell whether systemd-boot counts the boots of the entry in this file."""
    return _COUNTER.search(file_name) is not None


def entry_text(comments: str, lines: Sequence[tuple[str, str]]) -> str:
    """Return the text of an entry; ``comments`` are whole lines."""
    return comments + "".join(f"{key} {value}\n" for key, value in lines)


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value
