"""Recorded boots become evidence: each only for what it can tell."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.boots import recorded_boots, what_was_learnt
from initadvisor.core.estimates import Certainty, Estimate
from initadvisor.decide.boot_evidence import Parameter, ParameterUpdate, PosteriorSummary, Relation
from initadvisor.host import Host
from initadvisor.records.boot import RecordSource, RejectionReason
from initadvisor.records.boot_start import BootMethod
from initadvisor.records.marks import Waiting
from initadvisor.store.store import open_store
from tests.fixtures.boots import OTHER_MACHINE, ZSTD, boot_record, image_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.records.boot import BootRecord

RELEASE = "6.12.1-amd64"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Host(root=tmp_path)


def evidence(host: Host, *records: BootRecord, release: str | None = RELEASE) -> list[BootEvidence]:
    """Return what the boots tell, the earliest first."""
    with open_store(host) as store:
        store.add_boots(records)
    return list(reversed(recorded_boots(host, release).evidence))


def test_nothing_recorded_tells_nothing(host: Host) -> None:
    found = recorded_boots(host, RELEASE)
    assert (found.evidence, found.warnings) == ((), ())
    assert not host.state_dir().exists()


def test_an_ordinary_boot_tells_everything(host: Host) -> None:
    [found] = evidence(host, boot_record())
    assert found.relation is Relation.SAME
    assert (found.setting, found.digest) == (ZSTD, image_of(ZSTD).sha256)
    assert found.loaded_mb == pytest.approx(40)
    assert (found.unpack_us, found.begin_to_init_us) == (200_000, 300_000)
    assert (found.waiting, found.shadow_us, found.rest_us) == (Waiting.WAITED, 50_000, 100_000)
    assert found.read_us == 900_000
    assert found.age_days == 0


def test_a_boot_of_another_class_is_near_and_of_another_machine_nothing(host: Host) -> None:
    old = boot_record(1, kernel="6.11.0-amd64 #1 SMP")
    foreign = boot_record(2, machine=OTHER_MACHINE, source=RecordSource.IMPORT)
    found = evidence(host, old, foreign, boot_record(3))
    assert [one.relation for one in found] == [Relation.NEAR, Relation.SAME]
    assert found[0].age_days == pytest.approx(2)


@pytest.mark.parametrize(
    ("release", "relation"),
    [(None, Relation.SAME), (RELEASE, Relation.SAME), ("6.13.0-amd64", Relation.NEAR)],
)
def test_boots_of_the_kernel_that_the_image_is_for_count_in_full(
    host: Host, release: str | None, relation: Relation
) -> None:
    [found] = evidence(host, boot_record(), release=release)
    assert found.relation is relation


@pytest.mark.parametrize("certainty", [c for c in Certainty if c is not Certainty.CERTAIN])
def test_an_image_that_is_not_certain_is_no_image_s_sample(
    host: Host, certainty: Certainty
) -> None:
    [found] = evidence(host, boot_record(certainty=certainty))
    assert (found.digest, found.setting) == (None, None)
    assert found.shadow_us == 50_000  # which does not depend on the image


def test_what_is_rejected_tells_nothing_but_what_its_reason_leaves(host: Host) -> None:
    lost = boot_record(1, rejections=(RejectionReason.NO_END,))
    menu = boot_record(2, rejections=(RejectionReason.MENU,))
    [found] = evidence(host, lost, menu)
    assert found.unpack_us == 200_000
    assert (found.read_us, found.read_source) == (None, None)


def readings(found: list[BootEvidence]) -> list[float | None]:
    assert all((one.read_us is None) is (one.read_source is None) for one in found)
    return [one.read_us for one in found]


def test_what_was_read_from_another_disk_is_not_compared(host: Host) -> None:
    """The kernel's part is: it had all of it in memory."""
    old = boot_record(1, boot_disk="HDD, 500.1 GB", read_us=9_000_000)
    journalled = boot_record(2, boot_disk=None, read_us=800_000)
    new = boot_record(3, boot_disk="SSD, 1000.2 GB", read_us=700_000)
    found = evidence(host, old, journalled, new)
    assert readings(found) == [None, 800_000, 700_000]
    assert [one.relation for one in found] == [Relation.SAME] * 3
    assert [one.unpack_us for one in found] == [200_000] * 3


def test_a_disk_that_is_not_known_today_is_the_latest_known(host: Host) -> None:
    disks = ("HDD, 500.1 GB", "SSD, 1000.2 GB", None)
    found = evidence(host, *(boot_record(n, boot_disk=disk) for n, disk in enumerate(disks)))
    assert readings(found) == [None, 900_000, 900_000]


def test_what_another_loader_read_is_not_compared(host: Host) -> None:
    def by(number: int, way: BootMethod, *rejections: RejectionReason) -> BootRecord:
        record = boot_record(number, rejections=rejections)
        return replace(record, start=replace(record.start, method=way))

    found = evidence(
        host,
        by(1, BootMethod.SYSTEMD_BOOT),
        by(2, BootMethod.SYSTEMD_BOOT_UKI),
        by(3, BootMethod.SYSTEMD_BOOT),
        by(4, BootMethod.SYSTEMD_BOOT_UKI, RejectionReason.MENU),
    )
    assert readings(found) == [900_000, None, 900_000, None]


def on(number: int, product: str, *rejections: RejectionReason) -> BootRecord:
    record = boot_record(number, rejections=rejections)
    machine = replace(record.timestamps.machine, product=product)
    return replace(record, timestamps=replace(record.timestamps, machine=machine))


