"""Boots that another machine exported come in as they are, apart, or not at all."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from initadvisor.cli.boots import write_csv, write_json
from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.measure import boot_import as module
from initadvisor.measure.boot_import import import_boots
from initadvisor.records.boot import RecordSource
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.fixtures.boots import OTHER_MACHINE, boot_record, full_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.records.boot import BootRecord

BOTH = pytest.mark.parametrize("form", ["json", "csv"])
FOREIGN = [replace(record, machine=OTHER_MACHINE) for record in (full_record(), boot_record(2))]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine where nothing was measured yet."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Host(root=tmp_path, runner=FakeRunner())


def export(tmp_path: Path, records: Sequence[BootRecord], form: str) -> Path:
    """Write what another machine prints."""
    text = io.StringIO(newline="")
    if form == "json":
        write_json({"schema": 3, "store": "/somewhere"}, records, text)
    else:
        write_csv(records, text)
    path = tmp_path / f"export.{form}"
    path.write_bytes(text.getvalue().encode())
    return path


def all_boots(host: Host) -> Sequence[BootRecord]:
    with open_store(host, readonly=True) as store:
        return store.boots()


def refused(host: Host, path: Path) -> str:
    """Return what is said against a file of which nothing is kept."""
    with pytest.raises(InitadvisorError) as caught:
        import_boots(host, path)
    assert str(path) in caught.value.message
    assert caught.value.message.isprintable()
    assert all_boots(host) == ()
    return caught.value.message


@BOTH
def test_everything_of_a_boot_arrives_but_it_stays_another_machine_s(
    host: Host, tmp_path: Path, form: str
) -> None:
    path = export(tmp_path, FOREIGN, form)
    done = import_boots(host, path)
    assert (done.boots, done.new) == (2, 2)
    expected = [replace(record, source=RecordSource.IMPORT) for record in reversed(FOREIGN)]
    assert list(all_boots(host)) == expected
    with open_store(host, readonly=True) as store:
        assert store.boot_figures() == ()
        assert {group.machine for group in store.boot_groups()} == {OTHER_MACHINE}
    again = import_boots(host, path)
    assert (again.boots, again.new) == (2, 0)


@BOTH
def test_what_this_machine_knows_of_its_boots_stays(host: Host, tmp_path: Path, form: str) -> None:
    with open_store(host) as store:
        store.add_boots([boot_record(2)])
    lie = boot_record(2, unpack_us=1)
    assert import_boots(host, export(tmp_path, [lie], form)).new == 0
    assert all_boots(host) == (boot_record(2),)


@BOTH
def test_an_export_without_boots_is_one(host: Host, tmp_path: Path, form: str) -> None:
    path = export(tmp_path, [], form)
    if form == "json":
        assert import_boots(host, path).boots == 0
    else:
        assert "neither JSON nor a table" in refused(host, path)


@BOTH
def test_one_bad_boot_keeps_all_out(host: Host, tmp_path: Path, form: str) -> None:
    path = export(tmp_path, FOREIGN, form)
    text = path.read_text().replace(FOREIGN[1].boot_id, "not an ID")
    path.write_text(text)
    assert "boot 2: boot_id cannot be 'not an ID'" in refused(host, path)


@BOTH
@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ({"run_init_us": 1}, "marks are not in order"),
        ({"end_us": 300_000}, "no time to unpack"),
        ({"end_us": 10**12, "run_init_us": 10**12}, "unpack_us cannot be"),
    ],
)
def test_figures_that_no_boot_can_have_keep_all_out(
    host: Host, tmp_path: Path, form: str, marks: dict[str, Any], words: str
) -> None:
    bad = replace(FOREIGN[1], timestamps=replace(FOREIGN[1].timestamps, **marks))
    said = refused(host, export(tmp_path, [FOREIGN[0], bad], form))
    assert "boot 2: " in said
    assert words in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "neither JSON nor a table"),
        (b"\x7fELF\0\0\0", "neither JSON nor a table"),
        (b"{", "boot 1:"),
        (b'{"schema": 9, "boots": []}', "schema is not 3"),
        (b'{"schema": 3}', "no list of boots"),
        (b'{"schema": 3, "boots": {}}', "no list of boots"),
        (b'{"schema": 3, "boots": [7]}', "record cannot be 7"),
        (b'{"schema": 3, "boots": [{}]}', "record lacks"),
        (b'{"schema": 3, "boots": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"schema": ' + b"1" * 5000 + b"}", "boot 1:"),
        (b' \n{"schema": 3, "boots": ' + b"[" * 100_000, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "the JSON is no object"),
        (b'\xef\xbb\xbf{"schema": 9}', "schema is not 3"),
        (b"record\n" + b"[" * 100_000 + b"\n", "nested too deeply"),
        (b"record\n" + b"[" * 200_000 + b"\n", "field larger than"),
        (b"\xff\xfe{", "neither JSON nor a table"),
        (b"record\n{}\n", "record lacks"),
        (b"record\nnothing\n", "boot 1:"),
        (b"a,record\n1\n", "1 columns instead of 2"),
        (b'record\n"unfinished', "boot 1:"),
        (b"record\n" + b"x" * (1 << 19) + b"\n", "line is longer"),
        (b"record\n" + b'"' + b"x\n" * (1 << 18), "boot 1:"),
    ],
    ids=range(23),
)
def test_what_is_no_export_is_refused_in_one_line(
    host: Host, tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "export"
    path.write_bytes(content)
    assert words in refused(host, path)


def test_too_much_at_once_is_refused(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_JSON_BYTES", 1 << 20)
    path = tmp_path / "export"
    path.write_bytes(b'{"schema": 3, "boots": [' + b" " * (2 << 20) + b"]}")
    assert "longer than 1 MiB; export it with --csv" in refused(host, path)
    monkeypatch.setattr(module, "_MOST_BOOTS", 1)
    assert "more than 1" in refused(host, export(tmp_path, FOREIGN, "csv"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_export_is_read_or_refused(
    host: Host, tmp_path: Path, data: st.DataObject
) -> None:
    form = data.draw(st.sampled_from(["json", "csv"]))
    path = export(tmp_path, FOREIGN, form)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content)))
    content[position : position + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path.write_bytes(content)
    with contextlib.suppress(InitadvisorError):
        import_boots(host, path)


def test_the_figures_beside_a_record_are_for_others_to_read(tmp_path: Path) -> None:
    document = json.loads(export(tmp_path, [boot_record()], "json").read_text())
    [boot] = document["boots"]
    assert boot["figures"]["unpack_us"] == 200_000
    assert boot["figures"]["setting"] == "zstd -19"
