"""Dataclasses as plain values (objects, arrays, text, numbers), and back, by their annotations.

It is the form in which they are kept as JSON. Nothing that is read is trusted: what is no value of
the type that is asked for, or is too large for one, is a ``ValueError`` that says where.
"""

from __future__ import annotations

import functools
import json
import types
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from initadvisor.core.errors import UsageError
from initadvisor.core.plain_values import from_json, number
from initadvisor.core.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType
    from typing import TypeAlias

    from _typeshed import DataclassInstance

    Plain: TypeAlias = dict[str, "Plain"] | list["Plain"] | str | int | float | bool | None

    Names: TypeAlias = tuple[ModuleType | type, ...]


_Kind = TypeVar("_Kind", bound="DataclassInstance")


class NewerSchemaError(ValueError):
    """A newer version has written it, in a way that this one does not know."""


class OlderSchemaError(ValueError):
    """An earlier version has written it, in a way that this one does not know any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What is read at most.

    ``characters`` of a text, ``items`` of an array or an object, numbers from ``least`` on, and
    integers up to ``most``. ``unknown_names``: fields that are not known, a later version's, are
    passed over.
    """

    characters: int = 1 << 20
    items: int = 1 << 16
    least: int = 0
    most: int = (1 << 63) - 1
    unknown_names: bool = False


def to_plain(value: DataclassInstance, *, defaults: bool = True) -> dict[str, Plain]:
    """Return an object; without ``defaults``, fields that have theirs are left out, however deep.

    Raises ``TypeError`` for what cannot be kept.
    """
    return {
        field.name: _plain(getattr(value, field.name), defaults=defaults)
        for field in fields(value)
        if defaults or not _is_default(field, getattr(value, field.name))
    }


def from_plain(
    kind: type[_Kind],
    plain: object,
    *,
    where: str = "record",
    names: Names = (),
    limits: ReadLimits = ReadLimits(),
) -> _Kind:
    """Return the value that ``to_plain`` was given; raises ``ValueError`` for what is none.

    A field that has a default may be missing. ``where``: what errors call it. ``names``: types,
    and modules with types, that annotations name but their modules import for types only.
    """
    return _Reader(names=names, limits=limits).instance(kind, plain, where)


def to_document(value: DataclassInstance, *, schema: int, indent: int = 2) -> bytes:
    """Return a value as a file that people can read, with the number of its layout."""
    plain = {"schema": schema, **to_plain(value)}
    return json.dumps(plain, indent=indent).encode() + b"\n"


def from_document(
    kind: type[_Kind],
    text: bytes,
    *,
    schema: int,
    where: str = "record",
    names: Names = (),
    limits: ReadLimits = ReadLimits(),
) -> _Kind:
    """Return the value that ``to_document`` was given.

    Raises ``NewerSchemaError`` and ``OlderSchemaError`` for another layout, and ``ValueError``.
    """
    plain = from_json(text)
    if not isinstance(plain, dict):
        raise _wrong(where, plain)
    if "schema" not in plain:
        msg = f"{where} lacks schema"
        raise ValueError(msg)
    found = plain.pop("schema")
    if type(found) is not int:
        where += ".schema"
        raise _wrong(where, found)
    if found != schema:
        error = NewerSchemaError if found > schema else OlderSchemaError
        msg = f"it has schema {found}, not {schema}"
        raise error(msg)
    return from_plain(kind, plain, where=where, names=names, limits=limits)


def _is_default(field: Field[Any], value: object) -> bool:
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return bool(value == field.default)


def _plain(value: object, *, defaults: bool) -> Plain:
    match value:
        case Setting():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case StrEnum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [_plain(item, defaults=defaults) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return to_plain(value, defaults=defaults)
        case _:
            raise TypeError(value)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of a dataclass with their types, and those that have no default."""

    hints: Mapping[str, object]
    needed: frozenset[str]


@functools.cache
def _fields(kind: type[DataclassInstance], names: Names) -> _Fields:
    known: dict[str, Any] = {}
    for name in names:
        known |= {name.__name__: name} if isinstance(name, type) else vars(name)
    hints = get_type_hints(kind, localns=known)
    own = fields(kind)
    needed = (f.name for f in own if f.default is MISSING and f.default_factory is MISSING)
    return _Fields({field.name: hints[field.name] for field in own}, frozenset(needed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    names: Names
    limits: ReadLimits

    def instance(self, kind: type[_Kind], plain: object, where: str) -> _Kind:
        if not isinstance(plain, dict) or len(plain) > self.limits.items:
            raise _wrong(where, plain)
        known = _fields(kind, self.names)
        if missing := known.needed - plain.keys():
            msg = f"{where} lacks {', '.join(sorted(missing))}"
            raise ValueError(msg)
        if not self.limits.unknown_names and (unknown := plain.keys() - known.hints.keys()):
            msg = f"{where} has no {min(unknown)[:60]!r}"
            raise ValueError(msg)
        return kind(
            **{
                name: self.value(hint, plain[name], f"{where}.{name}")
                for name, hint in known.hints.items()
                if name in plain
            }
        )

    def value(self, kind: Any, plain: object, where: str) -> object:  # noqa: ANN401 - any hint
        """Return the value of one type; unions are of None, or of dataclasses."""
        origin = get_origin(kind)
        if origin in {Union, types.UnionType}:
            kinds = get_args(kind)
            if plain is None and types.NoneType in kinds:
                return None
            given = frozenset(plain) if isinstance(plain, dict) else frozenset[str]()
            return self.value(self._fitting(kinds, given), plain, where)
        if origin is tuple:
            (item, _) = get_args(kind)
            if not isinstance(plain, list) or len(plain) > self.limits.items:
                raise _wrong(where, plain)
            return tuple(self.value(item, each, f"{where}[{n}]") for n, each in enumerate(plain))
        if isinstance(kind, type) and is_dataclass(kind) and kind is not Setting:
            return self.instance(kind, plain, where)
        try:
            return self._scalar(kind, plain)
        except (ValueError, OverflowError, UsageError) as err:
            raise _wrong(where, plain) from err

    def _fitting(self, kinds: Sequence[Any], given: frozenset[str]) -> object:
        """Return the type that needs no other fields and knows most of those given, or the last."""
        kinds = [kind for kind in kinds if kind is not types.NoneType]
        if len(kinds) == 1:
            return kinds[0]
        fields_of = {kind: _fields(kind, self.names) for kind in kinds}
        fitting = [kind for kind in kinds if fields_of[kind].needed <= given]
        known = {kind: len(given & fields_of[kind].hints.keys()) for kind in fitting}
        return max(fitting, key=known.__getitem__, default=kinds[-1])

    def _scalar(self, kind: type, plain: object) -> object:
        if kind is float:
            return number(plain, least=self.limits.least)
        if kind is int and type(plain) is int and self.limits.least <= plain <= self.limits.most:
            return plain
        if kind is bool and isinstance(plain, bool):
            return plain
        if isinstance(plain, str) and len(plain) <= self.limits.characters:
            return _from_text(kind, plain)
        raise ValueError(plain)


def _from_text(kind: type, text: str) -> object:
    if kind is str:
        return text
    if kind is Setting:
        return Setting.parse(text)
    if kind is datetime:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError(text)
        return at.astimezone(UTC)
    if issubclass(kind, StrEnum):
        return kind(text)
    raise ValueError(text)


def _wrong(where: str, plain: object) -> ValueError:
    words = repr(plain)[:60] if isinstance(plain, str | int | None) else type(plain).__name__
    return ValueError(f"{where} cannot be {words}")
