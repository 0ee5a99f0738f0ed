"""What boots tell of the shadow (B1) and the rest (B2).

Where the init task waited both were seen, apart from each other. Where it did not, their sum was,
and that B1 is longer than the unpack. Where the messages do not tell, max(B1, U) + B2 was. What was
seen of one of them alone goes into a table of its density; what was seen of both together takes
draws that are led there (``smc``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.costs import draw_shadow
from initadvisor.decide.posterior.smc import log_logistic, smc_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.decide.arrays import Floats
    from initadvisor.decide.cost import Machine, Shadow
    from initadvisor.decide.posterior.boot_summary import Bounds, ShadowSummary
    from initadvisor.decide.posterior.groups import Location


_LEAST_LOG, _MOST_LOG = float(np.log(1e-2)), float(np.log(3.6e6))
_POINTS = 4096
_STEP = (_MOST_LOG - _LEAST_LOG) / (_POINTS - 1)
_PRIOR_DRAWS = 20_000
_SEED = 1
_BLUR = 0.3
"""Other people's machines are examples of what there is: this one's figures lie between theirs."""

_UNLIKE_ANY = 1e-3
"""How likely this machine is unlike any of them: then its figures may be anything."""

_NOT_THERE = -1e9

_DISTURBED = 0.03
"""One boot in so many takes its time for reasons of its own, and bounds nothing."""


class _Table:
    """The density of one logarithm, at even steps."""

    def __init__(self, logs: Floats) -> None:
        self._points = np.linspace(_LEAST_LOG, _MOST_LOG, _POINTS)
        self._logs = logs.copy()

    def see(self, place: Location | None) -> None:
        """Take account of a value that was seen."""
        if place is not None:
            self._logs += _log_student(self._points, place)

    def bound(self, bounds: Bounds) -> None:
        """Take account of what was longer or shorter; the values are those of B1."""
        off = (self._points[:, None] - bounds.log_ms) / bounds.log_sd
        self._logs += _forgiving(off) @ bounds.hidden + _forgiving(-off) @ bounds.waited

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw logarithms."""
        mass = np.cumsum(np.exp(self._logs - self._logs.max()))
        at = np.searchsorted(mass, rng.random(count) * mass[-1])
        return np.asarray(self._points[at] + (rng.random(count) - 0.5) * _STEP)

    def log_density(self, values: Floats) -> Floats:
        """Return the logarithm of the density at these logarithms, up to a constant."""
        return np.interp(values, self._points, self._logs, left=_NOT_THERE, right=_NOT_THERE)


def _forgiving(off: Floats) -> Floats:
    """Return the logarithm of the probability of a bound, which a disturbed boot shows anyhow."""
    return np.asarray(np.log(_DISTURBED + (1 - _DISTURBED) * np.exp(log_logistic(off))))


@lru_cache(maxsize=4)
def _priors(shadow: Shadow) -> tuple[Floats, Floats]:
    """Return the logarithms of the densities of B1 and of B2 before any boot of this machine."""
    drawn = draw_shadow(np.random.default_rng(_SEED), shadow, _PRIOR_DRAWS)
    frequency = np.fft.rfftfreq(2 * _POINTS)
    gain = np.exp(-2 * (np.pi * frequency * _BLUR / _STEP) ** 2)
    found = []
    for draws in drawn:
        inside = np.clip(np.log(np.maximum(draws, 1e-300)), _LEAST_LOG, _MOST_LOG)
        at = np.round((inside - _LEAST_LOG) / _STEP).astype(np.int64)
        share = np.bincount(at, minlength=_POINTS) / len(draws)
        blurred = np.fft.irfft(np.fft.rfft(share, 2 * _POINTS) * gain, 2 * _POINTS)[:_POINTS]
        found.append(np.log(np.maximum(blurred, 0.0) + _UNLIKE_ANY / _POINTS))
    return found[0], found[1]


def draw_shadow_given(
    rng: np.random.Generator, machine: Machine, seen: ShadowSummary, count: int
) -> tuple[Floats, Floats, float]:
    """Draw B1 and B2 in ms, given what was seen.

    A shadow that is given (or that a kernel has none of) stays so. The third value is how many
    independent draws they are worth.
    """
    shadows, rests = (_Table(logs) for logs in _priors(machine.shadow))
    shadows.see(seen.shadow)
    for bounds in seen.bounds:
        shadows.bound(bounds)
    rests.see(seen.rest)
    fixed_ms = machine.shadow.fixed_ms
    sums = _sums(seen)
    rest = rests.draw(rng, count)
    if fixed_ms is not None:
        start = rest[:, None]
    else:
        start = np.column_stack([shadows.draw(rng, count), rest])

    def shadow_ms(draws: Floats) -> Floats:
        if fixed_ms is not None:
            return np.full(len(draws), fixed_ms)
        return np.exp(draws[:, 0])

    def log_prior(draws: Floats) -> Floats:
        density = rests.log_density(draws[:, -1])
        return density if fixed_ms is not None else density + shadows.log_density(draws[:, 0])

    def log_likelihood(draws: Floats) -> Floats:
        return _of_sums(sums, shadow_ms(draws), np.exp(draws[:, -1]))

    if not sums:
        return shadow_ms(start), np.exp(rest), float(count)
    found = smc_sample(start, log_prior, log_likelihood, rng=rng)
    return shadow_ms(found.draws), np.exp(found.draws[:, -1]), found.effective


def _sums(seen: ShadowSummary) -> list[tuple[float, Location]]:
    """Return where max(B1, U) + B2 was seen, with U in ms (0 where B1 was longer)."""
    hidden = [] if seen.hidden is None else [(0.0, seen.hidden)]
    return hidden + [(found.unpack_ms, found.whole) for found in seen.together]


def _of_sums(sums: Sequence[tuple[float, Location]], shadow: Floats, rest: Floats) -> Floats:
    return np.asarray(
        sum(
            _log_student(np.log(np.maximum(shadow, unpack_ms) + rest), place)
            for unpack_ms, place in sums
        )
    )


def _log_student(values: Floats, place: Location) -> Floats:
    off = ((values - place.middle) / place.sd) ** 2
    return np.asarray(-(place.freedom + 1) / 2 * np.log1p(off / place.freedom))
