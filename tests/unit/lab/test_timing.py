"""A run of the lab: in turns, kept as it comes, ended early or by force."""

from __future__ import annotations

import random
import tempfile
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import LostVMError, UnsafeError
from initadvisor.host import Host
from initadvisor.lab.history import times_ms
from initadvisor.lab.timing import LabImage, Rounds, time_images
from initadvisor.records.lab import BootKind, Engine, RecordedRun, RunEnd, Unpacked
from initadvisor.store.store import Store, open_store
from tests.fakes.machines import REFUSED, UNPACKED, UNTIL_INIT, Machines, machine
from tests.fixtures.lab_images import Notes, lab_image, taking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@pytest.fixture(autouse=True)
def _quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr("initadvisor.lab.timing.disturbances", lambda _host: ())


@pytest.fixture
def images(tmp_path: Path) -> list[LabImage]:
    """Return three images, today's first."""
    return [
        lab_image(tmp_path, "zstd", today=True),
        *(lab_image(tmp_path, s) for s in ("lz4", "xz")),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return an open store."""
    with open_store(Host(root=tmp_path, runner=Machines())) as opened:
        yield opened


def run(
    runner: Machines,
    images: Sequence[LabImage],
    store: Store,
    rounds: Rounds | None = None,
    notes: Notes | None = None,
    engine: Engine = Engine.UML,
) -> RecordedRun:
    """Time the images."""
    return time_images(
        Host(runner=runner),
        machine(engine),
        images,
        unpacked_bytes=1000,
        rounds=rounds or Rounds(),
        store=store,
        observer=notes or Notes(),
        seed=1,
    )


def settings(recorded: RecordedRun, kind: BootKind = BootKind.UNPACK) -> list[str]:
    """Return the settings that were booted, in order."""
    names = {s.sha256: str(s.setting) for s in recorded.run.subjects}
    return [names[s.image_sha256] for s in recorded.samples if s.kind is kind]


def test_every_round_has_every_image_once_in_an_order_of_its_own(
    images: list[LabImage], store: Store
) -> None:
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    recorded = run(runner, images, store, Rounds(most=8, until_settled=False))
    booted = settings(recorded)
    rounds = [tuple(booted[start : start + 3]) for start in range(0, 24, 3)]
    assert all(sorted(one) == ["lz4", "xz", "zstd"] for one in rounds)
    assert len(set(rounds)) > 2
    assert recorded.end is RunEnd.ROUNDS


def test_it_stops_as_soon_as_the_order_is_settled(images: list[LabImage], store: Store) -> None:
    recorded = run(taking(zstd=200_000, lz4=150_000, xz=900_000), images, store)
    assert len(settings(recorded)) == 9
    assert recorded.end is RunEnd.SETTLED


def test_it_goes_on_while_the_order_is_open(images: list[LabImage], store: Store) -> None:
    chance = random.Random(7)
    base = {b"zstd": 200_000, b"lz4": 202_000, b"xz": 900_000}

    def says(image: bytes, command: str) -> str:
        if "initadvisor-end" in command:
            return UNTIL_INIT
        return UNPACKED.format(us=int(base[image] * chance.lognormvariate(0, 0.08)))

    recorded = run(Machines(says=says), images, store)
    assert len(settings(recorded)) == 45
    assert recorded.end is RunEnd.ROUNDS
    assert any("order of close neighbours is open" in warning for warning in recorded.warnings)
    assert any("was not quiet" in warning for warning in recorded.warnings)


def test_the_first_boot_is_not_counted_and_todays_image_also_boots_up_to_init(
    images: list[LabImage], store: Store
) -> None:
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    once = Rounds(most=1, until_settled=False)
    recorded = run(runner, images, store, once, engine=Engine.KVM)
    assert len(runner.booted) == 1 + 3 + 1
    assert settings(recorded, BootKind.INIT) == ["zstd"]
    assert recorded.samples[-1].waiter == "crypto_kdf108_init"
    assert "initramfs_async=0" not in runner.booted[-1]


def test_on_one_processor_no_waiter_is_looked_for(images: list[LabImage], store: Store) -> None:
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    recorded = run(runner, images, store, Rounds(most=1, until_settled=False))
    assert settings(recorded, BootKind.INIT) == []


def test_what_is_returned_is_what_is_in_the_store(images: list[LabImage], store: Store) -> None:
    notes = Notes()
    recorded = run(taking(zstd=200_000, lz4=150_000, xz=900_000), images, store, notes=notes)
    assert store.lab_runs() == (recorded,)
    assert tuple(notes.samples) == recorded.samples
    assert times_ms(recorded.samples, BootKind.UNPACK)[images[1].subject.sha256] == [150.0] * 3


def test_an_image_that_the_kernel_refuses_is_given_up_at_once(
    images: list[LabImage], store: Store
) -> None:
    def says(image: bytes, command: str) -> str:
        if b"xz" in image:
            return REFUSED.format(why="XZ-compressed data is corrupt")
        return UNTIL_INIT if "initadvisor-end" in command else UNPACKED.format(us=len(image) * 9999)

    for engine in (Engine.UML, Engine.KVM):
        recorded = run(Machines(says=says), images, store, engine=engine)
        assert "xz" not in settings(recorded)
        assert [lost.reason for lost in recorded.lost] == [
            "the kernel refused it: XZ-compressed data is corrupt"
        ]
    (refused,) = store.verifications()  # of this machine's kernel, not of another
    assert refused.unpacked is Unpacked.REFUSED
    assert refused.engine is Engine.KVM
    assert refused.image_sha256 == images[2].subject.sha256


def test_a_lost_machine_is_no_sample_and_gets_a_second_chance(
    images: list[LabImage], store: Store
) -> None:
    silent = {"left": 1}

    def says(image: bytes, command: str) -> str | None:
        if image == b"lz4" and silent["left"]:
            silent["left"] -= 1
            return None
        return UNTIL_INIT if "initadvisor-end" in command else UNPACKED.format(us=len(image) * 9999)

    notes = Notes()
    recorded = run(Machines(says=says), images, store, Rounds(most=4, until_settled=False), notes)
    assert settings(recorded).count("lz4") == 3
    assert len(recorded.lost) == len(notes.losses) == 1


def test_after_two_lost_machines_an_image_is_given_up(images: list[LabImage], store: Store) -> None:
    def says(image: bytes, command: str) -> str | None:
        if image == b"lz4":
            return None
        return UNTIL_INIT if "initadvisor-end" in command else UNPACKED.format(us=len(image) * 9999)

    recorded = run(Machines(says=says), images, store, Rounds(most=6, until_settled=False))
    assert len(recorded.lost) == 2


def test_where_nothing_boots_the_lab_fails_and_says_why(
    images: list[LabImage], store: Store
) -> None:
    with pytest.raises(LostVMError, match="the lab measured nothing: lost a uml machine"):
        run(Machines(says=lambda *_: None), images, store)
    assert store.lab_runs()[0].end is RunEnd.FAILED


def test_what_was_measured_before_an_interruption_is_kept(
    images: list[LabImage], store: Store
) -> None:
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    said = runner.says

    def says(image: bytes, command: str) -> str | None:
        if len(runner.booted) > 5:
            raise KeyboardInterrupt
        return said(image, command)

    runner.says = says
    with pytest.raises(KeyboardInterrupt):
        run(runner, images, store)
    kept = store.lab_runs()[0]
    assert kept.end is RunEnd.INTERRUPTED
    assert len(kept.samples) == 4


def test_a_file_that_was_changed_is_not_timed(images: list[LabImage], store: Store) -> None:
    images[2].file.write_bytes(b"other")
    runner = taking(zstd=1, lz4=1, xz=1)
    with pytest.raises(UnsafeError, match="changed since it was read or built"):
        run(runner, images, store)
    assert runner.booted == []
    assert store.lab_runs() == ()


def test_a_sample_that_is_far_out_is_named(images: list[LabImage], store: Store) -> None:
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    said = runner.says

    def says(image: bytes, command: str) -> str | None:
        return UNPACKED.format(us=1_234_000) if len(runner.booted) == 4 else said(image, command)

    runner.says = says
    recorded = run(runner, images, store, Rounds(most=5, until_settled=False))
    assert any("1 of 5 samples are far from the median" in warning for warning in recorded.warnings)


def test_an_image_that_changes_meanwhile_ends_the_run_and_its_boot_is_no_sample(
    images: list[LabImage], store: Store
) -> None:
    """As when a kernel upgrade rebuilds it: the old digest must not get the new file's words."""
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    said = runner.says

    def says(image: bytes, command: str) -> str | None:
        if len(runner.booted) == 5:
            for changed in images:
                changed.file.write_bytes(b"another image")
            return REFUSED.format(why="invalid magic at start of compressed archive")
        return said(image, command)

    runner.says = says
    with pytest.raises(UnsafeError, match="any further: it was changed meanwhile"):
        run(runner, images, store, engine=Engine.KVM)
    kept = store.lab_runs()[0]
    assert kept.end is RunEnd.FAILED
    assert len(kept.samples) == 3
    assert kept.lost == ()
    assert store.verifications() == ()


def test_an_engine_that_does_not_work_is_given_up_before_all_images_have_waited_for_it(
    images: list[LabImage], store: Store
) -> None:
    runner = Machines(says=lambda *_: None)
    with pytest.raises(LostVMError):
        run(runner, images, store)
    assert len(runner.booted) == 3


def test_one_sample_each_says_nothing_of_noise(images: list[LabImage], store: Store) -> None:
    runner = taking(zstd=200_000, lz4=150_000, xz=900_000)
    recorded = run(runner, images, store, Rounds(most=1, until_settled=False))
    assert not any("differ by" in warning for warning in recorded.warnings)
