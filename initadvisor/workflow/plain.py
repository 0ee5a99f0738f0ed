"""What is known of images and streams as plain values, for JSON, and back; nothing is trusted."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from initadvisor.model import codec, image, stream

_TYPES = {**vars(codec), **vars(image), **vars(stream)}
"""What the annotations of these modules may name."""


def as_plain(value: object) -> object:
    """Return a value as JSON has it: one with fields as an object that also names its type."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: as_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    return [as_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(hint: Any, plain: Any) -> Any:  # noqa: ANN401 - what both are is found out here
    """Return the value of a type that ``as_plain`` was given.

    Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what is no value of that type.
    """
    if get_origin(hint) is tuple and isinstance(plain, list):
        return tuple(from_plain(get_args(hint)[0], item) for item in plain)
    kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    if plain is None and NoneType in kinds:
        return None
    if isinstance(plain, dict):
        kind = {kind.__name__: kind for kind in kinds}[plain["type"]]
        return kind(**{name: from_plain(part, plain[name]) for name, part in _fields(kind)})
    kind = kinds[0]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(plain)
    if type(plain) is not kind or (kind is int and plain < 0):
        raise TypeError(plain)
    return plain


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a type with theirs; raises ``TypeError`` for one that has none."""
    hints = get_type_hints(kind, localns=_TYPES)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))
