"""What is kept of a boot can be read again, and is what a boot can be."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.records.boot import RejectionReason, UnfitRecordError, as_record, as_text
from initadvisor.store import boots
from initadvisor.store.connection import connect_memory, transaction
from initadvisor.store.schema import make_tables
from tests.fixtures.boots import EPOCH, boot_record, full_record

if TYPE_CHECKING:
    from initadvisor.records.boot import BootRecord

TEXTS = ("\x1b]0;owned\x07", "\0", "\ud83d", "\ude00", "\udcff", "\x7f\x9b\u202e", "x" * 9000, "")
NUMBERS = (-1, 0, 1, -(2**63), 2**53, 2**62, 2**63 - 1, 2**63, 10**30, 10**5000)
MOMENTS = (
    *(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    *(datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=14)))),  # noqa: DTZ001 - an odd one
)
ODD = st.one_of(
    st.sampled_from([*TEXTS, *NUMBERS, *MOMENTS, math.nan, math.inf, 0.5, None, True, b"", ()]),
    *(st.integers(), st.floats(), st.text(st.characters(), max_size=20)),
    st.sampled_from([("\x1b",) * 2, ("a",) * 300, ("b" * 8000,) * 200, (None,), (1,)]),
)


def changed(value: Any, data: st.DataObject) -> Any:  # noqa: ANN401 - that is the point
    """Return a value with something odd in one place of it, whatever that is a place for."""
    name = data.draw(st.sampled_from([field.name for field in fields(value)]))
    inner = getattr(value, name)
    if is_dataclass(inner) and data.draw(st.booleans()):
        return replace(value, **{name: changed(inner, data)})
    return replace(value, **{name: data.draw(ODD)})


@given(st.data())
def test_an_odd_record_is_kept_as_it_is_or_refused(data: st.DataObject) -> None:
    record = data.draw(st.sampled_from([boot_record(), full_record()]))
    for _ in range(data.draw(st.integers(1, 3))):
        record = changed(record, data)
    try:
        as_text(record)
    except UnfitRecordError:
        return
    connection = connect_memory()
    make_tables(connection, "memory")
    with transaction(connection):
        boots.add(connection, record)
    with transaction(connection, write=False):
        assert list(boots.recorded(connection, since=None, limit=None, source=None)) == [record]


@pytest.mark.parametrize("record", [boot_record(), full_record()], ids=["ordinary", "full"])
def test_a_record_is_text_that_is_read_again(record: BootRecord) -> None:
    text = as_text(record)
    assert text.isascii()
    assert as_record(json.loads(text)) == record


def with_marks(marks: dict[str, Any]) -> BootRecord:
    record = boot_record()
    return replace(record, timestamps=replace(record.timestamps, **marks))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (boot_record(unpack_us=0), "no time to unpack, and no reason for that"),
        (boot_record(unpack_us=-5), "slack|no time to unpack|cannot be -5"),
        (boot_record(unpack_us=10**12), "unpack_us cannot be 1000000000000"),
        (boot_record(read_us=10**12), "read_us cannot be 1000000000000"),
        (boot_record(read_us=-1), "record.read.duration_us cannot be -1"),
        (with_marks({"run_init_us": 100}), "marks are not in order: 300000, 500000, 100"),
        (with_marks({"loaded_kib": 2**62}), "loaded_kib cannot be"),
        (replace(boot_record(), started_at=EPOCH.replace(year=1)), "started_at cannot be 0001"),
        (replace(boot_record(), started_at=EPOCH.replace(year=9999)), "started_at cannot be 9999"),
        (replace(boot_record(), notes=("\ud83d",)), "text that is none"),
        (replace(boot_record(), notes=("a" * 8000,) * 20), "longer than 100000 characters"),
        (replace(boot_record(), boot_id="A" * 32), "boot_id cannot be 'AAA"),
    ],
)
def test_what_no_boot_can_be_is_refused_with_its_reason(record: BootRecord, words: str) -> None:
    with pytest.raises(UnfitRecordError, match=words):
        as_text(record)


def test_marks_that_are_why_a_boot_is_no_sample_may_be_in_any_order() -> None:
    record = with_marks({"run_init_us": 100})
    contradictory = replace(record, rejections=(RejectionReason.CONTRADICTORY,))
    assert as_record(json.loads(as_text(contradictory))) == contradictory
    assert contradictory.begin_to_init_us is None
