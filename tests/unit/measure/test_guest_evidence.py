"""Boots of real guests, and times that a real lab measured, as evidence for the cost model.

The guests ran without KVM on a busy machine, so no two of their boots are as alike as those of a
machine would be. What is held: that every figure comes out, and that what the serial consoles said
lies in the intervals.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from initadvisor.advise.boots import recorded_boots
from initadvisor.advise.truth_tables import truth_table
from initadvisor.boots.loader_times import loader_times
from initadvisor.core.settings import Setting
from initadvisor.data.tables import observed_boots
from initadvisor.decide.boot_evidence import BootEvidence, Parameter, Relation
from initadvisor.decide.cost import CandidateFacts, Machine, Outcome, Quantity, Shadow
from initadvisor.decide.costs import summary
from initadvisor.decide.decision import Thresholds, decide
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.host import Host
from initadvisor.lab.observing import Unseen
from initadvisor.measure.measure import measure
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import ReadInterval, read_interval
from tests.fakes.runner import FakeRunner
from tests.fixtures.journals import MACHINE_ID, write_exported
from tests.vm.boot_traces import ARCHIVE, MANAGER
from tests.vm.boot_traces import FACTS as TRACED
from tests.vm.journal_fixtures import DIRECTORY, PLANS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.core.estimates import Estimate
    from tests.fixtures.booted import Booted
    from tests.fixtures.debian import Suite

LAB = {row.setting: row for row in truth_table("tools-bookworm-laptop").rows}
SETTINGS = {
    codec: Setting.parse(setting)
    for codec, setting in {
        "zstd": "zstd -19",
        "lz4": "lz4 -9",
        "gzip": "gzip -6",
        "xz": "xz -0",
    }.items()
}
"""By the codec: what the guests' images were compressed with."""

SLOWER = Quantity(median=10.0, log_sd=1.0)
"""How much longer an emulated processor takes than the lab's."""

OTHERWISE_LOG_SD = 0.5
"""How far codecs are from taking the same multiple of it: emulation costs some programs more."""

SEED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is recorded of a guest's boots, each with what its console said (in microseconds)."""

    suite: Suite
    evidence: tuple[BootEvidence, ...]
    facts: tuple[dict[str, Any], ...]

    @property
    def pairs(self) -> list[tuple[BootEvidence, dict[str, Any]]]:
        return list(zip(self.evidence, self.facts, strict=True))


@pytest.fixture(params=PLANS)
def told(request: pytest.FixtureRequest, machine: Booted) -> Told:
    """Measure the guest after its last boot, as if initadvisor had just been installed.

    A journal knows images by their sizes in pages, which is not certain; whoever booted them is.
    """
    suite: Suite = request.param
    truth = json.loads((DIRECTORY / f"{suite}.json").read_text())
    exported = lzma.decompress((DIRECTORY / f"{suite}.export.xz").read_bytes())
    write_exported(machine.root / f"var/log/journal/{MACHINE_ID}/system.journal", exported)
    host = machine.host()
    machine.write("/proc/sys/kernel/random/boot_id", truth["boots"][-1]["boot_id"] + "\n")
    (machine.root / "proc/stat").unlink()
    measure(host, observer=Unseen(), backfill=True)
    found = recorded_boots(host, truth["release"])
    assert not found.warnings
    by_time = {fact["end_us"] - fact["begin_us"]: fact for fact in truth["boots"] if fact["end_us"]}
    facts = tuple(by_time[boot.unpack_us] for boot in found.evidence)
    known = tuple(
        replace(boot, digest=fact["codec"])
        for boot, fact in zip(found.evidence, facts, strict=True)
    )
    return Told(suite=suite, evidence=known, facts=facts)


def candidates(boots: Sequence[BootEvidence]) -> list[CandidateFacts]:
    """Return the guest's images, today's first, with the lab's times for their settings."""
    sizes = {boot.digest: boot.loaded_mb for boot in boots if boot.loaded_mb}
    return [
        CandidateFacts(
            setting=setting,
            size_mb=Quantity(median=sizes[codec]),
            decompress_ms=Quantity(median=0.0),
            unpack_ms=Quantity(median=LAB[setting].unpack_ms, log_sd=OTHERWISE_LOG_SD),
            digest=codec,
        )
        for codec, setting in SETTINGS.items()
        if codec in sizes
    ]


