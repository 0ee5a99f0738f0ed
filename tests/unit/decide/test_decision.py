"""A switch is to what saves enough and hardly ever loses as much; the tie goes to today's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from initadvisor.decide.cost import Advice, CandidateFacts, Decision, Outcome
from initadvisor.decide.decision import (
    Thresholds,
    chances,
    compare_candidates,
    decide,
    decide_by_size,
)
from tests.fixtures.known_machines import candidate, draw_costs, known, machine

ZSTD = candidate("zstd", 40, 120)


def decided(
    *others: CandidateFacts,
    mb_s: float = 100,
    shadow_ms: float | None = 0,
    read_log_sd: float = 0,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
) -> Decision:
    candidates = [ZSTD, *others]
    draws = draw_costs(
        machine(mb_s=mb_s, shadow_ms=shadow_ms, read_log_sd=read_log_sd), candidates, seed=1
    )
    return decide(draws, candidates, baseline=0, thresholds=thresholds, source="a test")


def test_a_certain_large_gain_is_a_switch() -> None:
    decision = decided(candidate("lz4", 41, 40))
    assert (decision.action, decision.outcome) == (Advice.SWITCH, Outcome.SWITCH)
    assert str(decision.setting) == "lz4"
    assert decision.probability == 1
    assert decision.saving_ms.mean == pytest.approx(80 - 10)


def test_the_larger_of_two_certain_gains_is_chosen() -> None:
    decision = decided(candidate("lz4", 41, 40), candidate("zstd -19", 20, 130))
    assert str(decision.setting) == "zstd -19"


def test_a_gain_within_the_tolerance_keeps_today_s() -> None:
    decision = decided(candidate("lz4", 40, 117))
    assert (decision.action, decision.outcome) == (Advice.KEEP, Outcome.KEEP)
    assert str(decision.setting) == "zstd"
    assert decision.probability == 1
    assert decision.saving_ms.mean == 0


def test_the_tolerance_grows_with_what_today_s_image_takes() -> None:
    gain_of_9_ms = candidate("lz4", 40, 111)
    small = Thresholds(tolerance_ms=5, tolerance_fraction=0.001)
    assert decided(gain_of_9_ms, thresholds=small).outcome is Outcome.SWITCH
    assert decided(gain_of_9_ms).outcome is Outcome.KEEP


def test_below_5_ms_nothing_matters_however_little_today_s_image_takes() -> None:
    for gain_ms, outcome in ((4.9, Outcome.KEEP), (5.1, Outcome.SWITCH)):
        assert decided(candidate("lz4", 40, 120 - gain_ms), mb_s=4000).outcome is outcome


def test_what_every_image_costs_alike_does_not_widen_the_tolerance() -> None:
    field = [ZSTD, candidate("lz4", 40, 105)]
    slow = replace(machine(mb_s=100, shadow_ms=0), fixed_ms=known(5000), kernel_mb=1000)
    draws = draw_costs(slow, field, seed=1)
    draws = replace(draws, total_ms=draws.total_ms + 5000)  # B2
    found = compare_candidates(draws, field, baseline=0, thresholds=Thresholds())
    assert found.tolerance_ms == pytest.approx(0.02 * (draws.read_ms + draws.unpack_ms)[:, 0])
    decision = decide(draws, field, baseline=0, thresholds=Thresholds(), source="a test")
    assert decision.outcome is Outcome.SWITCH


def test_an_unknown_loader_leaves_it_undecided() -> None:
    decision = decided(candidate("lz4", 52, 40), read_log_sd=1.2)
    assert (decision.action, decision.outcome) == (Advice.KEEP, Outcome.UNDECIDED)
    assert str(decision.setting) == "zstd"
    assert str(decision.leader) == "lz4" or decision.leader_probability < 0.95


def test_a_candidate_that_may_not_be_used_is_never_chosen() -> None:
    decision = decided(candidate("lz4", 10, 10, eligible=False))
    assert decision.outcome is Outcome.KEEP
    assert str(decision.leader) == "zstd"


def test_build_time_counts_where_the_objective_adds_it() -> None:
    costly = CandidateFacts(
        setting=candidate("xz", 1, 1).setting,
        size_mb=known(20),
        decompress_ms=known(120),
        extra_ms=5000,
    )
    assert decided(costly).outcome is Outcome.KEEP


def test_by_size_the_smallest_that_fits_wins_whatever_it_costs() -> None:
    candidates = [ZSTD, candidate("xz", 30, 1500), candidate("lzma", 20, 9000, eligible=False)]
    draws = draw_costs(machine(), candidates, seed=1)
    decision = decide_by_size(
        draws, candidates, baseline=0, thresholds=Thresholds(), source="a test"
    )
    assert (decision.action, str(decision.setting)) == (Advice.SWITCH, "xz")
    # It reads 10 MB less at 100 MB/s, and takes 1500 ms to decompress instead of ZSTD's 120.
    assert decision.saving_ms.mean == pytest.approx(100 - (1500 - 120))
    assert decision.loss_ms == pytest.approx(-decision.saving_ms.mean)


def test_by_size_a_gain_within_the_tolerance_keeps_today_s() -> None:
    candidates = [ZSTD, candidate("xz", 39.5, 1500)]
    draws = draw_costs(machine(), candidates, seed=1)
    decision = decide_by_size(
        draws, candidates, baseline=0, thresholds=Thresholds(), source="a test"
    )
    assert decision.outcome is Outcome.KEEP
    assert decision.loss_ms == 0


def test_with_nothing_to_compare_today_s_setting_is_kept() -> None:
    assert decided().outcome is Outcome.KEEP


def test_by_size_a_gain_that_is_likely_and_not_certain_is_a_guess() -> None:
    candidates = [ZSTD, replace(candidate("xz", 38, 900), size_mb=known(38, 0.04))]
    draws = draw_costs(machine(), candidates, seed=1)
    decision = decide_by_size(
        draws, candidates, baseline=0, thresholds=Thresholds(), source="a test"
    )
    assert 0.6 < decision.leader_probability < 0.95
    assert (decision.outcome, str(decision.setting)) == (Outcome.UNDECIDED, "zstd")
    assert str(decision.guess) == "xz"


def chances_of(*others: CandidateFacts, by_size: bool = False) -> list[float]:
    candidates = [ZSTD, *others]
    draws = draw_costs(machine(), candidates, seed=1)
    found = chances(draws, candidates, by_size=by_size)
    assert found.sum() == pytest.approx(1)
    return list(found)


def test_the_chance_of_being_the_best_is_that_over_the_draws() -> None:
    assert chances_of(candidate("lz4", 41, 40)) == [0, 1]
    assert chances_of(candidate("lz4", 80, 119)) == [1, 0]
    even = chances_of(candidate("lz4", 40, 120, log_sd=0.2))
    assert even == pytest.approx([0.5, 0.5], abs=0.02)


def test_what_may_not_be_chosen_has_no_chance() -> None:
    assert chances_of(candidate("lz4", 1, 1, eligible=False)) == [1, 0]


def test_by_size_the_smallest_has_every_chance_and_a_doubtful_size_some() -> None:
    assert chances_of(candidate("xz", 30, 900), by_size=True) == [0, 1]
    doubtful = replace(candidate("xz", 40, 900), size_mb=known(40, 0.02))
    assert chances_of(doubtful, by_size=True) == pytest.approx([0.5, 0.5], abs=0.02)


def test_what_the_objective_adds_counts() -> None:
    costly = replace(candidate("lz4", 41, 40), extra_ms=500)
    assert chances_of(costly) == [1, 0]


def test_the_tolerance_of_an_answer_is_that_of_the_medians_as_in_whatif() -> None:
    """Where the loader may be far slower, the mean of the tolerances would be another one."""
    doubtful = machine(mb_s=100, shadow_ms=300)
    read_s_per_mb = replace(doubtful.read_s_per_mb, log_sd=1.5)
    field = [ZSTD, candidate("lz4", 41, 40)]
    draws = draw_costs(replace(doubtful, read_s_per_mb=read_s_per_mb), field, seed=1)
    found = compare_candidates(draws, field, baseline=0, thresholds=Thresholds())
    read_ms = 1000 * ZSTD.size_mb.median * read_s_per_mb.median
    expected = Thresholds().tolerance(np.array([read_ms + 300]))[0]
    assert found.typical_tolerance_ms == pytest.approx(expected, rel=0.03)
    assert found.tolerance_ms.mean() > 1.3 * expected
