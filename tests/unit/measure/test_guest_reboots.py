"""Reboots of a real guest whose clock is synchronised, beside the host's clock.

Recorded by tests/vm/journal_fixtures.py; the guest is the machine of these tests.
"""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.boots.journal import BootEnding, opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.core.estimates import Certainty
from initadvisor.lab.observing import Unseen
from initadvisor.measure.measure import measure
from initadvisor.records.attribution import AttributionSource
from initadvisor.records.boot import RecordSource
from initadvisor.store.store import open_store
from tests.fixtures.journals import MACHINE_ID, write_exported
from tests.vm.clock import CLOCK_ERROR_S
from tests.vm.journal_fixtures import DIRECTORY, REBOOTS

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from tests.fixtures.booted import Booted

TRUTH = json.loads((DIRECTORY / f"{REBOOTS}.json").read_text())
FACTS: list[dict[str, Any]] = TRUTH["boots"]
ERROR_US = CLOCK_ERROR_S * 1e6 + 200_000
"""How far the guest's clock may be from the host's, and how late a line of the console."""


@pytest.fixture
def image(machine: Booted) -> Path:
    """Install the image that all boots used but one, long before them."""
    machine.initramfs_tools()
    return machine.image(TRUTH["release"], size_bytes=TRUTH["initrd_bytes"])


@pytest.fixture
def host(machine: Booted, image: Path) -> Host:
    """The guest after its last reboot."""
    assert image.exists()
    journal = machine.root / f"var/log/journal/{MACHINE_ID}/system.journal"
    exported = (DIRECTORY / f"{REBOOTS}.export.xz").read_bytes()
    write_exported(journal, lzma.decompress(exported))
    machine.loaded(TRUTH["initrd_bytes"])
    host = machine.host()
    machine.write("/proc/sys/kernel/random/boot_id", FACTS[-1]["boot_id"] + "\n")
    with opened_journal(host, JournalSource()) as opened:
        first = opened.spans()[-1].first
    started_us = first.realtime_us - first.monotonic_us
    machine.write("/proc/stat", f"btime {started_us // 1_000_000}\n")
    return host


@pytest.fixture
def records(host: Host) -> list[BootRecord]:
    """Return what is recorded of the boots, in their order."""
    found = measure(host, observer=Unseen(), backfill=True).records
    by_id = {record.boot_id: record for record in found}
    assert by_id.keys() == {fact["boot_id"] for fact in FACTS}
    return [by_id[fact["boot_id"]] for fact in FACTS]


def test_every_reboot_s_gap_is_what_the_host_s_clock_says(
    host: Host, records: list[BootRecord]
) -> None:
    with opened_journal(host, JournalSource()) as journal:
        spans = journal.spans()
        ends = [journal.end(span) for span in spans]
    assert [end.ending for end in ends[:-1]] == [BootEnding.REBOOT] * 3
    assert all(end.synchronised for end in ends)
    for number in range(1, len(FACTS)):
        before, now = FACTS[number - 1], FACTS[number]
        last_sign_us = before["host_us"] + spans[number - 1].last.realtime_us - before["wall_us"]
        truth_us = now["host_us"] - now["since_start_us"] - last_sign_us
        gap = records[number].reboot_gap
        assert gap.duration_us == pytest.approx(truth_us, abs=ERROR_US), gap.reason


def test_the_first_boot_has_no_gap(records: list[BootRecord]) -> None:
    assert records[0].reboot_gap.duration_us is None
    assert records[0].reboot_gap.reason == "the journal has no boot before this one"


def test_gaps_belong_to_the_image_that_was_read_in_them(
    records: list[BootRecord], image: Path
) -> None:
    by_journal = (Certainty.LIKELY, [str(image)], (AttributionSource.FREED_SIZE,))
    expected = {
        "first": by_journal,
        "lz4": (Certainty.UNKNOWN, [], ()),
        "again": by_journal,
        "last": (Certainty.CERTAIN, [str(image)], (AttributionSource.LOADED_SIZE,)),
    }
    for fact, record in zip(FACTS, records, strict=True):
        found = record.attribution
        paths = [known.path for known in found.images]
        told = (found.certainty, paths, found.sources[:1])
        assert told == expected[fact["name"]], fact["name"]
        assert record.rejections == ()


def test_the_store_has_the_gaps_of_all(host: Host, records: list[BootRecord]) -> None:
    with open_store(host, readonly=True) as store:
        kept = [boot.reboot_gap_us for boot in reversed(store.boot_figures())]
        sources = [record.source for record in store.boots()]
    assert kept == [record.reboot_gap.duration_us for record in records]
    assert sources == [RecordSource.UNIT, *[RecordSource.BACKFILL] * 3]
