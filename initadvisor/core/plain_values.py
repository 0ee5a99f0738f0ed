"""Values and text of unknown origin: read strictly, and made fit to be shown.

Numbers out of JSON, where anything may stand: also NaN, infinity, and 400 digits.

Text of unknown origin: made fit to be shown, and kept byte for byte.
"""

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


_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""How Python writes bytes that are no UTF-8, in file names above all (PEP 383)."""


def shown(text: str) -> str:
    """Return ``text`` in a form that cannot fool or command a terminal.

    What is not printable (control characters, escape sequences, marks that turn the direction of
    writing) or was not UTF-8 is written as an escape.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def encoded(text: str) -> bytes:
    """Return text as the bytes it was read from; what is no UTF-8 survives."""
    return text.encode(errors="surrogateescape")


def decoded(content: bytes) -> str:
    """Return bytes as text from which ``encoded`` makes the same bytes."""
    return content.decode(errors="surrogateescape")


def _escape(character: str) -> str:
    if ord(character) in _ESCAPED_BYTES:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
