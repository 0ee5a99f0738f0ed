"""JSON, TOML and numbers of unknown origin, read strictly: also NaN, infinity, 400 digits."""

from __future__ import annotations

import json
import tomllib
from typing import Any

_TOO_DEEP = "it is nested too deeply"
_DEEPEST = 100
"""Far more than anything has here, and few enough for whoever walks through it, or prints it."""


def from_json(text: bytes | str) -> Any:  # noqa: ANN401 - what it is, the caller finds out
    """Return the value; raises ``ValueError`` for what is no JSON, or is nested too deeply.

    The latter would end in a ``RecursionError``, which is no ``ValueError``: here, or at whoever
    puts the value into words.
    """
    try:
        value = json.loads(text)
    except RecursionError as err:
        raise ValueError(_TOO_DEEP) from err
    _require_shallow(value)
    return value


def from_toml(text: str) -> dict[str, Any]:
    """Return the tables; raises ``ValueError`` like ``from_json``."""
    try:
        tables = tomllib.loads(text)
    except RecursionError as err:
        raise ValueError(_TOO_DEEP) from err
    _require_shallow(tables)
    return tables


def _require_shallow(value: object) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


_MOST = 1e15
"""No figure of a machine is larger: bytes, milliseconds, bytes per second."""

_LEAST_POSITIVE = 1e-9


def number(value: object, *, least: float = 0.0, most: float = _MOST) -> float:
    """Return a number between the two; raises ``ValueError`` for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    if not least <= value <= most:
        raise ValueError(value)
    return float(value)


def positive(value: object) -> float:
    """Return a number above 0; raises ``ValueError`` for all else."""
    return number(value, least=_LEAST_POSITIVE)
