"""Where the best candidate changes along a fact, held against where costs are equal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.core.estimates import Estimate
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import BestRange, CandidateFacts, Factor, Machine
from initadvisor.decide.decision import Thresholds, compare_candidates
from initadvisor.decide.explanation import ranges_of, stretches_along
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from initadvisor.decide.whatif import best_along
from initadvisor.decide.whatif_values import Conditions, Rule, SettingFigures, Span
from tests.fixtures.known_machines import candidate, known, machine
from tests.fixtures.synthetic_boots import unknown_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.decide.costs import ParameterDraws
    from initadvisor.decide.posterior.posterior import PosteriorCosts

EXACT = Thresholds(tolerance_ms=0, tolerance_fraction=0)
READ_MB_S = 100.0
LOG_SD = {Factor.LOADER: 1.8, Factor.CPU: 0.5}
PARTS = {
    Factor.LOADER: lambda parts: 1 / parts.read_s_per_mb,
    Factor.SHADOW: lambda parts: parts.shadow_ms,
    Factor.CPU: lambda parts: parts.cpu,
}
ZSTD, LZ4, CAT = candidate("zstd", 40, 120), candidate("lz4", 52, 40), candidate("cat", 100, 0)


def open_in(factor: Factor) -> Machine:
    """Return a machine of which one fact alone is in doubt.

    Where that is the processor, creating the files takes no time: the whole unpack is then scaled,
    as in what the crossings are held against.
    """
    found = machine(
        mb_s=READ_MB_S,
        read_log_sd=LOG_SD[factor] if factor is Factor.LOADER else 0,
        cpu_log_sd=LOG_SD[factor] if factor is Factor.CPU else 0,
        shadow_ms=None if factor is Factor.SHADOW else 0,
    )
    return replace(found, populate_ms=known(0)) if factor is Factor.CPU else found


def stretches(
    given: PosteriorCosts,
    field: Sequence[CandidateFacts],
    factor: Factor,
    *,
    thresholds: Thresholds,
    baseline: int = 0,
) -> tuple[BestRange, ...]:
    found = compare_candidates(given.draws, field, baseline=baseline, thresholds=thresholds)
    parts: ParameterDraws = given.posterior.parameters
    values = PARTS[factor](parts)
    return stretches_along(found, field, Parameter(factor), values, baseline=baseline)


def computed(
    field: Sequence[CandidateFacts], machine: Machine, factor: Factor, span: Span
) -> tuple[BestRange, ...]:
    """Return the same of figures without doubt, from where two costs are equal."""

    def exact(value: float) -> Estimate:
        return Estimate(mean=value, low=value, high=value, source="a test")

    choices = [
        SettingFigures(
            setting=one.setting,
            size_mb=exact(one.size_mb.median),
            unpack_ms=exact(machine.populate_ms.median + one.decompress_ms.median),
        )
        for one in field
    ]
    conditions = Conditions(read_mb_s=READ_MB_S, cpu_scale=1, shadow_ms=0)
    rule = Rule(tolerance_ms=0, tolerance_fraction=0)
    return best_along(choices, conditions, factor, span, rule)


@pytest.mark.parametrize("baseline", [0, 1])
@pytest.mark.parametrize(
    ("factor", "field", "expected"),
    [
        (Factor.LOADER, (ZSTD, LZ4), "zstd lz4"),
        (Factor.LOADER, (ZSTD, LZ4, CAT), "zstd lz4 cat"),
        (Factor.LOADER, (candidate("xz", 30, 600), LZ4, CAT, ZSTD), "xz zstd lz4 cat"),
        (Factor.SHADOW, (ZSTD, candidate("lz4", 41, 40)), "lz4 zstd"),
        (Factor.SHADOW, (candidate("xz", 30, 300), ZSTD, LZ4), "zstd xz"),
        (Factor.CPU, (ZSTD, LZ4), "zstd lz4"),
        (Factor.CPU, (candidate("xz", 35, 190), LZ4, ZSTD), "xz zstd lz4"),
    ],
)
def test_crossings_are_where_costs_are_equal(
    factor: Factor, field: Sequence[CandidateFacts], expected: str, baseline: int
) -> None:
    one = open_in(factor)
    given = sample_posterior_costs(one, field, [], seed=1)
    found = stretches(given, field, factor, thresholds=EXACT, baseline=baseline)
    span = Span(low=found[0].low, high=found[-1].high)
    exact = computed(field, one, factor, span)
    assert " ".join(str(stretch.setting) for stretch in found) == expected
    assert [stretch.setting for stretch in exact] == [stretch.setting for stretch in found]
    crossings = [[stretch.high for stretch in of[:-1]] for of in (found, exact)]
    assert crossings[0] == pytest.approx(crossings[1], rel=0.02)


def test_stretches_cover_the_middle_once_whatever_is_in_doubt() -> None:
    rng = np.random.default_rng(3)
    names = ("zstd", "lz4", "gzip", "xz", "lzop", "bzip2", "lzma", "cat")
    for seed in range(60):
        count = int(rng.integers(2, len(names) + 1))
        field = [
            candidate(name, *rng.uniform((30, 1), (60, 300)).tolist(), log_sd=0.15)
            for name in names[:count]
        ]
        given = sample_posterior_costs(unknown_machine(), field, [], seed=seed, count=2000)
        for factor in Factor:
            found = stretches(given, field, factor, thresholds=Thresholds())
            low, high = np.quantile(PARTS[factor](given.posterior.parameters), [0.025, 0.975])
            assert found[0].low == pytest.approx(low, rel=0.05)
            assert found[-1].high == pytest.approx(high, rel=0.05)
            assert all(stretch.low < stretch.high for stretch in found)
            for one, following in pairwise(found):
                assert one.high == following.low
                assert one.setting != following.setting


def test_ranges_are_equally_likely_and_in_order() -> None:
    values = np.random.default_rng(1).normal(size=2000)
    ranges = ranges_of(values)
    assert [len(rows) for rows in ranges] == [100] * 20
    for one, following in pairwise(ranges):
        assert values[one].max() <= values[following].min()
