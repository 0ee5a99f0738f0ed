"""Campaigns on made-up machines, run through the same code as those on real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.cost import Outcome
from initadvisor.model.simulation import CampaignRun, FixedRun, Simulated, Stated
from initadvisor.stats.costs import priced
from initadvisor.stats.decision import decide
from initadvisor.stats.given import draw_posterior
from initadvisor.stats.next_boot import next_boots
from initadvisor.stats.simulated_machine import Booter, true_costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.model.boot_evidence import BootEvidence
    from initadvisor.model.cost import CandidateFacts, Machine
    from initadvisor.model.simulation import TrueMachine
    from initadvisor.stats.decision import Thresholds
    from initadvisor.stats.next_boot import Limits

    Floats = NDArray[np.float64]

_DRAWS = 2000
"""Enough for a probability of 0.95 to be right within 0.01 (two standard errors)."""

FIXED_BOOTS = 20
"""Of every setting, in the classic comparison."""

_STATED = (0.95, 0.97, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """By which rules a campaign is run, and after how many boots it is given up."""

    thresholds: Thresholds
    limits: Limits
    most_boots: int = 40


def run_campaign(
    truth: TrueMachine,
    machine: Machine,
    candidates: Sequence[CandidateFacts],
    *,
    rules: Rules,
    seed: int,
) -> CampaignRun:
    """Boot what teaches most until all is decided.

    ``machine`` and ``candidates`` are what is known beforehand, in the order of ``truth``.
    """
    booter = Booter(truth, np.random.default_rng([seed, 1]))
    boots: list[BootEvidence] = []
    order: list[int] = []
    while True:
        posterior = draw_posterior(machine, candidates, boots, seed=len(boots), count=_DRAWS)
        decision = decide(
            priced(posterior.parts, machine, candidates),
            candidates,
            baseline=0,
            thresholds=rules.thresholds,
            source="simulation",
        )
        plan = next_boots(
            posterior,
            machine,
            candidates,
            decision=decision,
            own_boots=[order.count(column) for column in range(len(candidates))],
            baseline=0,
            thresholds=rules.thresholds,
            limits=rules.limits,
            most_boots=1,
        )
        if plan is None or len(order) == rules.most_boots:
            break
        order.append(plan.first)
        boots.append(booter.boot(plan.first))
    costs = true_costs(truth)
    chosen = truth.settings.index(decision.setting)
    regret, tolerance = float(costs[chosen] - costs.min()), tolerance_ms(costs, rules.thresholds)
    return CampaignRun(
        boots=len(order),
        outcome=decision.outcome if plan is None else Outcome.UNDECIDED,
        setting=decision.setting,
        stated=min(decision.probability, decision.best_probability),
        regret_ms=regret,
        tolerance_ms=tolerance,
        right=bool(regret <= tolerance and (chosen == 0 or costs[chosen] < costs[0])),
        order=tuple(order),
        booted=tuple(truth.settings[column] for column in order),
        best=truth.settings[int(costs.argmin())],
    )


def tolerance_ms(costs: Floats, thresholds: Thresholds) -> float:
    """Return which difference does not matter where today's candidate is the first."""
    return max(thresholds.tolerance_ms, thresholds.tolerance_fraction * float(costs[0]))


def run_fixed(truth: TrueMachine, *, rules: Rules, seed: int) -> FixedRun:
    """Boot every setting 20 times and take the one with the least mean of read and time to /init.

    That is how the comparisons were made that this tool is to replace.
    """
    booter = Booter(truth, np.random.default_rng([seed, 2]))
    means = []
    for column in range(len(truth.settings)):
        boots = [booter.boot(column) for _ in range(FIXED_BOOTS)]
        means.append(np.mean([(b.read_us or 0) + (b.begin_to_init_us or 0) for b in boots]))
    costs = true_costs(truth)
    chosen = int(np.argmin(means))
    regret = float(costs[chosen] - costs.min())
    return FixedRun(
        boots=FIXED_BOOTS * len(means),
        setting=truth.settings[chosen],
        regret_ms=regret,
        right=regret <= tolerance_ms(costs, rules.thresholds),
    )


def summarised(runs: Sequence[CampaignRun], fixed: Sequence[FixedRun]) -> Simulated:
    """Put runs (at least one, of as many machines of the classic comparison) into figures."""
    decided = [run for run in runs if run.outcome is not Outcome.UNDECIDED]
    return Simulated(
        machines=len(runs),
        decided=len(decided) / len(runs),
        boots_median=_after(runs, 0.5),
        boots_90=_after(runs, 0.9),
        right=sum(run.right for run in decided) / len(runs),
        beyond_ms=_beyond([run.regret_ms for run in runs], runs),
        calibration=_calibration(decided),
        fixed_boots=round(float(np.median([run.boots for run in fixed]))),
        fixed_right=float(np.mean([run.right for run in fixed])),
        fixed_beyond_ms=_beyond([run.regret_ms for run in fixed], runs),
    )


def _after(runs: Sequence[CampaignRun], part: float) -> int | None:
    """Return after how many boots such a part of the runs was decided."""
    boots = sorted(run.boots for run in runs if run.outcome is not Outcome.UNDECIDED)
    needed = int(np.ceil(part * len(runs)))
    return boots[needed - 1] if len(boots) >= needed else None


def _beyond(regrets_ms: Sequence[float], runs: Sequence[CampaignRun]) -> float:
    beyond = [max(0.0, r - run.tolerance_ms) for r, run in zip(regrets_ms, runs, strict=True)]
    return float(np.mean(beyond))


def _calibration(decided: Sequence[CampaignRun]) -> tuple[Stated, ...]:
    """Hold what was stated against how often it was right."""
    found = []
    for low, high in zip(_STATED, (*_STATED[1:], 2.0), strict=True):
        inside = [run for run in decided if low <= run.stated < high]
        if inside:
            found.append(
                Stated(
                    stated=float(np.mean([run.stated for run in inside])),
                    right=float(np.mean([run.right for run in inside])),
                    count=len(inside),
                )
            )
    return tuple(found)
