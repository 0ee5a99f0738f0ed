"""Configuration files as texts, and what is changed in them.

Texts are what ``bytes.decode("utf-8", "surrogateescape")`` gives, with carriage returns as they
are, so that encoding them the same way gives every other byte back.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.rewrite.syntax import Shell


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
