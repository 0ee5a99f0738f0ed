"""Held against machines that are known: intervals hold the truth as often as they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.decide.boot_evidence import BootEvidence, Relation
from initadvisor.decide.costs import draw_parts, priced
from initadvisor.decide.posterior.boot_summary import columns, summarise_shadow, summarise_unpacking
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside, IntervalSource
from tests.fixtures.synthetic_boots import FIELD, WITH_LAB, simulate, unknown_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.decide.cost import CandidateFacts
    from initadvisor.decide.posterior.posterior import PosteriorCosts

    Floats = NDArray[np.float64]

PLANS = (
    ((0, 1),),
    ((0, 3), (1, 2)),
    ((0, 30),),
    ((0, 20), (1, 3), (2, 3), (3, 3), (4, 3)),
)
"""How often which candidates booted."""


def holds(draws: Floats, truth: float) -> bool:
    """Tell whether the truth is in the middle 95 %."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return bool(low <= truth <= high)


def width(draws: Floats) -> float:
    """Return the width of the middle 95 %."""
    return float(np.ptp(np.quantile(draws, [0.025, 0.975])))


def test_95_percent_intervals_hold_the_truth_in_about_95_percent() -> None:
    machine = unknown_machine()
    held: dict[str, list[bool]] = {name: [] for name in ("total", "unpack", "saving", "loader")}
    for candidates in (FIELD, WITH_LAB):
        simulated = simulate(candidates, count=120)
        true = simulated.costs
        for row in range(120):
            boots = [
                boot
                for column, count in PLANS[row % len(PLANS)]
                for boot in simulated.boot(row, column, boots=count)
            ]
            known = sample_posterior_costs(machine, candidates, boots, seed=row, count=500)
            draws = known.draws
            for column in range(len(candidates)):
                held["total"].append(holds(draws.total_ms[:, column], true.total_ms[row, column]))
                held["unpack"].append(
                    holds(draws.unpack_ms[:, column], true.unpack_ms[row, column])
                )
                if column:
                    saved = draws.total_ms[:, 0] - draws.total_ms[:, column]
                    truth = true.total_ms[row, 0] - true.total_ms[row, column]
                    held["saving"].append(holds(saved, float(truth)))
            per_mb = known.posterior.parameters.read_s_per_mb
            held["loader"].append(holds(per_mb, simulated.parts.read_s_per_mb[row]))
    coverage = {name: float(np.mean(values)) for name, values in held.items()}
    assert all(0.90 <= share <= 0.99 for share in coverage.values()), coverage


def test_more_boots_never_leave_anything_much_wider() -> None:
    simulated, machine = simulate(count=25), unknown_machine()
    ratios = []
    for row in range(25):
        boots = simulated.boot(row, 0, boots=40)
        few, many = (
            sample_posterior_costs(machine, FIELD, kept, seed=1, count=1000).draws
            for kept in (boots[:4], boots)
        )
        ratios.append([width(many.total_ms[:, i]) / width(few.total_ms[:, i]) for i in range(5)])
    assert np.median(ratios) < 1
    assert np.max(ratios) < 1.35


def test_more_images_never_leave_anything_much_wider() -> None:
    simulated, machine = simulate(count=25), unknown_machine()
    ratios = []
    for row in range(25):
        boots = [simulated.boot(row, column, boots=5) for column in range(5)]
        one, all_of_them = (
            sample_posterior_costs(machine, FIELD, kept, seed=1, count=1000).draws
            for kept in (boots[0], list(chain.from_iterable(boots)))
        )
        ratios.append(
            [width(all_of_them.unpack_ms[:, i]) / width(one.unpack_ms[:, i]) for i in range(5)]
        )
    assert np.median(ratios[1:]) < 0.5
    assert np.max(ratios) < 1.35


def weighted_quantiles(values: Floats, weights: Floats) -> Floats:
    """Return the quartiles and the ends of the middle 95 %."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.searchsorted(reached, [0.025, 0.25, 0.5, 0.75, 0.975])]


def log_student(off: Floats, freedom: float) -> Floats:
    """Return the logarithm of Student's density, up to a constant."""
    return np.asarray(-(freedom + 1) / 2 * np.log1p(off**2 / freedom))


@pytest.mark.parametrize("candidates", [FIELD, WITH_LAB], ids=["bench", "lab"])
def test_unpacking_is_what_weighing_many_prior_draws_gives(
    candidates: Sequence[CandidateFacts],
) -> None:
    """The plain way, which takes a million draws where this takes some thousands."""
    machine, simulated = unknown_machine(), simulate(candidates, count=3, seed=5)
    boots = [*simulated.boot(1, 0, boots=2), *simulated.boot(1, 3)]
    seen = summarise_unpacking(columns(boots, candidates), candidates).seen
    prior = priced(
        draw_parts(machine, candidates, seed=3, count=400_000), machine, candidates
    ).unpack_ms
    logs = sum(
        log_student((np.log(prior[:, column]) - place.middle) / place.sd, place.freedom)
        for column, place in seen.items()
    )
    weights = np.exp(logs - np.max(logs))
    draws = sample_posterior_costs(machine, candidates, boots, seed=1, count=10_000).draws
    for column in range(len(candidates)):
        expected = weighted_quantiles(prior[:, column], weights)
        found = np.quantile(draws.unpack_ms[:, column], [0.025, 0.25, 0.5, 0.75, 0.975])
        assert found == pytest.approx(expected, rel=0.04)


