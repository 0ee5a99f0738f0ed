"""A report as Markdown, for forums and bug reports: the verdict, one table, the machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.report.figures import in_ms, interval_ms, megabytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.report.report import Report, ReportedSetting

_MARKS = re.compile(r"[\\`*\[\]<>#|~@&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_TITLES = ("setting", "size", "read", "unpack", "sooner than today", "95 %")


def markdown(report: Report) -> str:
    """Return the text; what it quotes cannot be taken for Markdown or HTML."""
    first, *others = report.verdict
    rows = [tuple(map(_plain, _cells(report, one))) for one in report.settings]
    parts = [
        f"**{_plain(first)}** {_plain(' '.join(others))}".rstrip(),
        "\n".join(_table(rows)),
        "\n".join(f"- {line.title}: {_plain(line.text)}" for line in report.machine),
    ]
    return "\n\n".join(parts) + "\n"


def _cells(report: Report, one: ReportedSetting) -> Iterator[str]:
    yield str(one.setting)
    yield megabytes(one.size_bytes)
    yield in_ms(one.read_ms.middle)
    yield in_ms(one.unpack_ms.middle)
    if one.setting == report.today:
        yield from ("today", "")
    else:
        yield in_ms(one.saving_ms.middle)
        yield one.unfit or interval_ms(one.saving_ms)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table that can be read as it is, too."""
    widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    marks = ["-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    for row in (_TITLES, marks, *rows):
        first, *others = (
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"| {' | '.join([first, *others])} |"


def _plain(text: str) -> str:
    return _MARKS.sub(lambda found: f"\\{found[0]}", text)
