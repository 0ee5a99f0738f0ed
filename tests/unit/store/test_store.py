"""What goes into the store comes out of it, whoever asks, and nothing else does."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.host import Host
from initadvisor.records.lab import BootKind, Engine, LabKernel, LabSample, LabSubject, RunEnd
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.fixtures.lab_runs import (
    CAT,
    CPU,
    KERNEL,
    NOON,
    ZSTD,
    fill,
    lost,
    run,
    sample,
    trial,
    verification,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.store.store import Store

ANY_TEXT = st.text() | st.binary().map(os.fsdecode)
"""File names are bytes, which Python shows as text with surrogates where they are no UTF-8."""


def test_a_run_comes_back_as_it_was(host: Host) -> None:
    with open_store(host) as store:
        number = store.begin_lab_run(run())
        store.add_sample(number, sample(218_000))
        store.add_lost(number, lost("it hung"))
        store.add_sample(number, sample(240_000, kind=BootKind.INIT))
        store.end_lab_run(number, RunEnd.SETTLED, ("on battery", "load 3"))
    with open_store(host, readonly=True) as store:
        [recorded] = store.lab_runs()
    assert recorded.number == number
    assert recorded.run == run()
    assert recorded.samples == (sample(218_000), sample(240_000, kind=BootKind.INIT))
    assert recorded.lost == (lost("it hung"),)
    assert recorded.end is RunEnd.SETTLED
    assert recorded.warnings == ("on battery", "load 3")


def test_a_run_that_never_ended_has_no_end_but_its_samples(host: Host) -> None:
    with open_store(host) as store:
        fill(store, 1, 2, 3)
    with open_store(host, readonly=True) as store:
        [recorded] = store.lab_runs()
    assert recorded.end is None
    assert [s.unpack_us for s in recorded.samples] == [1, 2, 3]


def test_the_newest_runs_come_first_and_may_be_limited(host: Host) -> None:
    with open_store(host) as store:
        numbers = [
            store.begin_lab_run(run(started_at=NOON + timedelta(days=day), engine=engine))
            for day, engine in enumerate((Engine.KVM, Engine.UML, Engine.KVM))
        ]
        assert [r.number for r in store.lab_runs()] == numbers[::-1]
        assert [r.number for r in store.lab_runs(limit=2)] == numbers[:0:-1]
        assert [r.number for r in store.lab_runs(engine=Engine.UML)] == [numbers[1]]
        since = NOON + timedelta(days=1)
        assert [r.number for r in store.lab_runs(since=since)] == numbers[:0:-1]
        elsewhere = since.astimezone(timezone(timedelta(hours=-11)))
        assert [r.number for r in store.lab_runs(since=elsewhere)] == numbers[:0:-1]
        assert store.lab_runs(since=NOON + timedelta(days=3)) == ()


def test_a_moment_without_a_time_zone_is_no_moment(host: Host) -> None:
    with open_store(host) as store, pytest.raises(ValueError, match="no time zone"):
        store.begin_lab_run(run(started_at=NOON.replace(tzinfo=None)))


def unpack_samples(store: Store, **changes: str) -> Mapping[str, tuple[tuple[int, ...], ...]]:
    wanted = {"kernel_sha256": KERNEL.sha256, "cpu_model": CPU, **changes}
    return store.unpack_samples([ZSTD, CAT], engine=Engine.KVM, **wanted)


def test_samples_are_found_by_image_run_by_run(host: Host) -> None:
    with open_store(host) as store:
        first, second = fill(store, 1, 2), fill(store, 3)
        store.add_sample(first, sample(9, kind=BootKind.INIT))
        store.add_sample(second, sample(5, image=CAT))
        store.add_lost(second, lost("hung"))
        assert unpack_samples(store) == {ZSTD: ((1, 2), (3,)), CAT: ((5,),)}


def test_samples_of_another_kernel_processor_or_engine_are_not_found(host: Host) -> None:
    with open_store(host) as store:
        other_kernel = LabKernel(path=KERNEL.path, sha256="k2", release=KERNEL.release)
        for other in (
            run(engine=Engine.UML),
            run(engine=Engine.TCG),
            run(kernel=other_kernel),
            run(cpu_model="Another"),
        ):
            store.add_sample(store.begin_lab_run(other), sample(7))
        assert unpack_samples(store) == {}
        assert unpack_samples(store, kernel_sha256="k2") == {ZSTD: ((7,),)}
        assert unpack_samples(store, cpu_model="Another") == {ZSTD: ((7,),)}


def test_verifications_are_those_of_the_image_newest_first(host: Host) -> None:
    refusal = verification(words="Initramfs unpacking failed: junk")
    with open_store(host) as store:
        store.add_verification(verification())
        store.add_verification(verification(image=CAT))
        store.add_verification(refusal)
        assert store.verifications(ZSTD) == (refusal, verification())
        assert store.verifications() == (refusal, verification(image=CAT), verification())
        assert store.verifications(limit=1) == (refusal,)
        assert store.verifications("0" * 64) == ()


def test_an_engine_is_remembered_in_its_circumstances_the_latest_trial_only(host: Host) -> None:
    with open_store(host) as store:
        store.remember_engine(trial(works=False))
        store.remember_engine(trial(works=True, circumstances="another kernel"))
        store.remember_engine(trial(works=True))
        assert store.engine_trial(Engine.KVM, "kvm of 6.12") == trial(works=True)
        assert store.engine_trial(Engine.KVM, "never tried") is None
        assert store.engine_trial(Engine.TCG, "kvm of 6.12") is None


def test_what_is_not_there_reads_as_empty_and_is_not_made(host: Host, path: Path) -> None:
    with open_store(host, readonly=True) as store:
        assert store.lab_runs() == ()
        assert store.verifications() == ()
        assert store.engine_trial(Engine.KVM, "") is None
        assert unpack_samples(store) == {}
    assert not path.parent.exists()


def test_an_empty_file_reads_as_empty_and_is_then_written(host: Host, path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with open_store(host, readonly=True) as store:
        assert store.lab_runs() == ()
    assert path.stat().st_size == 0
    with open_store(host) as store:
        fill(store, 1)
        assert len(store.lab_runs()) == 1


def test_what_is_open_for_reading_refuses_to_be_written(host: Host, path: Path) -> None:
    with open_store(host) as store:
        fill(store, 1)
    before = path.read_bytes()
    with open_store(host, readonly=True) as store, pytest.raises(InitadvisorError, match="written"):
        store.add_sample(1, sample(2))
    assert path.read_bytes() == before


def test_a_sample_of_no_run_is_refused(host: Host) -> None:
    with open_store(host) as store:
        fill(store, 1)
        with pytest.raises(InitadvisorError, match="FOREIGN KEY"):
            store.add_sample(99, sample(2))
        assert len(store.lab_runs()) == 1


def test_the_end_of_a_run_is_the_latest_that_was_recorded(host: Host) -> None:
    with open_store(host) as store:
        number = fill(store, 1)
        store.end_lab_run(number, RunEnd.FAILED, ("a", "b"))
        store.end_lab_run(number, RunEnd.INTERRUPTED, ("c",))
        [recorded] = store.lab_runs()
    assert (recorded.end, recorded.warnings) == (RunEnd.INTERRUPTED, ("c",))


def test_two_images_of_a_run_may_have_the_same_bytes(host: Host) -> None:
    first, _ = run().subjects
    twins = replace(run(), subjects=(first, replace(first, today=False)))
    with open_store(host) as store:
        number = store.begin_lab_run(twins)
        store.add_sample(number, sample(4))
        [recorded] = store.lab_runs()
        assert recorded.run == twins
        assert unpack_samples(store) == {ZSTD: ((4,),)}


@given(
    texts=st.lists(ANY_TEXT, min_size=7, max_size=7),
    setting=st.sampled_from(["cat", "zstd -19", "xz --check=none", "lz4 '-o a'"]),
    at=st.datetimes(
        min_value=datetime(1, 1, 2),  # noqa: DTZ001 - the strategy adds the zone
        max_value=datetime(9999, 12, 30),  # noqa: DTZ001
        timezones=st.timezones(),
    ),
    number=st.integers(min_value=0, max_value=2**63 - 1),
)
def test_whatever_a_run_is_made_of_comes_back(
    texts: list[str], setting: str, at: datetime, number: int
) -> None:
    name, version, kernel_path, release, cpu, waiter, reason = texts
    whole = replace(
        run(started_at=at, cpu_model=cpu),
        engine_version=version,
        kernel=LabKernel(path=kernel_path, sha256="k", release=release),
        subjects=(
            LabSubject(setting=Setting.parse(setting), path=name, sha256=ZSTD, size_bytes=number),
        ),
    )
    booted = LabSample(
        image_sha256=ZSTD, round=3, kind=BootKind.UNPACK, unpack_us=number, waiter=waiter
    )
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", directory)
        host = Host(root=Path(directory), runner=FakeRunner())
        with open_store(host) as store:
            own = store.begin_lab_run(whole)
            store.add_sample(own, booted)
            store.add_lost(own, lost(reason))
            store.end_lab_run(own, RunEnd.ROUNDS, (reason,))
            found = store.unpack_samples(
                [ZSTD], engine=Engine.KVM, kernel_sha256="k", cpu_model=cpu
            )
        with open_store(host, readonly=True) as store:
            [recorded] = store.lab_runs()
    # In the hour that a zone has twice, a moment equals none of another zone (PEP 495).
    assert recorded.run == replace(whole, started_at=at.astimezone(UTC))
    assert recorded.samples == (booted,)
    assert recorded.lost == (lost(reason),)
    assert recorded.warnings == (reason,)
    assert found == {ZSTD: ((number,),)}
