"""Some years of made-up machines: what must never happen does not, and what is wanted does."""

from __future__ import annotations

import pytest

from benchmarks.years import MONTHS, YearJob, simulate_year, summed
from initadvisor.core.config import Config, Policy

NUMBERS, BOOTS = (9, 87), 4
"""Years with trials, power cuts, boots that do not come back, and switches."""


@pytest.mark.parametrize("policy", [Policy.TRY, Policy.APPLY])
def test_a_machine_always_boots_and_is_tried_no_more_than_allowed(policy: Policy) -> None:
    jobs = [YearJob(seed=1, number=number, policy=policy, boots=BOOTS) for number in NUMBERS]
    total = summed([simulate_year(job) for job in jobs])
    assert total.kernels == MONTHS * len(NUMBERS)
    assert (total.failed_defaults, total.unasked) == (0, 0)
    assert total.most_trials <= Config().trial_boots_per_kernel
    assert min(total.rebuilds, total.cuts, total.trial_boots) > 0
    if policy is Policy.TRY:
        assert not total.switches
    else:
        assert total.switches
        assert total.decided_right >= total.decided_boots >= 0.9 * total.decided


def test_what_boots_of_one_kernel_told_is_enough_for_the_next() -> None:
    found = simulate_year(YearJob(seed=1, number=224, boots=BOOTS))
    assert found.trial_boots == found.most_trials > 0
    assert found.with_trial == 0, "all of them were of the first kernel"
    assert (found.switches, found.decided, found.decided_right) == (1, MONTHS, MONTHS)


def test_the_same_year_comes_again() -> None:
    first, again = (simulate_year(YearJob(seed=1, number=4, boots=3)) for _ in range(2))
    assert first == again
    assert first != simulate_year(YearJob(seed=2, number=4, boots=3))
