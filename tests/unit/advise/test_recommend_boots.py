"""Boots of an installed image, from the journal through the store into the advice on all images."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise import ranking
from initadvisor.advise.recommend import Request, recommend
from initadvisor.core.config import Objective
from initadvisor.core.estimates import Estimate, Evidence
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.next_boot import BootLimits, Purpose
from initadvisor.decide.upgrades import PaceSource
from initadvisor.lab.observing import Unseen
from initadvisor.measure import measure
from initadvisor.store.store import open_store
from tests.fakes import work_clock
from tests.fixtures.booted import RELEASE, Booted
from tests.fixtures.boots import boot_record
from tests.fixtures.journals import Boot
from tests.fixtures.weighable_machine import INSTALLED, boot, with_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.advise.recommendation import Recommendation

CHOICE = (INSTALLED, *map(Setting.parse, ("lz4 -9", "gzip -9")))
MANY = 12
ONE_SIZE = "the boots loaded images of one size only"


@pytest.fixture
def machine(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A machine with systemd-boot and Debian's generator, which has installed an image."""
    return with_image(machine, monkeypatch)


def asked(
    machine: Booted, *, objective: Objective | None = None, explain: bool = False
) -> Recommendation:
    request = Request(only=CHOICE, everything=True, objective=objective, explain=explain)
    return recommend(machine.host(), request, observer=Unseen())


def answers(machine: Booted) -> list[Recommendation]:
    """Ask without boots, after one, and after many, which are all as the first answer expected."""
    found = [asked(machine)]
    today = next(row for row in found[0].rows if row.setting == CHOICE[0])
    for number in range(1, MANY + 1):
        off = 1 + 0.02 * (number % 3 - 1)
        boot(machine, number, unpack_ms=today.unpack_ms.mean * off, read_ms=900 * off)
        if number in {1, MANY}:
            found.append(asked(machine))
    return found


def estimates(answer: Recommendation, name: str) -> dict[str, Estimate]:
    assert {row.setting for row in answer.rows} == set(CHOICE)
    return {str(row.setting): getattr(row, name) for row in answer.rows}


def assumed(answer: Recommendation) -> list[str]:
    return [assumption.text for assumption in answer.assumptions]


def factor(estimate: Estimate) -> float:
    """Return how far apart the ends of the interval are."""
    return estimate.high / estimate.low


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Recommendation]]:
    """The answers without boots, after one, and after many; to ask takes long."""
    directory = tmp_path_factory.mktemp("three")
    with pytest.MonkeyPatch.context() as patch:
        work_clock.install(patch)
        patch.setattr(measure, "announce", lambda _record: None)
        patch.setenv("STATE_DIRECTORY", str(directory / "state"))
        patch.setenv("CACHE_DIRECTORY", str(directory / "cache"))
        yield answers(with_image(Booted(root=directory / "machine"), patch))


def test_boots_sharpen_every_candidate_s_interval(three: list[Recommendation]) -> None:
    without, one, many = (estimates(answer, "unpack_ms") for answer in three)
    for setting, before in without.items():
        for after in (one, many):
            assert factor(after[setting]) < 0.9 * factor(before), setting
    assert factor(many[str(CHOICE[0])]) < 0.9 * factor(one[str(CHOICE[0])])
    for fewer, more in pairwise(estimates(answer, "total_ms") for answer in three):
        for setting, before in fewer.items():
            assert factor(more[setting]) < 0.9 * factor(before), setting


def test_how_many_were_used_is_said_and_of_what(three: list[Recommendation]) -> None:
    for answer, said in zip(three, ("", "from 1 boot of", f"from {MANY} boots of"), strict=True):
        learnt = [line for line in assumed(answer) if "of this machine; without them" in line]
        assert len(learnt) == (6 if said else 0)
        assert all(said in line for line in learnt)
    without, one, many = (estimates(answer, "unpack_ms") for answer in three)
    today = str(CHOICE[0])
    assert without[today].source == Evidence.BENCH
    assert one[today].source == many[today].source == Evidence.BOOTS
    assert {many[s].source for s in many if s != today} == {Evidence.BENCH}


def test_what_boots_told_of_is_said_once_and_not_to_be_unknown(
    three: list[Recommendation],
) -> None:
    without, *others = three
    of = [assumption.about for assumption in without.assumptions]
    assert of == [
        Parameter.LOADER,
        Parameter.SHADOW,
        Parameter.FIXED,
        Parameter.CPU,
        Parameter.POPULATE,
    ]
    assert any("unknown here, drawn from 30 boots" in line for line in assumed(without))
    for answer in others:
        of = [assumption.about for assumption in answer.assumptions]
        for what in (Parameter.SHADOW, Parameter.FIXED, Parameter.REST, Parameter.POPULATE):
            assert of.count(what) == 1
        assert not any("unknown here" in line for line in assumed(answer))
        [shadow] = [line for line in assumed(answer) if line.startswith("the overlap")]
        assert shadow.endswith("), drawn from 30 boots of other machines")
        [loader] = [line for line in assumed(answer) if line.startswith("the loader")]
        assert "without them" in loader
        assert "Linux reads 500 MB/s (a test)" in loader


