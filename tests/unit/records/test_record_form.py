"""A record survives JSON as it is; whatever is no record is refused, and nothing else happens."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from initadvisor.records.boot import BootRecord, as_plain, as_record
from initadvisor.records.read_interval import NoInterval
from tests.fixtures.boots import boot_record, full_record

VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    *(st.lists(st.integers(), max_size=3), st.dictionaries(st.text(), st.integers(), max_size=3)),
)
OFTEN = settings(max_examples=2 * settings().max_examples, suppress_health_check=list(HealthCheck))


def exchanged(record: BootRecord) -> BootRecord:
    """Return what another machine makes of a record."""
    return as_record(json.loads(json.dumps(as_plain(record))))


def plain() -> dict[str, Any]:
    """Return a record with everything in it as plain values."""
    loaded: dict[str, Any] = json.loads(json.dumps(as_plain(full_record())))
    return loaded


@pytest.mark.parametrize("record", [boot_record(), full_record()], ids=["ordinary", "full"])
def test_a_record_comes_back_as_it_was(record: BootRecord) -> None:
    assert exchanged(record) == record


def test_an_interval_that_is_not_known_comes_back_as_that() -> None:
    record = boot_record()
    without = {**as_plain(record), "read": {"reason": "GRUB on BIOS firmware records no times"}}
    assert as_record(without).read == NoInterval(reason="GRUB on BIOS firmware records no times")


def test_the_full_record_says_something_in_every_field() -> None:
    assert plain().keys() == {field.name for field in fields(BootRecord)}


def test_what_is_not_said_is_left_out() -> None:
    assert "notes" not in as_plain(boot_record())
    assert "menu_us" not in json.dumps(as_plain(boot_record()))


def test_names_of_a_later_version_are_passed_over() -> None:
    later = plain()
    later["weather"] = "fine"
    later["timestamps"]["mood"] = {"good": [1]}
    assert as_record(later) == full_record()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"boot_id": "x"}, "boot_id cannot be 'x'"),
        ({"boot_id": "A" * 32}, "boot_id cannot be"),
        ({"machine": "../../etc"}, "machine cannot be"),
        ({"source": "rumour"}, "record.source cannot be 'rumour'"),
        ({"started_at": "2026-03-01T12:00:00"}, "record.started_at cannot be"),
        ({"started_at": "0001-01-01T00:00:00+23:59"}, "record.started_at cannot be"),
        ({"started_at": 1}, "record.started_at cannot be 1"),
        ({"timestamps": []}, "record.timestamps cannot be list"),
        ({"timestamps": {"begin_us": 1.5}}, "record.timestamps.begin_us cannot be float"),
        ({"timestamps": {"begin_us": True}}, "record.timestamps.begin_us cannot be True"),
        ({"timestamps": {"begin_us": 2**63}}, "record.timestamps.begin_us cannot be"),
        ({"timestamps": {"begun": 1}}, "record.timestamps.begun cannot be 1"),
        ({"timestamps": {"failures": "all"}}, "record.timestamps.failures cannot be 'all'"),
        ({"notes": ["a"] * 300}, "record.notes cannot be list"),
        ({"notes": [None]}, r"record.notes\[0\] cannot be None"),
        ({"notes": ["a" * 10_000]}, r"record.notes\[0\] cannot be"),
        ({"rejections": ["boring"]}, r"record.rejections\[0\] cannot be 'boring'"),
        ({"read": {"source": "hearsay"}}, "record.read lacks reason"),
        ({"attribution": {"certainty": "certain"}}, "record.attribution lacks reason"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        as_record({**plain(), **change})


def test_a_setting_that_is_none_is_refused() -> None:
    changed = plain()
    changed["attribution"]["images"][0]["setting"] = "zip -9"
    with pytest.raises(ValueError, match="setting cannot be 'zip -9'"):
        as_record(changed)


@OFTEN
@given(VALUES)
def test_anything_else_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match="record"):
        as_record(value)


@OFTEN
@given(st.data())
def test_a_record_with_anything_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    changed = plain()
    place: Any = changed
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [v for v in (place.values() if isinstance(place, dict) else place) if v]
        inner = [value for value in inner if isinstance(value, dict | list)]
        if not inner:
            break
        place = data.draw(st.sampled_from(inner))
    key = data.draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.just(0))
    place[key] = data.draw(VALUES)
    try:
        record = as_record(changed)
    except ValueError:
        return
    assert exchanged(record) == record


def test_the_same_class_has_the_same_key_and_another_has_not() -> None:
    one, other = boot_record(1), boot_record(2, unpack_us=300_000, read_us=1)
    assert one.class_key == other.class_key
    assert one.class_key != boot_record(3, kernel="6.13.0 #1").class_key


def of_machine(product: str, *, processor: str = "A Processor") -> BootRecord:
    marks = boot_record().timestamps
    machine = replace(marks.machine, product=product, processor=processor)
    return replace(boot_record(), timestamps=replace(marks, machine=machine))


def test_firmware_and_microcode_are_updated_without_being_another_machine() -> None:
    one = of_machine("A Machine, BIOS 1.0 01/01/2026")
    updated = of_machine("A Machine, BIOS 1.1 01/02/2026")
    assert one.class_key != updated.class_key
    assert one.hardware_key == updated.hardware_key
    another = of_machine("Another Machine, BIOS 1.0 01/01/2026")
    with_another_processor = of_machine("A Machine, BIOS 1.0 01/01/2026", processor="Faster")
    keys = {each.hardware_key for each in (one, another, with_another_processor)}
    assert len(keys) == 3


def test_the_disk_is_none_of_the_class_for_a_journal_does_not_name_it() -> None:
    known, unknown = boot_record(1, boot_disk="SSD, 1000.2 GB"), boot_record(2)
    assert known.class_key == unknown.class_key
