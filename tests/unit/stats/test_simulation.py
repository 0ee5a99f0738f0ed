"""Campaigns on made-up machines are reproducible, and what is said of them can be reckoned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.model.cost import Outcome
from initadvisor.model.simulation import Strain
from initadvisor.stats.decision import Thresholds
from initadvisor.stats.next_boot import Limits
from initadvisor.stats.simulated_machine import known_beforehand, true_costs
from initadvisor.stats.simulation import Rules, run_campaign, run_fixed, summarised, tolerance_ms
from tests.unit.stats.made_up import (
    CAT,
    LZ4,
    XZ,
    ZSTD,
    campaign,
    conditions,
    drawn,
    fixed,
    prior,
    the_table_s,
)

if TYPE_CHECKING:
    from initadvisor.model.simulation import CampaignRun, TrueMachine

RULES = Rules(thresholds=Thresholds(), limits=Limits())


def run(
    machine: TrueMachine, *, seed: int = 1, most_boots: int = 40, lab: bool = True
) -> CampaignRun:
    """Run a campaign of somebody who knows of a machine what a lab (or bench) tells."""
    told = conditions(lab=lab, unpack_log_sd=0.05 if lab else 0.3)
    known, candidates = known_beforehand(np.random.default_rng(seed), machine, prior(), told)
    rules = Rules(thresholds=Thresholds(), limits=Limits(), most_boots=most_boots)
    return run_campaign(machine, known, candidates, rules=rules, seed=seed)


def test_the_same_seed_gives_the_same_campaign_and_another_one_another() -> None:
    machine = drawn(4, noise_log_sd=0.06, outliers=0.05, read_mb_s=300.0)
    first, again = (run(machine, seed=5, lab=False) for _ in range(2))
    assert first == again
    others = {run(machine, seed=seed, lab=False).stated for seed in range(6, 9)}
    assert len(others) == 3
    assert run_fixed(machine, rules=RULES, seed=5) == run_fixed(machine, rules=RULES, seed=5)


def test_a_campaign_starts_with_today_s_and_ends_when_what_it_chose_has_booted() -> None:
    # Of the table's machine with a disk of 16 MB/s: xz reads 4 MB less, and loses it ten times.
    machine = the_table_s(read_mb_s=16.0, noise_log_sd=0.03, today=LZ4)
    found = run(machine)
    assert (found.outcome, found.setting, found.best) == (Outcome.SWITCH, ZSTD, ZSTD)
    assert found.booted[0] == LZ4
    assert ZSTD in found.booted
    assert (found.regret_ms, found.right) == (0.0, True)
    assert found.boots == len(found.order) == len(found.booted)
    assert found.booted == tuple(machine.settings[column] for column in found.order)
    assert found.stated >= 0.95


def test_what_is_not_settled_within_the_boots_is_undecided() -> None:
    lz4 = the_table_s(today=LZ4)
    found = run(lz4, most_boots=1, lab=False)
    assert (found.boots, found.order, found.outcome) == (1, (0,), Outcome.UNDECIDED)
    assert (found.setting, found.best, found.right) == (LZ4, ZSTD, False)
    assert found.regret_ms == pytest.approx(970 - 900)
    assert found.tolerance_ms == pytest.approx(0.02 * 970)


def test_what_would_be_advised_then_is_what_was_chosen() -> None:
    # That xz is slow is certain before a second boot; what is to take its place is not.
    found = run(the_table_s(today=XZ), most_boots=1, lab=False)
    assert (found.outcome, found.setting) == (Outcome.UNDECIDED, ZSTD)
    assert (found.regret_ms, found.right) == (0.0, True)
    assert found.stated < 0.95


def test_a_best_setting_in_use_is_kept() -> None:
    found = run(the_table_s(noise_log_sd=0.03, shadow_ms=0.0))
    assert (found.outcome, found.setting, found.right) == (Outcome.KEEP, ZSTD, True)
    assert (found.regret_ms, found.tolerance_ms) == (0.0, 0.02 * 900)


def test_the_tolerance_is_the_larger_of_two() -> None:
    costs = np.array([900.0, 400.0])
    assert tolerance_ms(costs, Thresholds()) == 18
    assert tolerance_ms(costs, Thresholds(tolerance_ms=30)) == 30


def test_the_classic_comparison_boots_all_of_them_and_without_noise_is_right() -> None:
    for today, costs in ((ZSTD, 900), (XZ, 1640)):
        machine = the_table_s(today=today)
        assert true_costs(machine)[0] == pytest.approx(costs)
        found = run_fixed(machine, rules=RULES, seed=1)
        assert (found.boots, found.setting, found.regret_ms, found.right) == (80, ZSTD, 0.0, True)


def test_the_classic_comparison_takes_drift_for_a_difference() -> None:
    # Each setting boots 20 times before the next one does, so the last one gains 60 boots of drift.
    machine = the_table_s(today=ZSTD, strain=Strain.DRIFT)
    faster = min(machine.drift_ms, -machine.drift_ms)
    assert faster < -5
    drifting = [
        run_fixed(replace(machine, drift_ms=drift_ms), rules=RULES, seed=1)
        for drift_ms in (faster, -faster)
    ]
    assert drifting[0].setting == LZ4
    assert drifting[0].regret_ms == pytest.approx(970 - 900)
    assert not drifting[0].right
    assert drifting[1].right


def test_campaigns_in_figures_reckoned_by_hand() -> None:
    runs = [
        campaign(2),
        campaign(4, regret_ms=8.0),
        campaign(6, outcome=Outcome.KEEP, right=False, regret_ms=30.0),
        campaign(40, outcome=Outcome.UNDECIDED, right=True),
    ]
    classic = [fixed(), fixed(regret_ms=12.0, right=False), fixed(), fixed(regret_ms=10.0)]
    found = summarised(runs, classic)
    assert (found.machines, found.decided, found.right) == (4, 0.75, 0.5)
    assert (found.boots_median, found.boots_90) == (4, None)
    assert found.beyond_ms == 20 / 4
    assert (found.fixed_boots, found.fixed_right, found.fixed_beyond_ms) == (80, 0.75, 2 / 4)


@pytest.mark.parametrize(
    ("settled", "undecided", "median", "most"),
    [
        (range(1, 11), 0, 5, 9),
        (range(1, 10), 1, 5, 9),
        (range(1, 9), 2, 5, None),
        (range(1, 5), 6, None, None),
        ([7], 0, 7, 7),
        ([], 3, None, None),
    ],
)
def test_boots_to_a_decision_count_those_that_never_come_to_one(
    settled: list[int], undecided: int, median: int | None, most: int | None
) -> None:
    runs = [campaign(boots) for boots in settled]
    runs += [campaign(40, outcome=Outcome.UNDECIDED)] * undecided
    found = summarised(runs, [fixed()] * len(runs))
    assert (found.boots_median, found.boots_90) == (median, most)


def test_what_was_stated_is_held_against_what_was_right() -> None:
    runs = [
        campaign(1, stated=0.95),
        campaign(1, stated=0.96, right=False),
        campaign(1, stated=0.97),
        campaign(1, stated=0.99),
        campaign(1, stated=1.0),
        campaign(40, stated=0.999, right=False, outcome=Outcome.UNDECIDED),
    ]
    low, middle, high = summarised(runs, [fixed()] * 6).calibration
    assert [one.stated for one in (low, middle, high)] == pytest.approx([0.955, 0.97, 0.995])
    assert [one.right for one in (low, middle, high)] == [0.5, 1, 1]
    assert [one.count for one in (low, middle, high)] == [2, 1, 2]


def test_the_unused_setting_of_the_table_is_dearer_everywhere() -> None:
    """What tests above rest on: cat is never the best there."""
    for read_mb_s in (16.0, 100.0):
        costs = true_costs(the_table_s(read_mb_s=read_mb_s))
        assert costs[the_table_s().settings.index(CAT)] > costs.min() + 100
