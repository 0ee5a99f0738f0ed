"""What is said to decide is what would, as often as it would: known by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import CandidateFacts, DecidingFact, Factor, Machine, Outcome
from initadvisor.decide.costs import Draws
from initadvisor.decide.decision import (
    Thresholds,
    compare_candidates,
    decide,
    outcomes_within,
    strongest_rival,
)
from initadvisor.decide.explanation import Pair, deciding_fact, weights
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from tests.fixtures.known_machines import candidate, machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from initadvisor.decide.explanation import Weight

ZSTD, LZ4, CAT = candidate("zstd", 40, 120), candidate("lz4", 52, 40), candidate("cat", 100, 0)
EXACT = Thresholds(tolerance_ms=5, tolerance_fraction=0.0)


def asked(
    machine: Machine, *field: CandidateFacts
) -> tuple[DecidingFact | None, tuple[Weight, ...]]:
    """Return what would decide, and what explains the same; the first candidate is today's."""
    given = sample_posterior_costs(machine, field, [], seed=1)
    found = compare_candidates(given.draws, field, baseline=0, thresholds=EXACT)
    rival = strongest_rival(found, 0)
    assert rival is not None
    pair, parts = Pair(advised=0, rival=rival[0]), given.posterior.parameters
    return (
        deciding_fact(parts, field, found, pair, baseline=0, thresholds=EXACT),
        weights(parts, field, found, given.summary, pair, baseline=0),
    )


def deciding(machine: Machine, *field: CandidateFacts) -> DecidingFact:
    fact, _ = asked(machine, *field)
    assert fact is not None
    return fact


def crossings(fact: DecidingFact) -> list[float]:
    return [stretch.high for stretch in fact.ranges[:-1]]


def settings(fact: DecidingFact) -> list[str]:
    return [str(stretch.setting) for stretch in fact.ranges]


def test_a_shadow_decides_where_one_unpack_is_hidden_and_the_other_not_yet() -> None:
    """80 ms to create the files: zstd takes 200 ms, lz4 120, and 5 ms do not matter."""
    fact = deciding(machine(shadow_ms=None), ZSTD, candidate("lz4", 40, 40))
    assert (fact.factor, settings(fact)) == (Factor.SHADOW, ["lz4", "zstd"])
    assert crossings(fact) == pytest.approx([195], rel=0.01)
    # Of 20 ranges one holds shadows on both sides of that.
    assert fact.settled == 1


def test_a_loader_decides_between_three() -> None:
    """12 MB for 80 ms, and 48 MB more for 40 ms more; 5 ms do not matter for today's."""
    fact = deciding(machine(read_log_sd=1.8), ZSTD, LZ4, CAT)
    assert (fact.factor, settings(fact)) == (Factor.LOADER, ["zstd", "lz4", "cat"])
    assert crossings(fact) == pytest.approx([160, 1200], rel=0.05)
    # Within one range in 20, between 150 MB/s and 160, lz4 saves something that does not matter.
    assert fact.settled >= 0.95


def test_what_decides_and_what_is_explained_have_the_same_crossings() -> None:
    fact, explained = asked(machine(read_log_sd=1.2, cpu_log_sd=0.2), ZSTD, LZ4, CAT)
    assert fact is not None
    [same] = [weight for weight in explained if weight.what is Parameter(fact.factor)]
    assert fact.ranges == same.ranges


def test_a_fact_decides_only_as_far_as_the_others_leave_it() -> None:
    """What an image takes by itself stays open when the loader is known."""
    clear = deciding(machine(read_log_sd=1.2), ZSTD, LZ4)
    vague = deciding(
        machine(read_log_sd=1.2),
        candidate("zstd", 40, 120, log_sd=0.3),
        candidate("lz4", 52, 40, log_sd=0.3),
    )
    assert clear.factor is vague.factor is Factor.LOADER
    assert clear.settled >= 0.95
    assert 0.3 < vague.settled < 0.9


def test_of_facts_that_decide_nothing_the_weightiest_is_named() -> None:
    """90 ms more of reading, within 2 ms, for 100 ms less, within 15; 70 ms by chance besides."""
    doubtful = machine(read_log_sd=0.02, cpu_log_sd=0.15)
    field = [candidate("zstd", 40, 120, log_sd=0.6), candidate("lz4", 49, 20, log_sd=0.6)]
    fact = deciding(doubtful, *field)
    assert (fact.factor, fact.settled) == (Factor.CPU, 0)


def test_where_every_fact_is_known_none_decides() -> None:
    doubtful = [candidate("zstd", 40, 120, log_sd=0.3), candidate("lz4", 41, 115, log_sd=0.3)]
    assert asked(machine(), *doubtful)[0] is None


def rows_of(draws: Draws, rows: NDArray[np.int64]) -> Draws:
    """Return some of the draws."""
    return Draws(
        size_mb=draws.size_mb[rows],
        read_ms=draws.read_ms[rows],
        unpack_ms=draws.unpack_ms[rows],
        shadow_ms=draws.shadow_ms[rows],
        waited_ms=draws.waited_ms[rows],
        total_ms=draws.total_ms[rows],
        extra_ms=draws.extra_ms,
    )


def test_an_outcome_within_a_range_is_the_decision_on_its_draws_alone() -> None:
    field = [ZSTD, LZ4, CAT, candidate("xz", 30, 200, log_sd=0.3)]
    given = sample_posterior_costs(
        machine(read_log_sd=1.2, cpu_log_sd=0.3, shadow_ms=None), field, [], seed=1, count=4000
    )
    thresholds = Thresholds()
    found = compare_candidates(given.draws, field, baseline=0, thresholds=thresholds)
    speed = np.argsort(given.posterior.parameters.read_s_per_mb)
    ranges = np.array_split(speed, 20)
    outcomes = list(outcomes_within(found, ranges, baseline=0, thresholds=thresholds))
    alone = [
        decide(
            rows_of(given.draws, rows), field, baseline=0, thresholds=thresholds, source="a test"
        ).outcome
        for rows in ranges
    ]
    assert outcomes == alone
    assert set(alone) >= {Outcome.SWITCH, Outcome.UNDECIDED}