def test_the_shadow_is_what_weighing_many_draws_gives() -> None:
    """Of boots that do not show whether anything waited: a ridge of B1 and B2."""
    boot = BootEvidence(
        relation=Relation.SAME, class_key="a", unpack_us=230_000, begin_to_init_us=900_000
    )
    seen = summarise_shadow(columns([boot] * 3, FIELD), unpack_log_sd=0.05, synchronous=False)
    (together,) = seen.together
    rng = np.random.default_rng(1)
    parts = draw_parts(unknown_machine(), FIELD, seed=4, count=600_000)
    shadow, rest = (
        of * np.exp(rng.normal(0, 0.3, len(of))) for of in (parts.shadow_ms, parts.rest_ms)
    )
    rng.shuffle(rest)
    whole = np.log(np.maximum(shadow, 230) + rest)
    weights = np.exp(
        log_student((whole - together.whole.middle) / together.whole.sd, together.whole.freedom)
    )
    known = sample_posterior_costs(unknown_machine(), FIELD, [boot] * 3, seed=1, count=10_000)
    found = np.quantile(known.posterior.parameters.shadow_ms, [0.025, 0.25, 0.5, 0.75, 0.975])
    assert found == pytest.approx(weighted_quantiles(shadow, weights), rel=0.2)


TIMES = st.one_of(st.none(), st.floats(1, 3.6e9))
SHORT_TIMES = st.one_of(st.none(), st.floats(0, 3.6e9))
BOOTS = st.lists(
    st.builds(
        BootEvidence,
        relation=st.sampled_from(Relation),
        class_key=st.sampled_from(["a", "b"]),
        age_days=st.one_of(st.none(), st.floats(0, 1e5)),
        digest=st.sampled_from([None, "unknown", *(candidate.digest for candidate in FIELD)]),
        setting=st.sampled_from([None, *(candidate.setting for candidate in FIELD)]),
        loaded_mb=st.one_of(st.none(), st.floats(1e-6, 1e5)),
        unpack_us=TIMES,
        begin_to_init_us=TIMES,
        waiting=st.sampled_from(Waiting),
        shadow_us=SHORT_TIMES,
        rest_us=SHORT_TIMES,
        read_us=TIMES,
        read_source=st.sampled_from([None, *IntervalSource]),
        read_beside=st.lists(st.sampled_from(Beside), max_size=3, unique=True).map(tuple),
    ),
    max_size=12,
)


def is_sound(known: PosteriorCosts) -> bool:
    """Tell whether every draw is a time that something can take."""
    draws = known.draws
    times = (draws.read_ms, draws.unpack_ms, draws.total_ms, known.posterior.parameters.shadow_ms)
    return all(bool(np.isfinite(of).all() and (of > 0).all()) for of in times)


@given(boots=BOOTS, lab=st.booleans())
def test_whatever_boots_say_every_draw_is_a_time(boots: list[BootEvidence], *, lab: bool) -> None:
    candidates = WITH_LAB if lab else FIELD
    given_boots = sample_posterior_costs(unknown_machine(), candidates, boots, seed=1, count=300)
    assert is_sound(given_boots)
    lessons = given_boots.summary
    assert 0 <= lessons.boots_used <= len(boots)
    assert 1 <= given_boots.posterior.effective <= 300
    for learnt in lessons.updates:
        assert learnt.posterior.low <= learnt.posterior.high
        assert learnt.boots <= len(boots)


@given(boots=BOOTS, seed=st.integers(0, 2**32))
def test_the_order_never_matters(boots: list[BootEvidence], seed: int) -> None:
    shuffled = [boots[index] for index in np.random.default_rng(seed).permutation(len(boots))]
    one, other = (
        sample_posterior_costs(unknown_machine(), FIELD, of, seed=1, count=100).draws.total_ms
        for of in (boots, shuffled)
    )
    assert np.array_equal(one, other)


def test_what_is_known_for_certain_stays_so_whatever_boots_say() -> None:
    machine = unknown_machine()
    certain = replace(
        machine,
        cpu=replace(machine.cpu, log_sd=0.0),
        populate_ms=replace(machine.populate_ms, log_sd=0.0),
        read_s_per_mb=replace(machine.read_s_per_mb, log_sd=0.0),
    )
    field = [replace(c, decompress_ms=replace(c.decompress_ms, log_sd=0.0)) for c in FIELD]
    boots = simulate(count=1).boot(0, 0, boots=5)
    draws = sample_posterior_costs(certain, field, boots, seed=1, count=500).draws
    assert np.allclose(draws.unpack_ms[:, 0], 200)
    assert np.allclose(draws.read_ms[:, 0], 200)
