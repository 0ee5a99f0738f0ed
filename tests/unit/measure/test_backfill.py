"""Earlier boots, and other machines', are measured by what a journal has of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots import record as record_module
from initadvisor.boots.journal_files import JournalSource
from initadvisor.boots.machine_name import machine_name
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.core.estimates import Certainty
from initadvisor.lab.observing import Unseen
from initadvisor.measure.measure import measure, measure_journal
from initadvisor.records.attribution import AttributionSource
from initadvisor.records.boot import RecordSource, RejectionReason
from initadvisor.records.read_interval import NoInterval
from initadvisor.store.store import open_store
from tests.fixtures.booted import Booted
from tests.fixtures.journals import MACHINE_ID, Boot, write_journal

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.records.boot import BootRecord

from tests.fixtures.measured_boots import ended, kernel, measured

OTHER_ID = "f" * 32


def test_earlier_boots_are_read_from_the_journal(machine: Booted, told: list[BootRecord]) -> None:
    machine.initramfs_tools()
    machine.image()
    machine.earlier = [
        Boot(number=1).ordinary(),
        Boot(number=2).marks(begin_us=300_000, end_us=350_000),
        Boot(number=3).kernel(0, "Linux version 6.1.0-44-amd64 (a@b) (cc) #1 SMP"),
    ]
    result = measured(machine, backfill=True)
    records = {record.boot_id: record for record in result.records}
    assert result.new == records.keys() == {Boot(number=n).boot_id for n in (1, 2, 3, 9)}
    assert {record.boot_id for record in told} == records.keys()
    first, second, third, now = (records[Boot(number=n).boot_id] for n in (1, 2, 3, 9))
    assert (first.source, now.source) == (RecordSource.BACKFILL, RecordSource.UNIT)
    assert first.machine == now.machine
    assert [p.duration_us for p in first.phases] == [
        *(5_123_000, 63_100_000),
        *(1_500_123, 3_000_456, 9_000_789),
    ]
    assert isinstance(first.read, NoInterval)
    assert first.started_at == datetime.fromtimestamp(Boot(number=1).started_us / 1e6, tz=UTC)
    assert first.attribution.certainty is Certainty.LIKELY
    assert first.attribution.sources == (AttributionSource.FREED_SIZE,)
    assert (first.image, first.setting) == (None, None)
    assert second.unpack_us == 50_000
    assert third.rejections == (RejectionReason.NO_BEGIN,)
    assert first.class_key == second.class_key == now.class_key


def test_a_later_backfill_reads_only_what_is_new(machine: Booted, told: list[BootRecord]) -> None:
    machine.earlier = [Boot(number=1).ordinary()]
    host = machine.host()
    measure(host, observer=Unseen(), backfill=True)
    machine.journal(*(Boot(number=n).ordinary() for n in (1, 2, 9)))
    again = measure(host, observer=Unseen(), backfill=True)
    assert again.new == {Boot(number=2).boot_id}
    assert again.known == 1
    assert len(told) == 3


def test_a_boot_that_was_measured_while_it_ran_is_not_read_from_the_journal(
    machine: Booted,
) -> None:
    machine.systemd_boot()
    host = machine.host()
    measure(host, observer=Unseen())
    machine.identify(Boot(number=10))
    machine.journal(machine.boot, Boot(number=10).ordinary())
    measure(host, observer=Unseen(), backfill=True)
    with open_store(host, readonly=True) as store:
        assert [record.source for record in store.boots()] == [RecordSource.UNIT] * 2


def test_an_image_that_was_written_since_is_none_of_an_earlier_boot(machine: Booted) -> None:
    machine.initramfs_tools()
    machine.image(written_us=Boot(number=5).started_us)
    machine.earlier = [Boot(number=1).ordinary(), Boot(number=7).ordinary()]
    records = {r.boot_id: r for r in measured(machine, backfill=True).records}
    early, late = (records[Boot(number=n).boot_id].attribution for n in (1, 7))
    assert early.certainty is Certainty.UNKNOWN
    assert late.certainty is Certainty.LIKELY


def test_two_images_of_one_size_are_not_told_apart(machine: Booted) -> None:
    machine.initramfs_tools()
    machine.image()
    machine.image("6.1.0-43-amd64", head=b"\x1f\x8b")
    machine.earlier = [Boot(number=1).ordinary()]
    records = measured(machine, backfill=True).records
    assert {record.attribution.certainty for record in records} == {Certainty.AMBIGUOUS}


def test_after_a_kexec_an_earlier_boot_is_rejected_too(machine: Booted) -> None:
    machine.earlier = [
        ended(Boot(number=1).ordinary(), "kexec.target"),
        Boot(number=2).ordinary(),
    ]
    records = {r.boot_id: r for r in measured(machine, backfill=True).records}
    assert records[Boot(number=2).boot_id].rejections == (RejectionReason.KEXEC,)
    assert records[Boot(number=1).boot_id].rejections == ()


def test_without_a_journal_there_is_no_backfill(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> object:
        msg = "cannot read the journal"
        raise NeedsRootError(msg)

    monkeypatch.setattr("initadvisor.boots.journal.open_journal", unreadable)
    monkeypatch.setattr(record_module, "running_boot", lambda _host: kernel(111_000))
    with pytest.raises(NeedsRootError):
        measured(machine, backfill=True)
    result = measured(Booted(root=machine.root.with_name("other")))
    assert result.warnings == ("cannot read the journal",)
    assert result.records[0].unpack_us == 111_000


def test_boots_that_cannot_be_kept_are_told_and_the_rest_goes_on(
    machine: Booted, told: list[BootRecord]
) -> None:
    machine.earlier = [
        Boot(number=1).ordinary(),
        Boot(number=2).ordinary(),
        Boot(number=3, start_us=2**55 - 2**40).ordinary(),
    ]
    result = measured(machine, backfill=True)
    late = Boot(number=3).boot_id
    assert late not in {record.boot_id for record in result.records}
    assert late not in {record.boot_id for record in told}
    assert len(result.new) == 3
    assert result.known == 0
    [warning] = result.warnings
    assert warning.startswith(f"boot {late[:8]} was left out: ")


def test_where_nothing_can_be_kept_that_is_an_error(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt = kernel(8_000_000_000)
    monkeypatch.setattr(record_module, "running_boot", lambda _host: spoilt)
    with pytest.raises(InitadvisorError, match="was left out: unpack_us cannot be 8000000000"):
        measured(machine)


def foreign(tmp_path: Path, *boots: Boot) -> Path:
    """Write another machine's journal."""
    directory = tmp_path / "foreign"
    for boot in boots:
        for number, entry in enumerate(boot.entries):
            fields = {**entry.fields, "_MACHINE_ID": OTHER_ID}
            boot.entries[number] = replace(entry, fields=fields)
    write_journal(directory / "system.journal", boots)
    return directory


