"""A moment in the past, as an option's value."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

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
