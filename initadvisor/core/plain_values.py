"""Values and text of unknown origin: read strictly, and made fit to be shown.

JSON and TOML that may be damaged, numbers that may be NaN or have 400 digits, text that may
command a terminal, and whether fields hold what their annotations say.
"""

from __future__ import annotations

import functools
import json
import tomllib
import types
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def require_types(value: object, *, names: Mapping[str, type] = types.MappingProxyType({})) -> None:
    """Raise ``ValueError`` that names the first field, however deep, with a value of another type.

    ``value`` is of a dataclass; ``names`` are those that annotations use and their modules import
    for types only. No number may be negative.
    """
    kind: Any = type(value)
    hints = _hints(kind, tuple(names.items()))
    for field in fields(kind):
        part = getattr(value, field.name)
        if not _fits(part, hints[field.name], names):
            msg = f"{field.name} cannot be {_words(part)}"
            raise ValueError(msg)


@functools.cache
def _hints(kind: type, names: tuple[tuple[str, type], ...]) -> dict[str, Any]:
    """Return what annotations say; whoever asks typing has them compiled anew each time."""
    return get_type_hints(kind, localns=dict(names))


def _fits(part: object, hint: object, names: Mapping[str, type]) -> bool:
    if get_origin(hint) is tuple:
        return type(part) is tuple and all(_fits(each, get_args(hint)[0], names) for each in part)
    kinds = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    if type(part) not in kinds:
        return False
    if is_dataclass(part):
        require_types(part, names=names)
    return not (type(part) is int and part < 0)


def _words(part: object) -> str:
    return repr(part)[:60] if isinstance(part, str | int | None) else type(part).__name__