def test_another_machine_s_journal_is_an_import(
    machine: Booted, tmp_path: Path, told: list[BootRecord]
) -> None:
    machine.initramfs_tools()
    machine.image()
    directory = foreign(tmp_path, Boot(number=1).ordinary(), Boot(number=2).ordinary())
    host = machine.host()
    source = JournalSource(directory=directory)
    result = measure_journal(host, source, observer=Unseen())
    assert len(result.new) == 2
    assert {record.source for record in result.records} == {RecordSource.IMPORT}
    assert {record.machine for record in result.records} == {machine_name(OTHER_ID)}
    assert {r.attribution.certainty for r in result.records} == {Certainty.UNKNOWN}
    assert told == []
    again = measure_journal(host, source, observer=Unseen())
    assert (again.new, again.known) == (frozenset(), 2)
    with open_store(host, readonly=True) as store:
        assert store.boot_figures() == ()


def test_this_machine_s_own_boots_in_another_journal_are_recognised(
    machine: Booted, tmp_path: Path
) -> None:
    path = write_journal(tmp_path / "old.journal", [Boot(number=1).ordinary()])
    result = measure_journal(
        machine.host(), JournalSource(files=(path,)), observer=Unseen(), dry_run=False
    )
    [record] = result.records
    assert (record.source, record.machine) == (RecordSource.BACKFILL, machine_name(MACHINE_ID))
