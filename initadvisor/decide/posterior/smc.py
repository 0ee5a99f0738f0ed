"""Draws from a posterior of few dimensions, whatever its shape: tempered sequential Monte Carlo.

Draws from somewhere (the prior, or the neighbourhood of where the posterior is highest) are
weighted by a small power of how much likelier the posterior makes them, drawn again by their
weights and moved about, and so on until the power is 1. Where they are as good as from the
posterior that is one step without moves, and the same as importance sampling; where they are not,
or where it is bent (B1 + B2 is known, but neither of them), the steps lead there. See Del Moral,
Doucet, Jasra: "Sequential Monte Carlo samplers", 2006; the powers are chosen as in Jasra et al.,
2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from initadvisor.decide.arrays import Floats

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

_UPHILL_STEPS = 12
_DIFFERENCE = 0.01
_LENGTHS = 0.5 ** np.arange(8.0)
_ARRIVED = 1e-4
_LEAST_PRECISION = 0.25
"""A standard normal prior alone has 1; the tails of what was seen may take some of it away."""

_FREEDOM = 6.0
_FROM_PRIOR = 0.15
"""Such a part comes from the prior, lest another place be missed that is as likely."""

_LOGISTIC_SD = 0.5513
"""A logistic distribution of this scale has a standard deviation of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmcResult:
    """Draws from a posterior, a row each, worth as much as ``effective`` independent ones."""

    draws: Floats
    effective: float


def posterior_of_normal(
    log_likelihood: LogDensity, dimensions: int, count: int, *, rng: np.random.Generator
) -> SmcResult:
    """Draw what was standard normal in all its dimensions, given a likelihood.

    The draws start around where the posterior is highest (Laplace's approximation, with Student's
    tails), which spares nearly all steps that would lead there from the prior.
    """

    def log_posterior(draws: Floats) -> Floats:
        return np.asarray(log_likelihood(draws) - (draws**2).sum(axis=1) / 2)

    place, precision = _summit(log_posterior, dimensions)
    root = np.linalg.cholesky(precision)
    normal = rng.standard_normal((count, dimensions))
    scale = np.sqrt(rng.chisquare(_FREEDOM, count) / _FREEDOM)[:, None]
    near = place + np.linalg.solve(root.T, (normal / scale).T).T
    start = np.where(rng.random(count)[:, None] < _FROM_PRIOR, normal, near)
    log_root = float(np.log(np.diag(root)).sum())
    log_gamma = lgamma((_FREEDOM + dimensions) / 2) - lgamma(_FREEDOM / 2)
    log_unit = log_gamma + dimensions / 2 * log(2 / _FREEDOM)

    def log_start(draws: Floats) -> Floats:
        """Return the density of the start, times a constant, those of both parts in proportion."""
        squares = (((draws - place) @ root) ** 2).sum(axis=1)
        student = log_unit + log_root - (_FREEDOM + dimensions) / 2 * np.log1p(squares / _FREEDOM)
        parts = np.stack([-(draws**2).sum(axis=1) / 2, student])
        shares = np.log([[_FROM_PRIOR], [1 - _FROM_PRIOR]])
        return log_sum(parts + shares)

    def log_gain(draws: Floats) -> Floats:
        return log_posterior(draws) - log_start(draws)

    return smc_sample(start, log_start, log_gain, rng=rng)


def _summit(log_density: LogDensity, dimensions: int) -> tuple[Floats, Floats]:
    """Return where a density is highest, uphill from 0, and its precision there (Newton's way)."""
    steps = _DIFFERENCE * np.eye(dimensions)
    first, second = np.triu_indices(dimensions, k=1)
    around = np.vstack([np.zeros((1, dimensions)), steps, -steps, steps[first] + steps[second]])
    place, precision = np.zeros(dimensions), np.eye(dimensions)
    for _ in range(_UPHILL_STEPS):
        logs = log_density(place + around)
        here, ahead, behind = logs[0], logs[1 : dimensions + 1], logs[dimensions + 1 :][:dimensions]
        gradient = (ahead - behind) / (2 * _DIFFERENCE)
        curvature = np.diag(ahead + behind - 2 * here)
        curvature[first, second] = logs[2 * dimensions + 1 :] - ahead[first] - ahead[second] + here
        curvature[second, first] = curvature[first, second]
        values, vectors = np.linalg.eigh(-curvature / _DIFFERENCE**2)
        values = np.maximum(values, _LEAST_PRECISION)
        precision = vectors * values @ vectors.T
        step = vectors @ (vectors.T @ gradient / values)
        tried = place + _LENGTHS[:, None] * step
        best = int(log_density(tried).argmax())
        place = tried[best]
        if np.abs(_LENGTHS[best] * step).max() < _ARRIVED:
            break
    return place, precision


def smc_sample(
    start: Floats,
    log_prior: LogDensity,
    log_likelihood: LogDensity,
    *,
    rng: np.random.Generator,
) -> SmcResult:
    """Turn draws from a prior (rows) into as many from the posterior.

    Both densities give a logarithm, up to a constant, for each row.
    ``effective`` counts those for less that come from the same draw and have not moved far since.
    """
    count = len(start)
    walk = _SmcSampler(start, log_prior, log_likelihood, rng)
    if walk.finish():
        return SmcResult(draws=walk.draws, effective=count / walk.inflation)
    walk = _SmcSampler(start[:_WALKERS], log_prior, log_likelihood, rng)
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
    return SmcResult(draws=walk.draws, effective=walkers / walk.inflation)


class _SmcSampler:
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
        self.take(self._drawn(weights))
        self.inflation /= worth
        self._spread_out()

    def finish(self) -> bool:
        """Go all the way in one step if that is no further than a step may go."""
        weights = _weights(self._likelihood, 1.0)
        worth = _worth(weights)
        if worth < _LEAST_WORTH:
            return False
        self.power, self.inflation = 1.0, 1 / worth
        self.take(self._drawn(weights))
        return True

    def _drawn(self, weights: Floats) -> NDArray[np.intp]:
        places = (np.arange(len(weights)) + self._rng.random()) / len(weights)
        reached = np.cumsum(weights) / weights.sum()
        return np.searchsorted(reached, places).clip(max=len(weights) - 1)

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
