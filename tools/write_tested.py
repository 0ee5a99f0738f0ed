"""Writes README's table of what guests have shown, from the marks of their tests.

    write_tested.py README

A test says what it shows, and where: ``pytest.mark.shows(what, *loaders, generator=, system=)``.
``tests/unit/test_readme.py`` compares the table with the one in README.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- by tools/write_tested.py -->\n"
END: Final = "<!-- end -->\n"

SHOWN: Final = (
    *("image read", "order and default of entries", "measuring", "kernel upgrade"),
    *("trial boot", "trial that panics", "campaign", "apply", "next kernel", "less content"),
    *("kernel-install add", "rollback", "power cuts", "signed PCR 11"),
    "package by apt",
)
"""In the order of the table; a mark names one or more of them, with commas between."""

_GENERATOR, _SYSTEM = "initramfs-tools", "Debian 13"


def table() -> str:
    """Return the table; raises ``ValueError`` for a mark that says what is not known."""
    rows: dict[tuple[str, str, str], set[str]] = {}
    for what, loaders, generator, system in _marks():
        if unknown := {*what} - {*SHOWN}:
            msg = f"shows() does not know {', '.join(sorted(unknown))}: add it to SHOWN"
            raise ValueError(msg)
        for loader in loaders:
            rows.setdefault((loader, generator, system), set()).update(what)
    lines = ["| boot loader | image made by | on | shown |\n", "|---|---|---|---|\n"]
    for row in sorted(rows, key=lambda row: (-len(rows[row]), row)):
        shown = ", ".join(what for what in SHOWN if what in rows[row])
        lines.append(f"| {' | '.join(row)} | {shown} |\n")
    return "".join(lines)


def _marks() -> Iterator[tuple[list[str], list[str], str, str]]:
    for path in sorted((ROOT / "tests/guests").rglob("test_*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.shows":
                what, *loaders = (ast.literal_eval(word) for word in call.args)
                named = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
                where = named.get("generator", _GENERATOR), named.get("system", _SYSTEM)
                yield what.split(", "), loaders, *where


def with_table(readme: str) -> str:
    """Return README's text with the table between its comments."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        msg = f"the text lacks {BEGIN.strip()} or, after it, {END.strip()}"
        raise ValueError(msg)
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> None:
    """Write the table into the file that is named."""
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
