"""What came of simulated campaigns, in figures, each with how far chance may have moved it.

Machines are drawn at random, so that every figure would be another one with other machines. Shares
have Wilson's interval, numbers of boots one of order statistics (both hold for few machines, too),
means that of the normal distribution, but none where there are few machines.
"""

from __future__ import annotations

from math import ceil, inf, isinf, lgamma, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.cost import Outcome
from initadvisor.model.simulation import (
    Believed,
    BootCount,
    Figures,
    FixedFigures,
    Mean,
    SettingUse,
    Share,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.model.setting import Setting
    from initadvisor.model.simulation import CampaignRun, MachineRun

_OUTSIDE = 0.025
_Z95 = NormalDist().inv_cdf(1 - _OUTSIDE)
_LEAST_FOR_MEAN = 20
"""Of fewer values the mean is far from normal where most are 0 and a few large."""

_LEVELS = (0.0, 0.4, 0.8)
"""Where decisions are parted by what was said of them, on the way from the certainty asked for to
1: with 0.95 that is 0.95, 0.97 and 0.99.
"""


def figures(runs: Sequence[MachineRun], *, certainty: float) -> Figures:
    """Put runs (at least one) into figures."""
    campaigns = [run.campaign for run in runs]
    settled = [run for run in campaigns if _is_settled(run)]
    boots = [run.boots if _is_settled(run) else inf for run in campaigns]
    return Figures(
        machines=len(runs),
        boots_median=boot_count(boots, 0.5),
        boots_90=boot_count(boots, 0.9),
        settled=share(len(settled), len(runs)),
        right=share(sum(run.right for run in settled), len(runs)),
        regret_ms=mean([run.regret_ms for run in campaigns]),
        beyond_ms=mean([max(0.0, run.regret_ms - run.tolerance_ms) for run in campaigns]),
        calibration=_calibration(settled, certainty),
        fixed=FixedFigures(
            boots=round(float(np.median([run.fixed.boots for run in runs]))),
            right=share(sum(run.fixed.right for run in runs), len(runs)),
            regret_ms=mean([run.fixed.regret_ms for run in runs]),
            beyond_ms=mean(
                [max(0.0, run.fixed.regret_ms - run.campaign.tolerance_ms) for run in runs]
            ),
        ),
    )


def setting_uses(runs: Sequence[MachineRun]) -> tuple[SettingUse, ...]:
    """Say of every setting that was booted, chosen or the best what became of it, best first."""
    named: dict[Setting, None] = {}
    for run in runs:
        campaign = run.campaign
        named |= dict.fromkeys(
            (campaign.best, campaign.setting, run.fixed.setting, *campaign.booted)
        )
    uses = [_use(setting, runs) for setting in named]
    return tuple(
        sorted(uses, key=lambda use: (-use.best.count, -use.chosen.count, -use.boots.mean))
    )


def _use(setting: Setting, runs: Sequence[MachineRun]) -> SettingUse:
    def counted(holds: Callable[[MachineRun], bool]) -> Share:
        return share(sum(map(holds, runs)), len(runs))

    return SettingUse(
        setting=setting,
        best=counted(lambda run: run.campaign.best == setting),
        chosen=counted(lambda run: run.campaign.setting == setting),
        booted=counted(lambda run: setting in run.campaign.booted),
        boots=mean([run.campaign.booted.count(setting) for run in runs]),
        fixed_chosen=counted(lambda run: run.fixed.setting == setting),
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
    """Return after how many boots a part of the campaigns is settled; infinity for those never.

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


def _calibration(settled: Sequence[CampaignRun], certainty: float) -> tuple[Believed, ...]:
    """Hold what was stated against how often it was right."""
    edges = [certainty + level * (1 - certainty) for level in _LEVELS]
    found = []
    for low, high in zip(edges, (*edges[1:], inf), strict=True):
        inside = [run for run in settled if low <= run.stated < high]
        if inside:
            found.append(
                Believed(
                    stated=float(np.mean([run.stated for run in inside])),
                    right=share(sum(run.right for run in inside), len(inside)),
                )
            )
    return tuple(found)
