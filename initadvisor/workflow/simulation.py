"""How long a campaign takes on machines like some, and how often it ends right: many, made up."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Protocol

import numpy as np

from initadvisor.model.estimate import Evidence
from initadvisor.model.simulation import BREAKING, MachineRun, Scenario, Simulation, Strain
from initadvisor.model.whatif import Span
from initadvisor.stats.decision import Thresholds
from initadvisor.stats.next_boot import Limits
from initadvisor.stats.simulated_machine import DISTURBED_LOGS, draw_conditions
from initadvisor.stats.simulation import FIXED_BOOTS, Rules
from initadvisor.stats.simulation_figures import figures, setting_uses
from initadvisor.workflow.configuration import load_config
from initadvisor.workflow.processes import spread
from initadvisor.workflow.simulate import UNPACK_LOG_SD, prior_machine, simulate_one

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.model.config import Config
    from initadvisor.model.cost import Machine
    from initadvisor.model.whatif import Given
    from initadvisor.workflow.simulate import Ground
    from initadvisor.workflow.simulate_ground import Likeness

MIXES: dict[str, tuple[Strain, ...]] = {
    "half": tuple(strain for breaking in BREAKING for strain in (Strain.NONE, breaking)),
    **{str(strain): (strain,) for strain in Strain},
    "all": BREAKING,
}
"""Which machines break the model, in turns, by the name that the user gives."""

STRAINS = {
    Strain.NONE: "as the cost model says",
    Strain.CURVED: "reading takes a power of the size, 0.85 or 1.15",
    Strain.DRIFT: "every boot takes 1 % of the first longer, or shorter, than the one before",
    Strain.CONTENTION: "unpacking is slowed by 30 % while the kernel has other work",
    Strain.CORRELATED: "slow boots follow slow boots, 0.8 of what differs stays",
    Strain.OUTLIERS: "three times as many boots are disturbed",
}
"""What each way to break the model is, in words."""

READ_MB_S = Span(low=16.0, high=1500.0)
SHADOW_MS = Span(low=5.0, high=800.0)
"""What machines draw from where nothing else is known: loaders that read SD cards to NVMe disks,
and what logs of real boots show of B1.
"""

_CONDITIONS = 1
_Z95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user asks; fields as the options of ``initadvisor simulate``.

    ``mix``: a key of ``MIXES``. ``certainty`` and the tolerance: what the configuration says where
    they are None. ``processes``: how many compute.
    """

    machines: int
    read_mb_s: Given | None
    shadow_ms: Given | None
    noise: float
    outliers: float
    evidence: Evidence
    mix: str
    most_boots: int
    certainty: float | None
    tolerance_ms: float | None
    tolerance_fraction: float | None
    seed: int
    processes: int


class Observer(Protocol):
    """Told how the work goes."""

    def simulated(self, done: int, of: int) -> None:
        """Take note of how many machines are done."""
        ...


