"""Synthetic machines boot as they are said to, and break the model where they are said to."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.synthetic import (
    BREAKING,
    Booter,
    ModelViolation,
    Scenario,
    draw_conditions,
    draw_machine,
    known_beforehand,
    true_costs,
)
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.decide.whatif_values import Span
from initadvisor.records.marks import Waiting
from tests.fixtures.synthetic_machines import (
    CAT,
    LZ4,
    TABLE,
    XZ,
    ZSTD,
    conditions,
    drawn,
    prior,
    the_table_s,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.synthetic import TrueMachine
    from initadvisor.decide.boot_evidence import BootEvidence

QUIET = tuple(violation for violation in ModelViolation if violation is not ModelViolation.DRIFT)


def boots(machine: TrueMachine, column: int, *, count: int, seed: int = 1) -> list[BootEvidence]:
    booter = Booter(machine, np.random.default_rng(seed))
    return [booter.boot(column) for _ in range(count)]


def logs(found: list[BootEvidence]) -> NDArray[np.float64]:
    """Return the logarithms of the times to unpack."""
    return np.log([boot.unpack_us or 0 for boot in found])


def read_us(found: BootEvidence) -> int:
    assert found.read_us is not None
    return round(found.read_us)


def total_ms(found: BootEvidence) -> float:
    assert found.begin_to_init_us is not None
    return (read_us(found) + found.begin_to_init_us) / 1000


def test_the_table_s_machine_costs_what_can_be_reckoned() -> None:
    # L 100 + 10 MB of kernel at 100 MB/s, B1 30, B2 100.
    costs = true_costs(the_table_s())
    assert the_table_s().settings == (ZSTD, CAT, LZ4, XZ)
    assert costs == pytest.approx([900, 1480, 970, 1640])


def test_what_ends_within_the_shadow_costs_nothing() -> None:
    costs = true_costs(the_table_s(shadow_ms=500.0))
    assert costs == pytest.approx([1200, 1900, 1350, 1640])


@pytest.mark.parametrize("violation", QUIET)
@pytest.mark.parametrize("shadow_ms", [0.0, 150.0, 5000.0])
@pytest.mark.parametrize("seed", range(5))
def test_without_noise_boots_take_what_they_cost(
    seed: int, shadow_ms: float, violation: ModelViolation
) -> None:
    machine = drawn(seed, shadow_ms=shadow_ms, violation=violation)
    costs = true_costs(machine)
    booter = Booter(machine, np.random.default_rng(seed))
    for column in (2, 0, 3, 1, 0):
        found = booter.boot(column)
        assert total_ms(found) == pytest.approx(costs[column], abs=0.003)
        assert found.setting == machine.settings[column]
        assert found.loaded_mb == machine.size_mb[column]


def test_boots_tell_whether_something_waited_and_bound_the_shadow() -> None:
    machine = the_table_s(shadow_ms=150.0)
    zstd, cat = boots(machine, 0, count=1)[0], boots(machine, 1, count=1)[0]
    assert (zstd.waiting, cat.waiting) == (Waiting.WAITED, Waiting.HIDDEN)
    assert (cat.shadow_us, cat.rest_us) == (None, None)
    assert zstd.shadow_us is not None
    assert zstd.unpack_us == 200_000
    assert zstd.shadow_us <= zstd.unpack_us
    assert zstd.rest_us == 100_000


def test_noise_is_as_large_as_said_and_its_own_in_each_part() -> None:
    found = boots(the_table_s(noise_log_sd=0.1), 0, count=800)
    assert logs(found).std() == pytest.approx(0.1, rel=0.1)
    reads = np.log([read_us(boot) for boot in found])
    assert reads.std() == pytest.approx(0.1, rel=0.1)
    assert abs(np.corrcoef(reads, logs(found))[0, 1]) < 0.12
    assert abs(np.corrcoef(logs(found)[1:], logs(found)[:-1])[0, 1]) < 0.12


@pytest.mark.parametrize("violation", BREAKING)
@pytest.mark.parametrize("seed", range(3))
def test_a_violation_changes_what_it_says_and_nothing_else(
    seed: int, violation: ModelViolation
) -> None:
    plain = drawn(seed, noise_log_sd=0.06, outliers=0.05)
    violating = drawn(seed, noise_log_sd=0.06, outliers=0.05, violation=violation)
    different = {
        field.name
        for field in fields(plain)
        if getattr(plain, field.name) != getattr(violating, field.name)
    }
    own = {
        ModelViolation.CURVED: {"read_power"},
        ModelViolation.DRIFT: {"drift_ms"},
        ModelViolation.CONTENTION: set(),
        ModelViolation.CORRELATED: set(),
        ModelViolation.OUTLIERS: {"outliers"},
    }[violation]
    assert different == {"violation", *own}
    if violation not in {ModelViolation.CURVED, ModelViolation.CONTENTION}:
        assert true_costs(violating) == pytest.approx(true_costs(plain))


def test_curved_reading_takes_a_power_of_what_is_read_and_as_long_for_today_s() -> None:
    powers = set()
    for seed in range(8):
        plain, curved = drawn(seed), drawn(seed, violation=ModelViolation.CURVED)
        straight_ms, bent_ms = (
            true_costs(machine) - true_costs_but_reading(machine) for machine in (plain, curved)
        )
        assert bent_ms[0] == pytest.approx(straight_ms[0])
        read_mb = np.array(curved.size_mb) + curved.kernel_mb
        slopes = np.log(bent_ms[1:] / bent_ms[0]) / np.log(read_mb[1:] / read_mb[0])
        assert slopes == pytest.approx(np.full(3, curved.read_power))
        powers.add(curved.read_power)
    assert powers == {0.85, 1.15}


def true_costs_but_reading(machine: TrueMachine) -> NDArray[np.float64]:
    """Return the costs of a machine that is as the model says, without reading."""
    unpack_ms = machine.populate_ms + np.array(machine.decompress_ms)
    waited = np.maximum(machine.shadow_ms, unpack_ms)
    return np.asarray(machine.fixed_ms + waited + machine.rest_ms)


def test_drift_adds_the_same_to_every_boot_before_the_kernel_starts() -> None:
    signs = set()
    for seed in range(8):
        machine = drawn(seed, violation=ModelViolation.DRIFT)
        found = boots(machine, 0, count=4)
        steps = np.diff([read_us(boot) / 1000 for boot in found])
        assert steps == pytest.approx(np.full(3, machine.drift_ms), abs=0.002)
        assert abs(machine.drift_ms) == pytest.approx(0.01 * true_costs(machine)[0])
        assert len({boot.begin_to_init_us for boot in found}) == 1
        signs.add(np.sign(machine.drift_ms))
    assert signs == {-1, 1}


def test_contention_slows_unpacking_by_a_third_of_what_is_shared() -> None:
    plain = the_table_s(shadow_ms=100.0)
    contended = the_table_s(shadow_ms=100.0, violation=ModelViolation.CONTENTION)
    # cat takes 80 ms, all within the shadow; the others lose 30 ms in it.
    assert boots(contended, 1, count=1)[0].unpack_us == pytest.approx(104_000)
    assert boots(contended, 0, count=1)[0].unpack_us == pytest.approx(230_000)
    assert true_costs(contended) - true_costs(plain) == pytest.approx([30, 4, 30, 30])


def test_correlated_noise_lasts_and_is_no_larger() -> None:
    found = logs(
        boots(the_table_s(noise_log_sd=0.1, violation=ModelViolation.CORRELATED), 0, count=3000)
    )
    assert np.corrcoef(found[1:], found[:-1])[0, 1] == pytest.approx(0.8, abs=0.05)
    assert found.std() == pytest.approx(0.1, rel=0.15)


@pytest.mark.parametrize(
    ("violation", "part"), [(ModelViolation.NONE, 0.05), (ModelViolation.OUTLIERS, 0.15)]
)
def test_so_many_boots_are_disturbed_in_one_of_four_parts(
    violation: ModelViolation, part: float
) -> None:
    found = boots(the_table_s(outliers=0.05, violation=violation), 0, count=3000)
    disturbed = logs(found) > np.log(200_000) + 0.4
    assert disturbed.mean() == pytest.approx(part / 4, rel=0.35)
    assert logs(found).max() <= np.log(200_000) + 2.01
    # Undisturbed boots are alike: noise is none here.
    assert logs(found).min() == pytest.approx(np.log(200_000))


@pytest.mark.parametrize(("lab", "own"), [(False, 0.3), (True, 0.05)])
def test_what_is_known_beforehand_is_as_far_off_as_said(lab: bool, own: float) -> None:
    machine, told = drawn(1), conditions(lab=lab, unpack_log_sd=own)
    unpack_ms = machine.populate_ms + np.array(machine.decompress_ms)
    off, speed_off = [], []
    for seed in range(400):
        known, candidates = known_beforehand(np.random.default_rng(seed), machine, prior(), told)
        speed_off.append(np.log(known.read_s_per_mb.median / machine.read_s_per_mb))
        for column, one in enumerate(candidates):
            assert one.setting == machine.settings[column]
            assert one.size_mb.median == machine.size_mb[column]
            assert one.size_mb.log_sd == 0
            assert (one.unpack_ms is None) == (not lab)
        assert candidates[machine.settings.index(CAT)].decompress_ms.median == 0
        off.append(
            [
                np.log(one.unpack_ms.median / unpack_ms[column])
                if one.unpack_ms
                else np.log(one.decompress_ms.median / machine.decompress_ms[column])
                for column, one in enumerate(candidates)
                if one.unpack_ms or machine.decompress_ms[column] > 0
            ]
        )
    shared = prior().lab.log_sd if lab else prior().cpu.log_sd
    whole = np.hypot(own, shared) if lab else own
    assert np.std(off) == pytest.approx(whole, rel=0.1)
    assert np.std(np.mean(off, axis=1)) > 0.7 * shared  # off alike
    reading, sides = prior().read_s_per_mb, np.array(speed_off)
    # The truth is rather slower than what is told (a longer time) than faster.
    for log_sd, side in (
        (reading.log_sd, sides[sides < 0]),
        (reading.log_sd_below or reading.log_sd, sides[sides > 0]),
    ):
        assert np.sqrt(np.mean(side**2)) == pytest.approx(log_sd, rel=0.1)


def test_today_s_setting_is_the_first_and_one_that_is_in_use() -> None:
    assert drawn(today=CAT).settings[0] == CAT
    shipped = {drawn(seed, today=None).settings[0] for seed in range(40)}
    assert shipped == {ZSTD, LZ4, XZ}
    with pytest.raises(ValueError, match="not in"):
        drawn(today=Setting(Codec.GZIP))


def test_machines_are_like_their_table_and_differ() -> None:
    machines = [drawn(seed) for seed in range(300)]
    for column, setting in enumerate(machines[0].settings):
        row = next(row for row in TABLE.rows if row.setting == setting)
        sizes = np.array([machine.size_mb[column] for machine in machines])
        assert np.median(sizes) == pytest.approx(row.size_mb, rel=0.1)
        assert np.log(sizes).std() == pytest.approx(0.25, rel=0.2)
        times = np.array([m.populate_ms + m.decompress_ms[column] for m in machines])
        assert np.median(times) == pytest.approx(row.unpack_ms, rel=0.15)
    very = [
        draw_machine(np.random.default_rng(seed), TABLE, conditions(), prior(), like_table=True)
        for seed in range(10)
    ]
    for machine in very:
        assert sorted(machine.size_mb) == pytest.approx([36, 40, 55, 110])
    assert len({machine.fixed_ms for machine in very}) == 10


def scenario(read_mb_s: float | Span, shadow_ms: float | Span) -> Scenario:
    return Scenario(
        read_mb_s=read_mb_s,
        shadow_ms=shadow_ms,
        noise_log_sd=0.06,
        outliers=0.05,
        violations=(ModelViolation.NONE, ModelViolation.DRIFT),
        unpack_log_sd=0.3,
        lab=False,
    )


def test_conditions_are_drawn_of_ranges_all_orders_of_magnitude_alike() -> None:
    wide = scenario(Span(low=10, high=1000), Span(low=0, high=999))
    found = [draw_conditions(np.random.default_rng(seed), wide, seed) for seed in range(600)]
    speeds = np.array([one.read_mb_s for one in found])
    shadows = np.array([one.shadow_ms for one in found])
    assert (speeds.min() >= 10, speeds.max() <= 1000) == (True, True)
    assert (shadows.min() >= 0, shadows.max() <= 999) == (True, True)
    assert (speeds < 100).mean() == pytest.approx(0.5, abs=0.07)
    assert (shadows < 9).mean() == pytest.approx(1 / 3, abs=0.07)
    assert abs(np.corrcoef(np.log(speeds), shadows)[0, 1]) < 0.12


def test_one_value_is_that_and_violations_take_turns() -> None:
    fixed = scenario(77.0, 0.0)
    found = [draw_conditions(np.random.default_rng(1), fixed, number) for number in range(4)]
    assert {(one.read_mb_s, one.shadow_ms) for one in found} == {(77.0, 0.0)}
    assert [one.violation for one in found] == [ModelViolation.NONE, ModelViolation.DRIFT] * 2
