"""Boots in the data base: each once, whoever tells of it how often."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Certainty
from initadvisor.records.attribution import Attribution, ImageEvidence
from initadvisor.records.boot import RecordSource, RejectionReason, UnfitRecordError
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside, IntervalSource
from initadvisor.store.salvage import whole_records
from initadvisor.store.store import open_store
from tests.fixtures.boots import (
    EPOCH,
    LZ4,
    OTHER_MACHINE,
    ZSTD,
    boot_record,
    full_record,
    image_of,
)
from tests.fixtures.lab_runs import fill
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord

UNIT, BACKFILL, IMPORT = RecordSource.UNIT, RecordSource.BACKFILL, RecordSource.IMPORT
WRITER = """
import sys
from initadvisor.host import Host
from initadvisor.store.store import open_store
from tests.fixtures.boots import boot_record
first, count = map(int, sys.argv[1:])
for number in range(first, first + count):
    with open_store(Host()) as store:
        print(number, *store.add_boots([boot_record(number)]), flush=True)
"""


def never(record: BootRecord, err: UnfitRecordError) -> None:
    """Refuse nothing."""
    raise AssertionError(record, err)


def add(host: Host, *records: BootRecord) -> frozenset[str]:
    """Add boots in a run of their own."""
    with open_store(host) as store:
        return store.add_boots(records)


def all_boots(host: Host) -> Sequence[BootRecord]:
    with open_store(host, readonly=True) as store:
        return store.boots()


def read_all(host: Host) -> None:
    with open_store(host, readonly=True) as store:
        store.boots()
        store.boot_figures()
        store.boot_groups()


def rows(path: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as database:
        [count] = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        return int(count)


def test_records_come_back_as_they_were_the_latest_first(host: Host) -> None:
    records = [full_record(), boot_record(2), boot_record(3, rejections=(RejectionReason.KEXEC,))]
    assert add(host, *records) == {record.boot_id for record in records}
    assert list(all_boots(host)) == records[::-1]


def test_a_boot_that_is_told_twice_changes_no_byte(host: Host, path: Path) -> None:
    add(host, boot_record(1))
    before = path.read_bytes()
    again = replace(boot_record(1), notes=("read a second time",))
    assert add(host, boot_record(1), again) == frozenset()
    assert path.read_bytes() == before
    assert all_boots(host) == (boot_record(1),)


@pytest.mark.parametrize("first", RecordSource)
@pytest.mark.parametrize("second", RecordSource)
def test_what_was_measured_while_it_ran_beats_the_journal_and_that_beats_an_import(
    host: Host, path: Path, first: RecordSource, second: RecordSource
) -> None:
    order = [IMPORT, BACKFILL, UNIT]
    one, two = boot_record(1, source=first), boot_record(1, source=second, unpack_us=1000)
    wins = order.index(second) > order.index(first)
    add(host, one)
    with open_store(host, readonly=True) as store:
        assert store.new_boots([two], refused=never) == ({two.boot_id} if wins else frozenset())
    assert add(host, two) == ({two.boot_id} if wins else frozenset())
    assert all_boots(host) == (two if wins else one,)
    assert (rows(path, "boot"), rows(path, "boot_record")) == (1, 1)
    with open_store(host, readonly=True) as store:
        [group] = store.boot_groups()
    assert group.unpack_us == ((1000,) if wins else (200_000,))


def test_boots_are_added_all_or_none(host: Host) -> None:
    bad = replace(boot_record(2), started_at=EPOCH.replace(tzinfo=None))
    with pytest.raises(UnfitRecordError, match="not be read again"):
        add(host, boot_record(1), bad)
    assert all_boots(host) == ()


@pytest.mark.parametrize("readonly", [True, False])
def test_what_is_not_fit_to_be_kept_is_told_and_the_rest_recorded(
    host: Host, readonly: bool
) -> None:
    refused: dict[str, str] = {}
    boots = [boot_record(1), boot_record(2, read_us=-5), boot_record(3)]
    with open_store(host, readonly=readonly) as store:
        would_add = store.new_boots if readonly else store.add_boots
        new = would_add(boots, refused=lambda boot, err: refused.update({boot.boot_id: str(err)}))
    assert new == {boots[0].boot_id, boots[2].boot_id}
    assert refused == {boots[1].boot_id: "record.read.duration_us cannot be -5"}
    assert len(all_boots(host)) == (0 if readonly else 2)


def test_only_boots_since_a_moment_or_the_latest_are_returned(host: Host) -> None:
    add(host, *(boot_record(number) for number in range(10)))
    with open_store(host, readonly=True) as store:
        since = EPOCH + timedelta(days=6)
        assert [b.started_at.day for b in store.boots(since=since)] == [10, 9, 8, 7]
        assert len(store.boots(since=since, limit=2)) == 2
        assert len(store.boot_figures(since=since)) == 4
        assert [group.boots for group in store.boot_groups(since=since)] == [4]
        assert store.boot_groups(since=EPOCH + timedelta(days=99)) == ()


def test_figures_are_those_of_the_record_and_of_this_machine_only(host: Host) -> None:
    foreign = boot_record(2, source=IMPORT, machine=OTHER_MACHINE)
    add(host, boot_record(1), foreign)
    with open_store(host, readonly=True) as store:
        [figures] = store.boot_figures()
    record, kind = boot_record(1), figures.kind
    assert (figures.started_at, figures.unpack_us) == (record.started_at, 200_000)
    assert (figures.begin_to_init_us, figures.rest_us) == (300_000, 100_000)
    assert (figures.shadow_us, figures.shadow_min_us, figures.shadow_max_us) == (
        *(50_000, 50_000),
        200_000,
    )
    assert (figures.loaded_bytes, figures.read_us) == (40_000_000, 900_000)
    assert figures.reboot_gap_us == 21_000_000
    assert (kind.machine, kind.method, kind.class_key) == (
        None,
        record.start.method,
        record.class_key,
    )
    assert (kind.kernel_counts, kind.loader_counts) == (True, True)
    assert kind.waiting is Waiting.WAITED
    assert kind.read_source is IntervalSource.EXEC_MINUS_INIT
    assert kind.read_beside == (Beside.LOADER, Beside.KERNEL)
    assert (kind.certainty, kind.setting) == (Certainty.CERTAIN, ZSTD)
    assert kind.image_sha256 == image_of(ZSTD).sha256


def test_what_is_not_known_is_none_in_figures(host: Host) -> None:
    add(host, full_record())
    with open_store(host, readonly=True) as store:
        [figures] = store.boot_figures()
    assert (figures.kind.image_sha256, figures.kind.setting) == (None, None)
    assert figures.reboot_gap_us is None
    assert not figures.kind.kernel_counts


def test_groups_keep_apart_what_cannot_be_compared(host: Host) -> None:
    add(
        host,
        *(boot_record(n, unpack_us=200_000 + n) for n in range(3)),
        boot_record(3, setting=LZ4, unpack_us=90_000, read_us=1_100_000),
        boot_record(4, unpack_us=9_000_000, rejections=(RejectionReason.DEBUG_KERNEL,)),
        boot_record(5, read_us=60_000_000, rejections=(RejectionReason.MENU,)),
        boot_record(6, kernel="6.13.0 #1", unpack_us=150_000),
        boot_record(7, certainty=Certainty.LIKELY),
        boot_record(8, certainty=Certainty.AMBIGUOUS),
        boot_record(9, source=IMPORT, machine=OTHER_MACHINE),
        boot_record(10, source=IMPORT, machine=None),
    )
    with open_store(host, readonly=True) as store:
        found = store.boot_groups()
    shown = {
        (g.machine, g.kernel, g.setting, g.certainty): (g.boots, g.unpack_us, g.read_us)
        for g in found
    }
    old, new = "6.12.1-amd64 #1 SMP", "6.13.0 #1"
    certain, read = Certainty.CERTAIN, 900_000
    assert shown == {
        (None, old, ZSTD, certain): (5, (200_000, 200_000, 200_001, 200_002), (read,) * 3),
        (None, old, LZ4, certain): (1, (90_000,), (1_100_000,)),
        (None, new, ZSTD, certain): (1, (150_000,), (read,)),
        (None, old, ZSTD, Certainty.LIKELY): (1, (200_000,), (read,)),
        (None, old, None, Certainty.AMBIGUOUS): (1, (200_000,), (read,)),
        ("?", old, ZSTD, certain): (1, (200_000,), (read,)),
        (OTHER_MACHINE, old, ZSTD, certain): (1, (200_000,), (read,)),
    }
    assert [group.machine for group in found] == [None] * 5 + [OTHER_MACHINE, "?"]
    own = [group.latest_at for group in found if group.machine is None]
    assert own == sorted(own, reverse=True)


def test_a_time_of_nothing_is_no_sample(host: Host) -> None:
    add(host, boot_record(1, unpack_us=0, read_us=0, rejections=(RejectionReason.NO_TIMES,)))
    with open_store(host, readonly=True) as store:
        [group] = store.boot_groups()
    assert (group.boots, group.unpack_us, group.read_us, group.read_source) == (1, (), (), None)


def writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(first), str(count)],
        env={**os.environ, "STATE_DIRECTORY": str(path.parent)},
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_several_that_record_the_same_boots_record_each_once(host: Host, path: Path) -> None:
    writers = [writer(path, first, 8) for first in (0, 0, 4, 4)]
    said = [process.communicate(timeout=HANGS_S)[0] for process in writers]
    assert [process.returncode for process in writers] == [0] * 4
    new = [line.split()[1] for lines in said for line in lines.splitlines() if " " in line]
    assert sorted(new) == sorted(boot_record(number).boot_id for number in range(12))
    assert len(all_boots(host)) == 12


@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_boot_that_was_recorded_survives_a_kill(host: Host, path: Path, after: int) -> None:
    with writer(path, 0, 1000) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.readlines()
    found = all_boots(host)
    assert len(found) >= len(seen) >= after
    assert list(found)[::-1] == [boot_record(number) for number in range(len(found))]
    assert rows(path, "boot") == rows(path, "boot_record") == len(found)


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE boot_record",
        "ALTER TABLE boot DROP COLUMN seal",
    ],
)
def test_what_the_program_never_wrote_is_called_damage(host: Host, path: Path, change: str) -> None:
    add(host, boot_record(1))
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(f"PRAGMA foreign_keys = OFF; {change}")
    with pytest.raises(InitadvisorError, match="damaged") as caught:
        read_all(host)
    assert str(path) in caught.value.message
    assert caught.value.hint == "whatever is measured next moves it aside and begins a new one"
    with open_store(host) as store:
        assert store.damaged() == ()
    assert path.with_name(f"{path.name}.aside-1").exists()


BROKEN = [
    "UPDATE boot_record SET record = '{}' WHERE boot = 2",
    "UPDATE boot_record SET record = 'nothing' WHERE boot = 2",
    "UPDATE boot SET kind = 99 WHERE number = 2",
    "UPDATE boot SET started_at = 'yesterday' WHERE number = 2",
    "UPDATE boot SET unpack_us = unpack_us + 1 WHERE number = 2",
    "UPDATE boot SET seal = seal + 1 WHERE number = 2",
]


@pytest.mark.parametrize("change", BROKEN)
def test_one_damaged_record_never_hides_the_others(host: Host, path: Path, change: str) -> None:
    added = [boot_record(number) for number in range(4)]
    add(host, *added)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(f"PRAGMA foreign_keys = OFF; {change}")
    broken = added[1]
    with open_store(host, readonly=True) as store:
        assert {record.boot_id for record in added} - {
            record.boot_id for record in store.boots()
        } <= {broken.boot_id}
        assert len(store.boot_figures()) >= 3
        assert store.boot_groups()
        assert store.damaged() == (f"boot {broken.boot_id[:8]}",)
    with open_store(host) as store:
        assert store.drop_damaged() == (f"boot {broken.boot_id[:8]}",)
        assert store.damaged() == ()
        is_whole = "boot_record" not in change
        assert (broken in store.boots()) == is_whole
        assert store.add_boots([broken]) == (set() if is_whole else {broken.boot_id})
        assert len(store.boots()) == len(store.boot_figures()) == 4


@pytest.mark.parametrize("column", ["way", "setting", "read_beside", "class_key", "seal"])
def test_boots_of_a_damaged_kind_are_shown_and_come_back_in_figures(
    host: Host, path: Path, column: str
) -> None:
    record = boot_record(1)
    add(host, record)
    with contextlib.closing(sqlite3.connect(path)) as database:
        value = "seal + 1" if column == "seal" else "'on foot'"
        database.executescript(f"UPDATE boot_kind SET {column} = {value}")  # noqa: S608
    with open_store(host) as store:
        assert store.boots() == (record,)
        assert (store.boot_figures(), store.boot_groups()) == ((), ())
        assert store.damaged() == ("boots of kind 1",)
        other = boot_record(2)
        store.add_boots([other])
        assert store.boots() == (other, record)
        store.drop_damaged()
        assert store.damaged() == ()
        assert store.boots() == (other, record)
        assert len(store.boot_figures()) == 2


def test_every_flipped_byte_of_a_record_is_noticed(host: Host, path: Path) -> None:
    records = [boot_record(number) for number in range(3)]
    add(host, *records)
    data = path.read_bytes()
    start = data.index(b'{"boot_id":"' + records[1].boot_id.encode())
    for offset in range(start, start + 400, 3):
        changed = bytearray(data)
        changed[offset] ^= 0x04
        path.write_bytes(changed)
        with open_store(host, readonly=True) as store:
            assert len(store.damaged()) == 1, offset
            assert [r.boot_id for r in store.boots()] == [records[2].boot_id, records[0].boot_id]


def seen(host: Host) -> tuple[Sequence[object], Sequence[str]]:
    """Return all that was measured, and the names of what is damaged; an error is damage, too."""
    try:
        with open_store(host, readonly=True) as store:
            found = (store.boots(), store.boot_figures(), store.boot_groups(), store.lab_runs())
            return found, store.damaged()
    except InitadvisorError as err:
        return (), (err.message,)


def fate(host: Host, path: Path, data: bytes, before: object, offset: int, bits: int) -> str:
    """Flip bits of a byte, read, and drop what is damaged; return what was seen of ``before``."""
    changed = bytearray(data)
    changed[offset] ^= bits
    path.write_bytes(changed)
    whole = {record.boot_id for record in whole_records(path)}
    found, damaged = seen(host)
    assert damaged or found == before
    if damaged and "another program" in damaged[0]:
        return "refused"
    with open_store(host) as store:
        dropped = store.drop_damaged()
        assert bool(dropped) <= bool(damaged)
        assert whole <= {record.boot_id for record in store.boots()}
        assert {record.boot_id for record in store.boots()} == set(store.known_boots())
        assert len(store.boot_figures()) == len(store.boots())
        assert store.damaged() == ()
    for other in path.parent.glob(f"{path.name}?*"):
        other.unlink()
    return ("noticed, " if damaged else "") + ("same" if found == before else "fewer")


@pytest.mark.exhaustive
def test_a_flipped_byte_is_harmless_or_noticed_and_costs_no_whole_record(
    host: Host, path: Path
) -> None:
    with open_store(host) as store:
        store.add_boots(boot_record(number, setting=(ZSTD, LZ4)[number % 2]) for number in range(6))
        fill(store, 1, 2)
    data = path.read_bytes()
    before, _ = seen(host)
    dice = random.Random(11)
    used = [offset for offset, byte in enumerate(data) if byte]
    fates = [
        fate(host, path, data, before, offset, dice.randrange(1, 256))
        for offset in dice.sample(used, 300)
    ]
    assert "fewer" not in fates
    assert {"same", "noticed, same", "noticed, fewer"} <= set(fates)


def test_images_that_are_not_known_to_be_the_same_are_not_pooled(host: Host) -> None:
    unknown = Attribution(certainty=Certainty.UNKNOWN, reason="nothing tells")
    records = [
        replace(
            boot_record(number),
            attribution=unknown,
            evidence=ImageEvidence(freed_kib=1000, initrd=name),
        )
        for number, name in enumerate([None, None, "/initrd.img-a", "/initrd.img-a", "/old.img"])
    ]
    add(host, *records)
    with open_store(host, readonly=True) as store:
        groups = {(group.initrd, group.boots): group.unpack_us for group in store.boot_groups()}
    assert {key: len(times) for key, times in groups.items()} == {
        (None, 2): 0,
        ("/initrd.img-a", 2): 0,
        ("/old.img", 1): 1,
    }


def test_one_boot_is_found_whatever_its_clock_said(host: Host) -> None:
    back = replace(boot_record(8), started_at=EPOCH - timedelta(days=9000))
    add(host, *(boot_record(number) for number in range(3)), back)
    with open_store(host, readonly=True) as store:
        assert store.boot(back.boot_id) == back
        assert store.boot("0" * 32) is None
