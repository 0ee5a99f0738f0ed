"""Options that do not go together, and types: a file's name, a moment in the past, numbers, ranges.

Digits are ASCII's, and nothing stands between them: what Python also takes for a number ("nan",
"1_000", other scripts' digits) is none here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    from initadvisor.decide.whatif_values import GivenValue


def refuse_if(together: object, message: str) -> None:
    """Raise ``click.UsageError`` where options were given together that do not go together."""
    if together:
        raise click.UsageError(message)


class FileName(click.Path):
    """A file that need not be there; an empty name, which Python takes for ".", is none."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; fails as click's own types do."""
        if not str(value):
            self.fail("the name of the file is empty", param, ctx)
        return super().convert(value, param, ctx)


_AGO = re.compile(r"(\d{1,5})([dw])", re.ASCII)
_EVER = datetime.min.replace(tzinfo=UTC)


def moment_since(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Read ``2026-01-31``, ``2026-01-31T08:00`` in local time, or ``90d`` and ``12w`` ago.

    A day so long ago that no clock here can tell it is one since when everything was. Raises
    ``click.BadParameter``.
    """
    if value is None:
        return None
    if found := _AGO.fullmatch(value):
        days = int(found[1]) * (7 if found[2] == "w" else 1)
        return datetime.now(tz=UTC) - timedelta(days=days)
    try:
        at = datetime.fromisoformat(value)
    except ValueError as err:
        msg = f"{value!r} is neither a date like 2026-01-31 nor a time like 90d"
        raise click.BadParameter(msg, ctx=ctx, param=param) from err
    try:
        return at.astimezone(UTC)
    except (ValueError, OverflowError):  # the first day of all, or the last
        return _EVER if at.year == _EVER.year else datetime.max.replace(tzinfo=UTC)


_WHOLE = r"-?[0-9]+"
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_GIVEN = re.compile(rf"({_NUMBER})(?:\.\.({_NUMBER}))?")


class Number(click.FloatRange):
    """A decimal number within a range."""

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fails as click's own types do."""
        if isinstance(value, str) and re.fullmatch(_NUMBER, value) is None:
            self.fail(f"{value!r} is not a number", param, ctx)
        return float(super().convert(float(value), param, ctx)) + 0.0  # -0 is 0


class Single(Number):
    """A decimal number within a range, where the like option of ``whatif`` takes ranges, too."""

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fails as click's own types do."""
        if isinstance(value, str) and ".." in value and _GIVEN.fullmatch(value):
            self.fail(f"{value!r} is a range, which only whatif takes", param, ctx)
        return super().convert(value, param, ctx)


def tables_beginning_with(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the built-in tables, and that it may be a file."""
    from click.shell_completion import CompletionItem

    from initadvisor.advise.truth_tables import truth_table_names

    names = [name for name in truth_table_names() if name.startswith(incomplete)]
    return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


def settings_beginning_with(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return what shells offer for a setting: each codec, and its levels worth trying."""
    from initadvisor.core.codecs import Codec
    from initadvisor.core.settings import Setting

    known = [
        str(setting)
        for codec in Codec
        for setting in (
            Setting(codec),
            *(Setting.at_level(codec, level) for level in codec.spec.worth_trying),
        )
    ]
    return [setting for setting in known if setting.startswith(incomplete)]


def machine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what the user may know of the machine; what is configured holds otherwise."""
    overlap = click.option(
        "--overlap",
        type=Single(min=0, max=1e6),
        metavar="MS",
        help="For how long the kernel is busy before it needs the initramfs, if you know it.",
    )
    read_speed = click.option(
        "--read-speed",
        type=Single(min=0.01, max=1e6),
        metavar="MB/S",
        help="How fast the boot loader reads, if you know it.",
    )
    return read_speed(overlap(command))


class Whole(click.IntRange):
    """A whole number within a range."""

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the number; fails as click's own types do."""
        if isinstance(value, str) and re.fullmatch(_WHOLE, value) is None:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        try:
            return int(super().convert(int(value), param, ctx))
        except ValueError:  # longer than any that Python reads
            self.fail("that number has too many digits", param, ctx)


def number_or_range(
    *, least: float, most: float
) -> Callable[[click.Context, click.Parameter, str | None], GivenValue | None]:
    """Return a callback that reads ``180``, or ``20..2000``: from a number up to a larger one."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> GivenValue | None:
        if value is None:
            return None
        found = _GIVEN.fullmatch(value)
        if found is None:
            msg = f"{value!r} is neither a number nor a range like 20..2000"
            raise click.BadParameter(msg, ctx=ctx, param=param)
        numbers = [float(text) + 0.0 for text in found.groups() if text is not None]
        if not all(least <= number <= most for number in numbers):
            msg = f"{value!r} is not from {least:g} to {most:g}"
            raise click.BadParameter(msg, ctx=ctx, param=param)
        if len(numbers) == 1:
            return numbers[0]
        from initadvisor.decide.whatif_values import Span

        low, high = numbers
        if low >= high:
            msg = f"{value!r} does not lead from a number up to a larger one"
            raise click.BadParameter(msg, ctx=ctx, param=param)
        return Span(low=low, high=high)

    return read