def test_boots_of_the_machine_that_the_disk_was_in_before_are_no_evidence(host: Host) -> None:
    old, new = on(1, "Old, BIOS 1.0"), on(2, "New, BIOS 1.0")
    updated = on(3, "New, BIOS 2.0")
    found = evidence(host, old, new, updated)
    assert [one.relation for one in found] == [Relation.NEAR, Relation.SAME]


def test_a_boot_that_is_no_sample_does_not_say_what_the_machine_is_now(host: Host) -> None:
    lost = on(2, "", RejectionReason.NO_BEGIN)
    [found] = evidence(host, on(1, "New, BIOS 1.0"), lost)
    assert found.relation is Relation.SAME


def test_without_a_sample_there_is_no_evidence(host: Host) -> None:
    assert evidence(host, boot_record(rejections=(RejectionReason.NO_END,))) == []


def test_figures_that_no_boot_can_have_are_left_out(host: Host) -> None:
    evidence(host, boot_record(1))
    [path] = host.state_dir().glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE boot SET unpack_us = 7200000000")
    assert recorded_boots(host, RELEASE).evidence == ()


def test_a_data_base_that_cannot_be_read_is_a_warning(host: Host) -> None:
    evidence(host, boot_record())
    [path] = host.state_dir().glob("*.sqlite")
    path.write_bytes(b"garbage" * 1000)
    found = recorded_boots(host, RELEASE)
    assert found.evidence == ()
    [warning] = found.warnings
    assert warning.startswith("nothing of the recorded boots is used: ")


def lessons(*learnt: ParameterUpdate, read_sizes: int = 0) -> PosteriorSummary:
    return PosteriorSummary(updates=learnt, boots_used=1, own_boots=(), read_sizes=read_sizes)


def warnings_of(host: Host, *unpack_ms: int, read_ms: Sequence[int] = ()) -> tuple[str, ...]:
    """Return what is warned of after boots of one image that took so long."""
    times_ms = zip_longest(unpack_ms, read_ms, fillvalue=900)
    records = [
        boot_record(number, unpack_us=unpack * 1000, read_us=read * 1000)
        for number, (unpack, read) in enumerate(times_ms)
    ]
    with open_store(host) as store:
        store.add_boots(records)
    return recorded_boots(host, RELEASE).warnings


def test_boots_that_are_like_each_other_are_no_warning(host: Host) -> None:
    assert warnings_of(host, 190, 200, 210, 205, 240, 195) == ()


def test_of_two_boots_neither_is_the_outlying_one(host: Host) -> None:
    assert warnings_of(host, 200, 600) == ()


def test_a_boot_that_is_far_from_the_others_of_its_image_is_said(host: Host) -> None:
    unpack, load = warnings_of(host, 190, 200, 640, 205, 195, read_ms=(900, 910, 905, 895, 2400))
    assert unpack == (
        "1 of 5 boots of zstd -19 took 640 ms to unpack it, the others about 200: what is so far "
        "from the others hardly counts"
    )
    assert "took 2400 ms to load it, the others about 905" in load


def test_what_was_learnt_is_said_with_what_was_known_before() -> None:
    before = Estimate(mean=100, low=10, high=1000, source="assumed")
    after = Estimate(mean=44.4, low=40, high=50, source="3 boots")
    learnt = ParameterUpdate(what=Parameter.SHADOW, prior=before, posterior=after, boots=3)
    unknown = ParameterUpdate(what=Parameter.CPU, prior=before, posterior=before, boots=0)
    known = lessons(learnt, unknown)
    [said] = what_was_learnt(known)
    assert said.about is Parameter.SHADOW
    assert said.text == (
        "the overlap: 44.4 ms (40..50), from 3 boots of this machine; without them 100 "
        "(10..1000), assumed"
    )
    assert known.informed == {Parameter.SHADOW}


def test_what_a_prediction_rests_on_is_not_repeated() -> None:
    figure = Estimate(mean=1, low=0.5, high=2, source="a calibration")
    learnt = ParameterUpdate(what=Parameter.CPU, prior=figure, posterior=figure, boots=1)
    [said] = what_was_learnt(lessons(learnt))
    assert said.text.endswith("from 1 boot of this machine; without them 1 (0.5..2)")


def test_one_size_is_said_to_bound_the_loader_only() -> None:
    figure = Estimate(mean=100, low=50, high=300, source="1 boot")
    learnt = ParameterUpdate(what=Parameter.LOADER, prior=figure, posterior=figure, boots=1)
    _, said = what_was_learnt(lessons(learnt, read_sizes=1))
    assert said.about is Parameter.LOADER
    assert "one size only" in said.text
    [only] = what_was_learnt(lessons(learnt, read_sizes=2))
    assert "one size" not in only.text


def test_upgrades_are_counted_from_all_boots_of_this_machine_whatever_they_are_worth(
    host: Host,
) -> None:
    kernels = ["6.1.1 #1 SMP", "6.1.2 #1 SMP", "6.1.2 #2 SMP", "6.1.3 #1 SMP", "6.1.4 #1 SMP"]
    records = [
        boot_record(
            number,
            kernel=kernel,
            rejections=(RejectionReason.NO_END,) if number == 3 else (),
        )
        for number, kernel in enumerate(kernels)
    ]
    foreign = [
        boot_record(
            100 + number, kernel=f"{number}", machine=OTHER_MACHINE, source=RecordSource.IMPORT
        )
        for number in range(9)
    ]
    evidence(host, *records, *foreign)
    pace = recorded_boots(host, RELEASE).pace
    assert pace is not None
    assert (pace.upgrades, pace.recorded_boots, pace.boots) == (3, 5, 1.5)


def test_few_boots_tell_no_pace_of_upgrades(host: Host) -> None:
    evidence(host, boot_record(1), boot_record(2, kernel="6.1.2 #1 SMP"))
    assert recorded_boots(host, RELEASE).pace is None