def test_one_size_however_often_does_not_tell_how_fast_the_loader_reads(
    three: list[Recommendation],
) -> None:
    without, *others = three
    for answer in others:
        assert any(line.startswith(ONE_SIZE) for line in assumed(answer))
        assert factor(answer.storage.loader_mb_s) > 0.8 * factor(without.storage.loader_mb_s)
        for setting, before in estimates(without, "read_ms").items():
            assert factor(estimates(answer, "read_ms")[setting]) > 0.8 * factor(before)


def test_images_of_several_sizes_tell_it(machine: Booted) -> None:
    image = machine.root / f"boot/initrd.img-{RELEASE}"
    own_bytes, without = image.stat().st_size, asked(machine)
    for number in range(1, MANY + 1):
        size_bytes = own_bytes + number % 3 * 20_000_000  # zeros behind it, as loaders read them
        os.truncate(image, size_bytes)
        written_s = Boot(number=0).started_us / 1e6
        os.utime(image, (written_s, written_s))
        boot(machine, number, unpack_ms=50, read_ms=300 + size_bytes / 50_000)
    os.truncate(image, own_bytes)
    answer = asked(machine)
    assert not any(line.startswith(ONE_SIZE) for line in assumed(answer))
    known = answer.storage.loader_mb_s
    assert factor(known) < 1.5 < 0.1 * factor(without.storage.loader_mb_s)
    assert known.low < 50 < known.high


def test_the_boots_of_an_image_that_is_not_installed_are_not_used(machine: Booted) -> None:
    boot(machine, 1, unpack_ms=50)
    image = machine.root / f"boot/initrd.img-{RELEASE}"
    request = Request(image=image, only=CHOICE, everything=True)
    answer = recommend(machine.host(), request, observer=Unseen())
    assert not any("of this machine" in line for line in assumed(answer))
    assert answer.plan is None
    assert answer.pace.source is PaceSource.ASSUMED


def test_today_s_image_is_to_be_booted_until_a_boot_of_it_is_recorded(
    three: list[Recommendation],
) -> None:
    without, one, _ = three
    assert without.plan is not None
    assert (without.plan.purpose, without.plan.following) == (Purpose.TODAY, CHOICE[0])
    assert one.plan is None or one.plan.purpose is not Purpose.TODAY


def test_an_explanation_is_given_where_it_is_asked_for(machine: Booted) -> None:
    boot(machine, 1, unpack_ms=9)
    assert asked(machine).explanation is None
    why = asked(machine, explain=True).explanation
    assert why is not None
    assert [(step.evidence, step.used) for step in why.steps] == [
        (Evidence.BENCH, len(CHOICE)),
        (Evidence.BOOTS, 1),
    ]


def history(machine: Booted, *releases: str) -> None:
    """Record boots of kernels, one each."""
    with open_store(machine.host()) as store:
        store.add_boots(
            boot_record(number, kernel=f"{release} #1 SMP")
            for number, release in enumerate(releases)
        )


def test_builds_are_spread_over_the_boots_that_the_journal_counts(machine: Booted) -> None:
    history(machine, *(f"6.1.{number // 5}" for number in range(40)))
    answer = asked(machine, objective=Objective.BALANCED)
    words = "5 boots per kernel upgrade, counted from 40 recorded boots"
    assert (answer.pace.words, answer.pace.upgrades) == (words, 7)
    assert words in assumed(answer)
    assert words not in assumed(asked(machine, objective=Objective.BOOT))


def test_what_the_user_says_of_upgrades_goes_before_the_journal(machine: Booted) -> None:
    history(machine, *(f"6.1.{number // 5}" for number in range(40)))
    machine.write("/etc/initadvisor.toml", "[recommend]\nboots_per_upgrade = 30\n")
    answer = asked(machine, objective=Objective.BALANCED)
    assert "30 boots per kernel upgrade, as configured" in assumed(answer)


def test_a_build_beyond_the_machine_s_memory_is_not_advised(machine: Booted) -> None:
    machine.write("/proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 4 kB\n")
    answer = asked(machine)
    for row in answer.rows:
        assert (row.unusable is None) is (row.setting == CHOICE[0])
        assert any("its build needs" in note for note in row.notes)
    assert answer.decision.setting == CHOICE[0]
    assert answer.rival is None


@pytest.mark.parametrize("excess_s", [0, 2.5])
def test_how_much_a_boot_may_cost_is_as_configured(
    machine: Booted, monkeypatch: pytest.MonkeyPatch, excess_s: float
) -> None:
    machine.write("/etc/initadvisor.toml", f"[recommend]\nmax_excess_s = {excess_s}\n")
    asked_with = []

    def planned(*_: object, limits: BootLimits, **__: object) -> None:
        asked_with.append(limits)

    monkeypatch.setattr(ranking, "next_boots", planned)
    assert asked(machine).plan is None
    assert asked_with == [BootLimits(excess_ms=excess_s * 1000, everything=True)]
