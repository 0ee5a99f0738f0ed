"""Whether the fields of a value that was read hold what their annotations say."""

from __future__ import annotations

import functools
import types
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping


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
