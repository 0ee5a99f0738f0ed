"""Draws from a posterior of few dimensions, whatever its shape: tempered sequential Monte Carlo.

Draws from the prior are weighted by a small power of the likelihood, drawn again by their weights
and moved about, and so on until the power is 1. Where boots say little that is one step, and the
same as importance sampling; where they say much, or something that is bent (B1 + B2 is known, but
neither of them), the steps lead there. See Del Moral, Doucet, Jasra: "Sequential Monte Carlo
samplers", 2006; the powers are chosen as in Jasra et al., 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    LogDensity = Callable[[Floats], Floats]

_WALKERS = 10_000
_LEAST_WORTH = 0.5
"""The weights of a step may be worth so many of the draws; that decides how far a step goes."""

_MOST_STEPS = 60
_LEAST_MOVES = 3
_MOST_MOVES = 30
_FORGOTTEN = 0.15
"""Moved until what draws have in common with where they were (its square) is less."""

_BISECTIONS = 40
_LAST_MOVES = 2
_LOGISTIC_SD = 0.5513
"""A logistic distribution of this scale has a standard deviation of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempered:
    """Draws from a posterior, a row each, worth as much as ``effective`` independent ones."""

    draws: Floats
    effective: float


def tempered(
    start: Floats,
    log_prior: LogDensity,
    log_likelihood: LogDensity,
    *,
    rng: np.random.Generator,
) -> Tempered:
    """Turn draws from a prior (rows) into as many from the posterior.

    Both densities give a logarithm, up to a constant, for each row.
    ``effective`` counts those for less that come from the same draw and have not moved far since.
    """
    count = len(start)
    walk = _Walk(start[:_WALKERS], log_prior, log_likelihood, rng)
    for _ in range(_MOST_STEPS):
        if walk.power == 1.0:
            break
        walk.step()
    walkers = len(walk.draws)
    copies = np.tile(np.arange(walkers), -(-count // walkers))[:count]
    walk.take(copies)
    if count > walkers:
        for _ in range(_LAST_MOVES):
            walk.move()
    return Tempered(draws=walk.draws, effective=walkers / walk.inflation)


class _Walk:
    """Draws on their way from prior to posterior."""

    def __init__(
        self,
        start: Floats,
        log_prior: LogDensity,
        log_likelihood: LogDensity,
        rng: np.random.Generator,
    ) -> None:
        self.draws = start
        self.power = 0.0
        self.inflation = 1.0
        self._log_prior = log_prior
        self._log_likelihood = log_likelihood
        self._rng = rng
        self._prior = log_prior(start)
        self._likelihood = log_likelihood(start)
        self._scale = 1.0

    def step(self) -> None:
        """Go as much nearer to the posterior as the weights allow, and spread out there."""
        power = self._next_power()
        weights = _weights(self._likelihood, power - self.power)
        worth = _worth(weights)
        self.power = power
        places = (np.arange(len(weights)) + self._rng.random()) / len(weights)
        reached = np.cumsum(weights) / weights.sum()
        self.take(np.searchsorted(reached, places).clip(max=len(weights) - 1))
        self.inflation /= worth
        self._spread_out()

    def take(self, rows: NDArray[np.intp]) -> None:
        """Keep these rows, some of them several times."""
        self.draws = self.draws[rows]
        self._prior = self._prior[rows]
        self._likelihood = self._likelihood[rows]

    def _spread_out(self) -> None:
        """Move until where a draw was says little of where it is; what it still says is counted."""
        before = self.draws
        same = 1.0
        for number in range(_MOST_MOVES):
            self.move()
            same = _in_common(before, self.draws)
            if number + 1 >= _LEAST_MOVES and same < _FORGOTTEN:
                break
        self.inflation = 1 + (self.inflation - 1) * same

    def move(self) -> None:
        """Let every draw try one step of a random walk that leaves the tempered posterior as is."""
        count, dimensions = self.draws.shape
        covariance = np.atleast_2d(np.cov(self.draws, rowvar=False))
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(dimensions))
        length = 2.38 / np.sqrt(dimensions) * self._scale
        tried = self.draws + length * self._rng.standard_normal((count, dimensions)) @ root.T
        prior, likelihood = self._log_prior(tried), self._log_likelihood(tried)
        gain = prior - self._prior + self.power * (likelihood - self._likelihood)
        taken = np.log(self._rng.random(count)) < gain
        self.draws = np.where(taken[:, None], tried, self.draws)
        self._prior = np.where(taken, prior, self._prior)
        self._likelihood = np.where(taken, likelihood, self._likelihood)
        self._scale = float(np.clip(self._scale * np.exp(taken.mean() - 0.3), 0.05, 1.5))

    def _next_power(self) -> float:
        left = 1.0 - self.power
        if _worth(_weights(self._likelihood, left)) >= _LEAST_WORTH:
            return 1.0
        low, high = 0.0, left
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if _worth(_weights(self._likelihood, middle)) >= _LEAST_WORTH:
                low = middle
            else:
                high = middle
        return self.power + low


def _weights(log_likelihood: Floats, power: float) -> Floats:
    return np.asarray(np.exp(power * (log_likelihood - log_likelihood.max())))


def _worth(weights: Floats) -> float:
    """Return which part of the draws is as much worth unweighted (Kish)."""
    return float(weights.sum() ** 2 / (weights @ weights) / len(weights))


def _in_common(before: Floats, after: Floats) -> float:
    """Return the largest squared correlation of any coordinate with itself."""
    one, other = before - before.mean(axis=0), after - after.mean(axis=0)
    both = (one * other).sum(axis=0) ** 2
    of_each = (one**2).sum(axis=0) * (other**2).sum(axis=0)
    return float(np.max(both / np.maximum(of_each, 1e-300)))


def log_logistic(deviations: Floats) -> Floats:
    """Return the logarithm of the probability that a blur of standard deviation 1 is less.

    A logistic blur: as good as a normal one, and its tails forgive what should not be.
    """
    scaled = deviations / _LOGISTIC_SD
    return np.asarray(np.minimum(scaled, 0.0) - np.log1p(np.exp(-np.abs(scaled))))


def log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of each column, of whose values these are the logarithms."""
    most = logs.max(axis=0)
    return np.asarray(most + np.log(np.exp(logs - most).sum(axis=0)))
