"""A boot's record as plain values (objects, arrays, text, numbers), and back: for JSON.

It is the form in which records are kept and exchanged between machines, so nothing that is read is
trusted: whatever is no record, or is too large for one, raises ``ValueError``.
"""

from __future__ import annotations

import functools
import re
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Union, cast, get_args, get_origin, get_type_hints

from initadvisor.model import attribution, boot_marks, boot_phases, loader, read_interval
from initadvisor.model.boot_record import BootRecord
from initadvisor.model.certainty import Certainty
from initadvisor.model.errors import UsageError
from initadvisor.model.rejection import Reason
from initadvisor.model.setting import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import DataclassInstance

    Plain = dict[str, "Plain"] | list["Plain"] | str | int | bool | None

_MOST_TEXT = 8192
_MOST_ITEMS = 256
_LARGEST = 2**63 - 1
"""What fits SQLite's numbers."""

_IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)

_NAMES = {
    **{
        name: value
        for module in (attribution, boot_marks, boot_phases, loader, read_interval)
        for name, value in vars(module).items()
        if isinstance(value, type)
    },
    **{kind.__name__: kind for kind in (Certainty, Reason, Setting, datetime)},
}
"""What the annotations of the record's types may name but their modules import for types only."""


def as_plain(record: BootRecord) -> dict[str, Plain]:
    """Return a record as plain values; a field that has its default is left out."""
    return _object(record)


def as_record(plain: object) -> BootRecord:
    """Return the record that plain values stand for; names that are not known are passed over.

    Raises ``ValueError`` for what is no record; the message says where.
    """
    record = cast("BootRecord", _value(BootRecord, plain, "record"))
    for where, identifier in (("boot_id", record.boot_id), ("machine", record.machine)):
        if identifier is not None and not _IDENTIFIER.fullmatch(identifier):
            raise _wrong(where, identifier)
    return record


def _object(value: DataclassInstance) -> dict[str, Plain]:
    return {
        field.name: _plain(getattr(value, field.name))
        for field in fields(value)
        if not _is_default(field, getattr(value, field.name))
    }


def _is_default(field: Field[object], value: object) -> bool:
    if field.default_factory is not MISSING:
        return value == field.default_factory()
    return value == field.default


def _plain(value: object) -> Plain:
    match value:
        case Setting():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case StrEnum():
            return value.value
        case None | bool() | int() | str():
            return value
        case tuple():
            return [_plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _object(value)
        case _:
            raise TypeError(value)


def _value(kind: object, plain: object, where: str) -> object:
    """Return the value of one type; unions are of None, or of types with fields of their own."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        kinds = get_args(kind)
        if plain is None and types.NoneType in kinds:
            return None
        return _value(_fitting([k for k in kinds if k is not types.NoneType], plain), plain, where)
    if origin is tuple:
        (item, _) = get_args(kind)
        if not isinstance(plain, list) or len(plain) > _MOST_ITEMS:
            raise _wrong(where, plain)
        return tuple(_value(item, each, f"{where}[{n}]") for n, each in enumerate(plain))
    if isinstance(kind, type) and is_dataclass(kind) and kind is not Setting:
        return _read_object(kind, plain, where)
    return _scalar(kind, plain, where)


def _fitting(kinds: list[object], plain: object) -> object:
    """Return the first of the types all of whose fields without a default are there."""
    given = plain.keys() if isinstance(plain, dict) else set()
    for kind in kinds[:-1]:
        if isinstance(kind, type) and is_dataclass(kind) and _needed(kind) <= given:
            return kind
    return kinds[-1]


def _read_object(kind: type[DataclassInstance], plain: object, where: str) -> object:
    if not isinstance(plain, dict) or len(plain) > _MOST_ITEMS:
        raise _wrong(where, plain)
    if missing := _needed(kind) - plain.keys():
        msg = f"{where} lacks {', '.join(sorted(missing))}"
        raise ValueError(msg)
    values = {
        name: _value(hint, plain[name], f"{where}.{name}")
        for name, hint in _hints(kind).items()
        if name in plain
    }
    return kind(**values)


def _scalar(kind: object, plain: object, where: str) -> object:
    if kind is bool and isinstance(plain, bool):
        return plain
    if kind is int and type(plain) is int and abs(plain) <= _LARGEST:
        return plain
    if isinstance(plain, str) and len(plain) <= _MOST_TEXT and isinstance(kind, type):
        try:
            return _from_text(kind, plain)
        except (ValueError, OverflowError, UsageError) as err:
            raise _wrong(where, plain) from err
    raise _wrong(where, plain)


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


@functools.cache
def _hints(kind: type[DataclassInstance]) -> Mapping[str, object]:
    hints = get_type_hints(kind, localns=_NAMES)
    return {field.name: hints[field.name] for field in fields(kind)}


@functools.cache
def _needed(kind: type[DataclassInstance]) -> frozenset[str]:
    return frozenset(
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    )
