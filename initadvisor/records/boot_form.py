"""A boot's record as plain values for JSON and as the text that is kept, and back.

It is the form in which records are kept and exchanged between machines, so nothing that is read is
trusted: whatever is no record, or is too large for one, raises ``ValueError``.
Text is only made of what is sure to be read again.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Certainty
from initadvisor.core.plain_values import from_json
from initadvisor.core.serialisation import ReadLimits, from_plain, to_plain
from initadvisor.core.settings import Setting
from initadvisor.records import attribution, boot_start, marks, phases, read_interval
from initadvisor.records.boot import BootRecord
from initadvisor.records.rejection import RejectionReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.core.serialisation import Plain


_LIMITS = ReadLimits(characters=8192, items=256, unknown_names=True)
_IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)

_NAMES = (
    *(attribution, marks, phases, boot_start, read_interval),
    *(Certainty, RejectionReason, Setting, datetime),
)


def as_plain(record: BootRecord) -> dict[str, Plain]:
    """Return a record as plain values; a field that has its default is left out."""
    return to_plain(record, defaults=False)


def as_record(plain: object) -> BootRecord:
    """Return the record that plain values stand for; names that are not known are passed over.

    Raises ``ValueError`` for what is no record; the message says where.
    """
    record = from_plain(BootRecord, plain, names=_NAMES, limits=_LIMITS)
    for where, identifier in (("boot_id", record.boot_id), ("machine", record.machine)):
        if identifier is not None and not _IDENTIFIER.fullmatch(identifier):
            msg = f"{where} cannot be {identifier[:60]!r}"
            raise ValueError(msg)
    return record


_HOUR_US = 3_600_000_000
"""No part of a boot that is measured here takes longer; systemd has the same bound."""

_YEAR_US = 366 * 24 * _HOUR_US
_MOST = {"_us": _YEAR_US, "_ns": _YEAR_US * 1000, "_kib": 1 << 30, "_bytes": 1 << 40}
"""By their unit, what numbers are at most: whoever reads more has misread."""

_STARTED = "record.started_at"
_FIRST_YEAR, _LAST_YEAR = 1970, 2999
_LONGEST = 100_000
"""Characters; what is exported as a table has to fit a field of csv's (131072)."""


class UnfitRecordError(ValueError):
    """A record that no boot can have left, or that could not be read again; says why."""


def as_text(record: BootRecord) -> str:
    """Return a record as JSON in ASCII; ``as_record`` gives it back as it was.

    Raises ``UnfitRecordError`` where it would not, and for figures that no boot can have: what was
    misread, or made up, is best told when it is about to be kept.
    """
    try:
        plain = as_plain(record)
        _check_numbers(plain)
        _check_figures(record)
        text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
        # Lone surrogates: those that stand for a byte of a path can be kept as text, others not.
        json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogateescape")
        same = as_record(from_json(text)) == record
    except UnfitRecordError:
        raise
    except UnicodeEncodeError as err:
        msg = "it holds text that is none"
        raise UnfitRecordError(msg) from err
    except ValueError as err:
        raise UnfitRecordError(str(err)) from err
    except (TypeError, AttributeError, OverflowError) as err:
        msg = f"it holds what no record does: {str(err)[:200]}"
        raise UnfitRecordError(msg) from err
    if not same:
        msg = "it would not be read again as it is"
        raise UnfitRecordError(msg)
    if len(text) > _LONGEST:
        msg = f"it is longer than {_LONGEST} characters"
        raise UnfitRecordError(msg)
    return text


def _check_numbers(plain: Plain) -> None:
    for where, number in _numbers(plain, "record"):
        most = next((most for unit, most in _MOST.items() if where.endswith(unit)), None)
        if number < 0 or (most is not None and number > most):
            raise _impossible(where, number)


def _numbers(plain: Plain, where: str) -> Iterator[tuple[str, float]]:
    """Yield all numbers with their places."""
    match plain:
        case bool() | str() | None:
            pass
        case int() | float():
            yield where, plain
        case dict():
            for name, value in plain.items():
                yield from _numbers(value, f"{where}.{name}")
        case list():
            for value in plain:
                yield from _numbers(value, where)


def _check_figures(record: BootRecord) -> None:
    """Raise for what cannot be together, or is too long for a part of a boot.

    Marks of a boot that is no sample may be in any order: that is most often why it is none.
    """
    if not _FIRST_YEAR <= record.started_at.year <= _LAST_YEAR:
        raise _impossible(_STARTED, record.started_at.isoformat())
    seen = record.shadow
    for name, duration_us in (
        ("unpack_us", record.unpack_us),
        ("begin_to_init_us", record.begin_to_init_us),
        ("slack_us", record.timestamps.slack_us),
        ("read_us", record.read_us),
        ("reboot_gap_us", record.reboot_gap.duration_us),
        ("shadow_us", seen.shadow_us),
        ("shadow_min_us", seen.shadow_min_us),
        ("shadow_max_us", seen.shadow_max_us),
        ("rest_us", seen.rest_us),
    ):
        if duration_us is not None and duration_us > _HOUR_US:
            raise _impossible(name, duration_us)
    if not record.kernel_counts:
        return
    if record.unpack_us is None:
        msg = "the boot has no time to unpack, and no reason for that"
        raise UnfitRecordError(msg)
    marks = (record.timestamps.begin_us, record.timestamps.end_us, record.timestamps.run_init_us)
    told = [mark for mark in marks if mark is not None]
    if told != sorted(told):
        msg = f"the kernel's marks are not in order: {', '.join(map(str, told))}"
        raise UnfitRecordError(msg)


def _impossible(where: str, value: object) -> UnfitRecordError:
    return UnfitRecordError(f"{where} cannot be {value}")
