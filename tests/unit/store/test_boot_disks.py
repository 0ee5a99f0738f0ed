"""Reading times of different disks are not put together; disks nobody knows split nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.records.boot import RecordSource
from initadvisor.store.store import open_store
from tests.fixtures.boots import LZ4, OTHER_MACHINE, ZSTD, boot_record

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from initadvisor.records.figures import BootGroup

HDD, SSD = "HDD, 500.1 GB", "SSD, 1000.2 GB"


def groups(host: Host, *records: BootRecord) -> tuple[BootGroup, ...]:
    with open_store(host) as store:
        store.add_boots(records)
    with open_store(host, readonly=True) as store:
        return store.boot_groups()


def test_a_disk_comes_back_as_it_was_and_so_does_none(host: Host) -> None:
    groups(host, boot_record(1, boot_disk=SSD), boot_record(2))
    with open_store(host, readonly=True) as store:
        assert [boot.kind.boot_disk for boot in store.boot_figures()] == [None, SSD]


@pytest.mark.parametrize("disks", [(HDD, SSD), (HDD, SSD, None), (HDD, None, SSD, SSD)])
def test_reading_times_are_of_the_latest_known_disk(
    host: Host, disks: tuple[str | None, ...]
) -> None:
    records = (boot_record(n, boot_disk=disk, read_us=n + 1) for n, disk in enumerate(disks))
    [group] = groups(host, *records)
    assert group.boots == len(group.unpack_us) == len(disks)
    assert group.read_us == tuple(n + 1 for n, disk in enumerate(disks) if disk != HDD)


def test_months_without_a_known_disk_are_one_group_with_what_was_measured(host: Host) -> None:
    old = (boot_record(n, source=RecordSource.BACKFILL) for n in range(60))
    measured = (boot_record(60 + n, boot_disk=SSD) for n in range(3))
    [group] = groups(host, *old, *measured)
    assert (group.boots, len(group.unpack_us), len(group.read_us)) == (63, 63, 63)


def test_the_latest_disk_is_that_of_the_class_not_of_the_setting(host: Host) -> None:
    """Otherwise settings would be compared that were read from different disks."""
    found = groups(
        host,
        boot_record(1, setting=ZSTD, boot_disk=HDD),
        boot_record(2, setting=LZ4, boot_disk=SSD),
        boot_record(3, setting=ZSTD, boot_disk=HDD, kernel="6.11.0 #1"),
        boot_record(4, boot_disk=HDD, machine=OTHER_MACHINE, source=RecordSource.IMPORT),
    )
    reads = {(group.machine, group.kernel, group.setting): len(group.read_us) for group in found}
    assert reads == {
        (None, "6.12.1-amd64 #1 SMP", ZSTD): 0,
        (None, "6.12.1-amd64 #1 SMP", LZ4): 1,
        (None, "6.11.0 #1", ZSTD): 1,
        (OTHER_MACHINE, "6.12.1-amd64 #1 SMP", ZSTD): 1,
    }
