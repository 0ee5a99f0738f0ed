"""Figures of simulated campaigns, each with its 95 % interval.

Machines are drawn at random, so other machines would give other figures. Shares have Wilson's
interval, numbers of boots one of order statistics (both hold for few machines, too). Means have
that of the normal distribution, and none where there are few machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isinf, lgamma, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.cost import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.synthetic import CampaignRun
    from initadvisor.core.settings import Setting

_OUTSIDE = 0.025
_Z95 = NormalDist().inv_cdf(1 - _OUTSIDE)
_LEAST_FOR_MEAN = 20
"""The mean of fewer values is far from normal where most are 0 and a few large."""

_LEVELS = (0.0, 0.4, 0.8)
"""The edges between groups of stated probabilities, from the certainty asked for to 1: with 0.95
that is 0.95, 0.97 and 0.99.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of a number of machines; ``low`` and ``high`` are its interval."""

    count: int
    of: int
    part: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BootCount:
    """The boots after which some part of all campaigns is settled, and its interval.

    None: not within the boots that a campaign may take.
    """

    boots: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over machines and its interval, None where they are few or do not differ."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """Settled decisions with about the same stated probability, and the share that was right."""

    stated: float
    right: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of the campaigns on some machines.

    ``settled``, ``right``: parts of all; what is not settled is not right. ``regret_ms``: what a
    boot costs more than with the best setting; ``beyond_ms``: the part of it that is beyond the
    tolerance.
    """

    machines: int
    boots_median: BootCount
    boots_90: BootCount
    settled: Share
    right: Share
    regret_ms: Mean
    beyond_ms: Mean
    calibration: tuple[CalibrationBin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingUse:
    """One setting, over all machines.

    ``best``: it truly costs least. ``chosen``: a campaign ended with it, settled or not.
    ``booted``: it was booted at all; ``boots``: how often, on average.
    """

    setting: Setting
    best: Share
    chosen: Share
    booted: Share
    boots: Mean


def figures(runs: Sequence[CampaignRun], *, certainty: float) -> Figures:
    """Return the figures of at least one campaign."""
    settled = [run for run in runs if _is_settled(run)]
    boots = [run.boots if _is_settled(run) else inf for run in runs]
    return Figures(
        machines=len(runs),
        boots_median=boot_count(boots, 0.5),
        boots_90=boot_count(boots, 0.9),
        settled=share(len(settled), len(runs)),
        right=share(sum(run.right for run in settled), len(runs)),
        regret_ms=mean([run.regret_ms for run in runs]),
        beyond_ms=mean([max(0.0, run.regret_ms - run.tolerance_ms) for run in runs]),
        calibration=_calibration(settled, certainty),
    )


def setting_uses(runs: Sequence[CampaignRun]) -> tuple[SettingUse, ...]:
    """Return the use of every setting that was booted, chosen or the best, best first."""
    named: dict[Setting, None] = {}
    for run in runs:
        named |= dict.fromkeys((run.best, run.setting, *run.booted))
    uses = [_use(setting, runs) for setting in named]
    return tuple(
        sorted(uses, key=lambda use: (-use.best.count, -use.chosen.count, -use.boots.mean))
    )


def _use(setting: Setting, runs: Sequence[CampaignRun]) -> SettingUse:
    def counted(holds: Callable[[CampaignRun], bool]) -> Share:
        return share(sum(map(holds, runs)), len(runs))

    return SettingUse(
        setting=setting,
        best=counted(lambda run: run.best == setting),
        chosen=counted(lambda run: run.setting == setting),
        booted=counted(lambda run: setting in run.booted),
        boots=mean([run.booted.count(setting) for run in runs]),
    )


def share(count: int, of: int) -> Share:
    """Return a part of a number of machines (at least one) with Wilson's interval."""
    part, square = count / of, _Z95**2 / of
    middle = (part + square / 2) / (1 + square)
    reach = _Z95 * sqrt(part * (1 - part) / of + square / of / 4) / (1 + square)
    return Share(
        count=count,
        of=of,
        part=part,
        low=max(0.0, middle - reach) if count else 0.0,
        high=min(1.0, middle + reach) if count < of else 1.0,
    )


def boot_count(boots: Sequence[float], part: float) -> BootCount:
    """Return the boots after which a part of the campaigns is settled; infinity for those never.

    How many of the campaigns are below that quantile of all is binomial, whatever the distribution
    is; so the values at the bounds of that number are the bounds of the quantile.
    """
    ordered = sorted(boots)
    count = len(ordered)
    reached = np.cumsum(_binomial(count, part))
    below = int(np.searchsorted(reached, _OUTSIDE, side="right"))
    above = int(np.searchsorted(reached, 1 - _OUTSIDE)) + 1
    low = ordered[below - 1] if below else 0.0
    high = ordered[above - 1] if above <= count else inf
    return BootCount(
        boots=_whole(ordered[ceil(part * count) - 1]),
        low=_whole(low),
        high=_whole(high),
    )


def _binomial(count: int, part: float) -> list[float]:
    """Return the probabilities of 0 to ``count`` hits."""
    logs = [
        lgamma(count + 1)
        - lgamma(hits + 1)
        - lgamma(count - hits + 1)
        + hits * log(part)
        + (count - hits) * log(1 - part)
        for hits in range(count + 1)
    ]
    return [float(np.exp(value)) for value in logs]


def _whole(value: float) -> int | None:
    return None if isinf(value) else round(value)


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of values (at least one), none of which is negative."""
    middle = float(np.mean(values))
    if len(values) < _LEAST_FOR_MEAN or len(set(values)) == 1:
        return Mean(mean=middle, low=None, high=None)
    reach = _Z95 * float(np.std(values, ddof=1)) / sqrt(len(values))
    return Mean(mean=middle, low=max(0.0, middle - reach), high=middle + reach)


def _is_settled(run: CampaignRun) -> bool:
    return run.outcome is not Outcome.UNDECIDED


def _calibration(settled: Sequence[CampaignRun], certainty: float) -> tuple[CalibrationBin, ...]:
    """Compare stated probabilities with how often decisions were right."""
    edges = [certainty + level * (1 - certainty) for level in _LEVELS]
    found = []
    for low, high in zip(edges, (*edges[1:], inf), strict=True):
        inside = [run for run in settled if low <= run.stated < high]
        if inside:
            found.append(
                CalibrationBin(
                    stated=float(np.mean([run.stated for run in inside])),
                    right=share(sum(run.right for run in inside), len(inside)),
                )
            )
    return tuple(found)