def emulated(*, read_mb_s: float = 50.0, kernel_mb: float = 12.0) -> Machine:
    """Return what is known of such a machine: hardly anything."""
    return Machine(
        read_s_per_mb=Quantity(median=1 / read_mb_s, log_sd=1.2),
        fixed_ms=Quantity(median=100.0, log_sd=1.0),
        kernel_mb=kernel_mb,
        populate_ms=Quantity(median=500.0, log_sd=1.0),
        cpu=SLOWER,
        lab=SLOWER,
        shadow=Shadow(boots=observed_boots(), source="boots of machines"),
    )


def meet(estimate: Estimate, seen_us: Sequence[int]) -> bool:
    """Tell whether an interval (in ms) holds what was seen, or some of what lies between."""
    return estimate.low <= max(seen_us) / 1000 and min(seen_us) / 1000 <= estimate.high


def test_what_the_consoles_said_lies_in_the_intervals(told: Told) -> None:
    machine, images = emulated(), candidates(told.evidence)
    before = sample_posterior_costs(machine, images, (), seed=SEED)
    given = sample_posterior_costs(machine, images, told.evidence, seed=SEED)
    assert given.summary.boots_used == len(told.evidence)
    for column, image in enumerate(images):
        seen = [
            f["end_us"] - f["begin_us"] for boot, f in told.pairs if boot.digest == image.digest
        ]
        prior, posterior = (
            summary(found.draws.unpack_ms[:, column], "") for found in (before, given)
        )
        assert meet(posterior, seen), (image.digest, posterior, seen)
        assert posterior.high / posterior.low < prior.high / prior.low
    waited = [(boot, f) for boot, f in told.pairs if boot.waiting is Waiting.WAITED]
    rest_us = [fact["run_init_us"] - fact["end_us"] for _, fact in waited]
    shadow_us = [round(boot.shadow_us) for boot, _ in waited if boot.shadow_us is not None]
    assert meet(given.summary.now(Parameter.REST), rest_us)
    assert meet(given.summary.now(Parameter.SHADOW), shadow_us)


def test_every_figure_comes_out(told: Told) -> None:
    images = candidates(told.evidence)
    given = sample_posterior_costs(emulated(), images, told.evidence, seed=SEED)
    assert all(np.isfinite(drawn).all() for drawn in (given.draws.total_ms, given.draws.unpack_ms))
    assert all(
        isfinite(figure)
        for learnt in given.summary.updates
        for figure in (learnt.posterior.mean, learnt.posterior.low, learnt.posterior.high)
    )
    for today in range(len(images)):
        decision = decide(
            given.draws, images, baseline=today, thresholds=Thresholds(), source="boots"
        )
        assert decision.setting in {image.setting for image in images}
        assert 0 <= decision.probability <= 1
        assert decision.saving_ms.low <= decision.saving_ms.mean <= decision.saving_ms.high


def test_the_slowest_of_a_guest_s_images_is_not_kept(told: Told) -> None:
    """In every guest xz takes seconds longer than any other, and hardly less room."""
    images = candidates(told.evidence)
    given = sample_posterior_costs(emulated(), images, told.evidence, seed=SEED)
    xz = next(n for n, image in enumerate(images) if image.digest == "xz")
    decision = decide(given.draws, images, baseline=xz, thresholds=Thresholds(), source="boots")
    assert decision.outcome is Outcome.SWITCH


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    return directory


@pytest.mark.parametrize("way", ["systemd-boot", "systemd-boot-252", "systemd-boot-uki"])
def test_what_a_real_loader_took_is_what_it_is_said_to_take(traces: Path, way: str) -> None:
    """One boot does not tell how fast the loader reads, but what it took in all."""
    root = traces / way
    (root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
    runner = FakeRunner()
    runner.answer("systemctl show", (root / MANAGER).read_text())
    host = Host(root=root, runner=runner)
    read = read_interval(boot_start(host, loader_variables(host)), loader_times(host))
    assert isinstance(read, ReadInterval)
    size_mb = json.loads((root / TRACED).read_text())["size_bytes"] / 1e6
    boot = BootEvidence(
        relation=Relation.SAME,
        class_key="guest",
        digest="zstd",
        loaded_mb=size_mb,
        read_us=read.duration_us,
        read_source=read.source,
        read_beside=read.beside,
    )
    [image] = candidates([boot])
    machine = emulated()
    given = sample_posterior_costs(machine, [image], [boot], seed=SEED)
    parts = given.posterior.parameters
    read_ms = parts.read_s_per_mb * 1000 * (machine.kernel_mb + size_mb)
    whole = summary(parts.fixed_ms + read_ms, "")
    assert whole.low < read.duration_us / 1000 < whole.high
    assert whole.high / whole.low < 2
    assert summary(read_ms, "").high < 1.5 * read.duration_us / 1000
