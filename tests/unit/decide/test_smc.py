"""Draws are led from a prior to a posterior of any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.decide.posterior.smc import log_logistic, log_sum, smc_sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def standard_normal(draws: Floats) -> Floats:
    """Return the logarithm of the prior's density."""
    return np.asarray(-(draws**2).sum(axis=1) / 2)


def start(dimensions: int, count: int = 4000) -> Floats:
    """Return draws from the prior."""
    return np.random.default_rng(2).standard_normal((count, dimensions))


@pytest.mark.parametrize(("seen", "sd"), [(0.5, 2.0), (1.0, 0.1), (3.0, 0.01)])
def test_a_normal_posterior_is_the_one_that_can_be_computed(seen: float, sd: float) -> None:
    found = smc_sample(
        start(1),
        standard_normal,
        lambda draws: -(((draws[:, 0] - seen) / sd) ** 2) / 2,
        rng=np.random.default_rng(1),
    )
    weight = 1 / (1 + sd**2)
    spread = np.sqrt(1 - weight)
    assert found.draws.mean() == pytest.approx(seen * weight, abs=0.1 * spread)
    assert found.draws.std() == pytest.approx(spread, rel=0.08)
    assert found.effective > 2000


def test_two_places_keep_their_shares() -> None:
    def likelihood(draws: Floats) -> Floats:
        near, far = (-(((draws[:, 0] - place) / 0.05) ** 2) / 2 for place in (-1.0, 1.5))
        return log_sum(np.stack([near, far]))

    found = smc_sample(start(1), standard_normal, likelihood, rng=np.random.default_rng(1))
    share = 1 / (1 + np.exp((1 - 1.5**2) / 2))
    assert (found.draws < 0).mean() == pytest.approx(share, abs=0.05)


def test_a_bent_ridge_is_followed_to_its_ends() -> None:
    """Of the sum of two, which is known, each is anything from nothing to all of it."""
    found = smc_sample(
        start(2),
        standard_normal,
        lambda draws: -(((np.log(np.exp(draws).sum(axis=1))) / 0.02) ** 2) / 2,
        rng=np.random.default_rng(1),
    )
    parts = np.exp(found.draws)
    assert parts.sum(axis=1).std() < 0.03
    assert parts[:, 0].min() < 0.15
    assert parts[:, 0].max() > 0.85
    assert parts[:, 0].mean() == pytest.approx(0.5, abs=0.03)


def test_nothing_seen_changes_nothing() -> None:
    found = smc_sample(
        start(2), standard_normal, lambda draws: np.zeros(len(draws)), rng=np.random.default_rng(1)
    )
    assert np.abs(found.draws.mean(axis=0)).max() < 0.06
    assert found.effective == pytest.approx(4000)


def test_the_same_seed_gives_the_same_draws() -> None:
    def draws(seed: int) -> Floats:
        return smc_sample(
            start(1),
            standard_normal,
            lambda draws: -np.abs(draws[:, 0]),
            rng=np.random.default_rng(seed),
        ).draws

    assert np.array_equal(draws(1), draws(1))
    assert not np.array_equal(draws(1), draws(2))


def test_a_soft_bound_is_no_wall_and_never_overflows() -> None:
    logs = log_logistic(np.array([-1e9, -3.0, 0.0, 3.0, 1e9]))
    assert np.isfinite(logs).all()
    assert (np.diff(logs) > 0).all()
    assert logs[2] == pytest.approx(np.log(0.5))