def simulate(
    host: Host, question: Question, likeness: Likeness, *, observer: Observer
) -> Simulation:
    """Run campaigns on machines that are drawn, and put what came of them into figures.

    The same question has the same answer, on however many processors. Raises ``UsageError`` for a
    configuration that cannot be meant.
    """
    config = load_config(host)
    scenario = _scenario(question, likeness)
    rules = _rules(question, config)
    prior = prior_machine()
    jobs = [
        _Job(
            ground=likeness.ground,
            scenario=scenario,
            rules=rules,
            prior=prior,
            seed=question.seed,
            number=number,
        )
        for number in range(question.machines)
    ]
    runs: list[MachineRun] = []
    observer.simulated(0, len(jobs))
    for run in spread(_run, jobs, processes=question.processes):
        runs.append(run)
        observer.simulated(len(runs), len(jobs))
    runs.sort(key=lambda run: run.seed)
    return _answer(question, likeness, scenario, rules, prior, tuple(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One machine to draw and to run campaigns on."""

    ground: Ground
    scenario: Scenario
    rules: Rules
    prior: Machine
    seed: int
    number: int


def _run(job: _Job) -> MachineRun:
    """Do a job; what else a machine is like does not depend on what its conditions are drawn of."""
    rng = np.random.default_rng([job.seed, job.number, _CONDITIONS])
    conditions = draw_conditions(rng, job.scenario, job.number)
    seed = (job.seed, job.number)
    return simulate_one(job.ground, conditions, job.rules, prior=job.prior, seed=seed)


def _scenario(question: Question, likeness: Likeness) -> Scenario:
    return Scenario(
        read_mb_s=question.read_mb_s or likeness.read_mb_s or READ_MB_S,
        shadow_ms=SHADOW_MS if question.shadow_ms is None else question.shadow_ms,
        noise_log_sd=question.noise,
        outliers=question.outliers,
        strains=MIXES[question.mix],
        unpack_log_sd=UNPACK_LOG_SD[question.evidence],
        lab=question.evidence is Evidence.LAB,
    )


def _rules(question: Question, config: Config) -> Rules:
    def chosen(asked: float | None, configured: float) -> float:
        return configured if asked is None else asked

    return Rules(
        thresholds=Thresholds(
            tolerance_ms=chosen(question.tolerance_ms, config.tolerance_ms),
            tolerance_fraction=chosen(question.tolerance_fraction, config.tolerance_fraction),
            certainty=chosen(question.certainty, config.certainty),
        ),
        limits=Limits(excess_ms=config.max_excess_s * 1000),
        most_boots=question.most_boots,
    )


def _answer(
    question: Question,
    likeness: Likeness,
    scenario: Scenario,
    rules: Rules,
    prior: Machine,
    runs: tuple[MachineRun, ...],
) -> Simulation:
    thresholds = rules.thresholds
    certainty = thresholds.certainty
    by_strain = {
        strain: [run for run in runs if run.conditions.strain is strain]
        for strain in dict.fromkeys(scenario.strains)
    }
    return Simulation(
        seed=question.seed,
        tables=tuple(table.name for table in likeness.ground.tables),
        scenario=scenario,
        certainty=certainty,
        tolerance_ms=thresholds.tolerance_ms,
        tolerance_fraction=thresholds.tolerance_fraction,
        most_boots=rules.most_boots,
        runs=runs,
        figures=figures(runs, certainty=certainty),
        by_strain=tuple(
            (strain, figures(own, certainty=certainty))
            for strain, own in by_strain.items()
            if own and len(by_strain) > 1
        ),
        settings=setting_uses(runs),
        assumptions=(*likeness.said, *_said(scenario, likeness, prior, rules.limits)),
    )


def _said(
    scenario: Scenario, likeness: Likeness, prior: Machine, limits: Limits
) -> tuple[str, ...]:
    """Say in words what was made up beside sizes and times."""
    own = scenario.read_mb_s == likeness.read_mb_s
    speeds = _drawn(scenario.read_mb_s, "MB/s")
    today, (low, high) = likeness.ground.today, DISTURBED_LOGS
    return (
        f"today's setting: {today or 'drawn from zstd, gzip, xz and lz4 at any level'}",
        f"the loader's speed is {speeds}" + (", what is known of this machine's" if own else ""),
        f"the shadow (B1) is {_drawn(scenario.shadow_ms, 'ms')}",
        f"boots of one image are {_percent(scenario.noise_log_sd)} apart in each of their parts, "
        f"and {_percent(scenario.outliers)} of them are disturbed: one part takes "
        f"{exp(low):.1f} to {exp(high):.1f} times as long",
        _beforehand(scenario, prior),
        *_broken(scenario),
        "a campaign is settled when it is certain that nothing is better by more than the "
        "tolerance, today's image has booted, and what is chosen has, too",
        "no image is booted to learn that is larger and slower to unpack than another, or that is "
        f"expected to cost {limits.excess_ms / 1000:g} s more than today's",
        f"the classic comparison boots every setting {FIXED_BOOTS} times and takes the least mean",
        "only the time of a boot counts, not that of a build, whatever the objective is",
    )


def _beforehand(scenario: Scenario, prior: Machine) -> str:
    """Say what a campaign knows before its first boot."""
    speed = exp(_Z95 * prior.read_s_per_mb.log_sd)
    times = f"times to unpack to {_percent(scenario.unpack_log_sd)}"
    if scenario.lab:
        times += f" each and {_percent(prior.lab.log_sd)} all together, as from a lab"
    else:
        times += ", as from a bench"
    return (
        f"known beforehand are sizes exactly, {times} (one standard deviation), and the loader's "
        f"speed within a factor of {speed:.0f}; of the shadow only what other machines' are"
    )


def _broken(scenario: Scenario) -> tuple[str, ...]:
    """Say which machines break the model, and how."""
    breaking = [strain for strain in dict.fromkeys(scenario.strains) if strain is not Strain.NONE]
    if not breaking:
        return ("every machine is as the cost model says, which no real one is",)
    part = sum(strain is not Strain.NONE for strain in scenario.strains) / len(scenario.strains)
    whole = "every machine breaks" if part == 1 else f"{_percent(part)} of the machines break"
    ways = "; ".join(f"{strain}: {STRAINS[strain]}" for strain in breaking)
    return (f"{whole} the cost model on purpose, by turns in these ways: {ways}",)


def _drawn(given: Given, unit: str) -> str:
    if isinstance(given, Span):
        ends = f"{_rounded(given.low)} to {_rounded(given.high)} {unit}"
        return f"drawn from {ends}, all orders of magnitude alike"
    return f"{_rounded(given)} {unit}"


def _percent(part: float) -> str:
    return f"{part * 100:.3g} %"


def _rounded(value: float) -> str:
    """Return a number with three significant digits, in full."""
    return f"{float(f'{value:.3g}'):.10g}"
