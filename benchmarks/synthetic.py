"""Synthetic machines, whose best setting is known, and campaigns on them.

A machine is drawn at random from a measured table. A campaign runs the package's own decision code
on it: it sees only what a lab or a bench would say, and what each boot shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import sqrt
from multiprocessing import get_context
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from initadvisor.advise.machine import LAB, LOADER_FIXED, LOADER_LOG_SD, LOADER_LOG_SD_FASTER
from initadvisor.advise.truth_tables import truth_table, truth_table_names
from initadvisor.core.codecs import Codec
from initadvisor.data.tables import observed_boots, shipped_calibration
from initadvisor.decide.boot_evidence import BootEvidence, Relation
from initadvisor.decide.cost import CandidateFacts, Machine, Outcome, Quantity, Shadow
from initadvisor.decide.costs import priced, quantity_at
from initadvisor.decide.decision import decide, savings
from initadvisor.decide.next_boot import next_boots
from initadvisor.decide.posterior.posterior import sample_posterior
from initadvisor.decide.whatif_values import Span
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside, IntervalSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from initadvisor.advise.truth_tables import TruthTable
    from initadvisor.core.settings import Setting
    from initadvisor.decide.cost import Decision
    from initadvisor.decide.costs import Draws
    from initadvisor.decide.decision import Thresholds
    from initadvisor.decide.next_boot import BootLimits
    from initadvisor.decide.whatif_values import GivenValue

    Floats = NDArray[np.float64]

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")

BENCH_LOG_SD, LAB_LOG_SD = 0.30, 0.05
"""The error of a time to unpack that is known beforehand. All of a lab's share ``Machine.lab``."""

CONTENT_LOG_SD = 0.25
PROCESSOR_LOG_SD = 0.5
OWN_SIZE_LOG_SD = 0.02
OWN_TIME_LOG_SD = 0.1
"""How machines differ from their table: the content of the image, the speed of the processor, and
the effect of both on single settings.
"""

DISTURBED_LOGS = (0.5, 2.0)
"""One part of a disturbed boot takes longer by a logarithm in this range."""

_SHIPPED = frozenset({Codec.ZSTD, Codec.GZIP, Codec.XZ, Codec.LZ4})
"""What distributions configure. Today's setting is one of these."""

_OUR_OWN = "measured for this package"

_REST_MEDIAN_MS = 162.0
_REST_LOG_SD = 0.6
"""B2 of 30 boots of real machines."""

_KERNEL_MB = 12.0
_CURVED = (0.85, 1.15)
_DRIFT = 0.01
_CONTENTION = 0.3
_CORRELATION = 0.8
_MORE_OUTLIERS = 3
_SEEN_SHADOW_LOG_SD = 0.3

_DRAWS = 2000
"""Enough for a probability of 0.95 to be right within 0.01 (two standard errors)."""


class ModelViolation(StrEnum):
    """How a machine differs from the cost model.

    ``curved``: reading takes a power of the size (0.85 or 1.15). ``drift``: with every boot, the
    cost of all candidates grows or shrinks by 1 % of a boot. ``contention``: unpacking is 30 %
    slower while the kernel has other work. ``correlated``: a slow boot is followed by slow boots
    (0.8 of it stays). ``outliers``: three times as many boots are disturbed.
    """

    NONE = "none"
    CURVED = "curved"
    DRIFT = "drift"
    CONTENTION = "contention"
    CORRELATED = "correlated"
    OUTLIERS = "outliers"


BREAKING = tuple(one for one in ModelViolation if one is not ModelViolation.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineConditions:
    """The conditions of one machine.

    ``read_mb_s``: the loader's speed, in 10^6 bytes per second. ``shadow_ms``: B1.
    ``noise_log_sd``: how far single boots are apart, in every part. ``outliers``: the share of
    disturbed boots. ``unpack_log_sd``: the error of each candidate's time to unpack as known
    beforehand; ``lab``: whether a virtual machine measured it.
    """

    read_mb_s: float
    shadow_ms: float
    noise_log_sd: float
    outliers: float = 0.05
    violation: ModelViolation = ModelViolation.NONE
    unpack_log_sd: float
    lab: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The ranges that machines draw their conditions from; fields as in ``MachineConditions``.

    Values of a range are log-uniform (the shadow's above 1 ms). ``violations`` are taken in turns.
    """

    read_mb_s: GivenValue
    shadow_ms: GivenValue
    noise_log_sd: float
    outliers: float
    violations: tuple[ModelViolation, ...]
    unpack_log_sd: float
    lab: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueMachine:
    """A machine as it is: figures as in ``decide.cost``, a value for each candidate in tuples.

    Today's setting is the first. Times in ms, sizes in 10^6 bytes.
    """

    settings: tuple[Setting, ...]
    size_mb: tuple[float, ...]
    decompress_ms: tuple[float, ...]
    populate_ms: float
    read_s_per_mb: float
    fixed_ms: float
    kernel_mb: float
    shadow_ms: float
    rest_ms: float
    noise_log_sd: float
    outliers: float
    violation: ModelViolation
    read_power: float = 1.0
    drift_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSet:
    """The tables that machines are drawn from, one for each machine.

    ``today``: today's setting, drawn where it is None.
    """

    tables: tuple[TruthTable, ...]
    today: Setting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a campaign, which is given up after ``most_boots``.

    ``looks``: after how many boots to look; a campaign that ends before is looked at no more.
    """

    thresholds: Thresholds
    limits: BootLimits
    most_boots: int = 40
    looks: tuple[int, ...] = (0, 1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The answer after so many boots, and what is true of it.

    ``saving_ms``: what its setting truly saves. ``held``: of how many savings (``of``) the 95 %
    interval holds the truth.
    """

    boots: int
    outcome: Outcome
    saving_ms: float
    regret_ms: float
    tolerance_ms: float
    held: int
    of: int

    @property
    def harmful(self) -> bool:
        """Whether it is a switch that loses more than the tolerance."""
        return self.outcome is Outcome.SWITCH and self.saving_ms < -self.tolerance_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRun:
    """The end of a campaign on one machine.

    ``outcome``: undecided where the boots were used up. ``stated``: the stated probability of being
    right. ``regret_ms``: what a boot costs more than with the best setting; ``right``: that is
    within the tolerance, and a switch does not lose time. ``order``: the booted candidates by
    column; ``booted``: the same as settings. ``best``: the setting that truly costs least.
    ``looks``: after as many boots as the rules say, or at the end.
    """

    boots: int
    outcome: Outcome
    setting: Setting
    stated: float
    regret_ms: float
    tolerance_ms: float
    right: bool
    order: tuple[int, ...]
    booted: tuple[Setting, ...]
    best: Setting
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRun:
    """One synthetic machine, and the campaign on it."""

    seed: tuple[int, ...]
    table: str
    conditions: MachineConditions
    today: Setting
    campaign: CampaignRun


def measured_tables() -> tuple[TruthTable, ...]:
    """Return the built-in tables of this package's own measurements."""
    tables = (truth_table(name) for name in truth_table_names())
    return tuple(table for table in tables if table.source.startswith(_OUR_OWN))


def prior_machine() -> Machine:
    """Return what is known of a machine before anything of it was measured.

    Medians are of one MB each. Errors are those of a machine that was looked at.
    """
    table = shipped_calibration()
    source = "nothing measured"
    return Machine(
        read_s_per_mb=Quantity(
            median=0.01, log_sd=LOADER_LOG_SD, log_sd_below=LOADER_LOG_SD_FASTER, source=source
        ),
        fixed_ms=LOADER_FIXED,
        kernel_mb=0.0,
        populate_ms=table.populate_ms_per_mb,
        cpu=Quantity(median=1.0, log_sd=table.machine_log_sd, source=table.source),
        lab=LAB,
        shadow=Shadow(boots=observed_boots(), source="boots of other machines"),
    )


def draw_conditions(rng: np.random.Generator, scenario: Scenario, number: int) -> MachineConditions:
    """Draw the conditions of the machine with a number."""
    return MachineConditions(
        read_mb_s=_drawn(rng, scenario.read_mb_s, above=0.0),
        shadow_ms=_drawn(rng, scenario.shadow_ms, above=1.0),
        noise_log_sd=scenario.noise_log_sd,
        outliers=scenario.outliers,
        violation=scenario.violations[number % len(scenario.violations)],
        unpack_log_sd=scenario.unpack_log_sd,
        lab=scenario.lab,
    )


def _drawn(rng: np.random.Generator, given: GivenValue, *, above: float) -> float:
    """Return a single value as it is, and of a range a log-uniform draw.

    ``above`` is added before the logarithm is taken: a range may begin at 0.
    """
    if not isinstance(given, Span):
        return given
    logs = rng.uniform(np.log(given.low + above), np.log(given.high + above))
    return float(np.clip(np.exp(logs) - above, given.low, given.high))


def draw_machine(
    rng: np.random.Generator,
    table: TruthTable,
    conditions: MachineConditions,
    prior: Machine,
    *,
    today: Setting | None = None,
    like_table: bool = False,
) -> TrueMachine:
    """Draw a machine like those of a table: other content, another processor, its own L and B2.

    ``today``: today's setting, drawn where it is None. ``like_table``: sizes and times are exactly
    the table's. Raises ``ValueError`` for a setting the table lacks.
    """
    first = _today(rng, table, today)
    rows = [table.rows[first], *(row for number, row in enumerate(table.rows) if number != first)]
    vary = 0.0 if like_table else 1.0
    scale = float(np.exp(vary * rng.normal(0, CONTENT_LOG_SD)))
    slower = scale * float(np.exp(vary * rng.normal(0, PROCESSOR_LOG_SD)))
    sizes = np.exp(vary * rng.normal(0, OWN_SIZE_LOG_SD, len(rows)))
    times = np.exp(vary * rng.normal(0, OWN_TIME_LOG_SD, len(rows)))
    decompress = np.array([row.unpack_ms - table.populate_ms for row in rows])
    violation = conditions.violation
    more = _MORE_OUTLIERS if violation is ModelViolation.OUTLIERS else 1
    machine = TrueMachine(
        settings=tuple(row.setting for row in rows),
        size_mb=tuple((scale * sizes * [row.size_mb for row in rows]).tolist()),
        decompress_ms=tuple((slower * times * decompress).tolist()),
        populate_ms=slower * table.populate_ms,
        read_s_per_mb=1 / conditions.read_mb_s,
        fixed_ms=prior.fixed_ms.median * float(np.exp(rng.normal(0, prior.fixed_ms.log_sd))),
        kernel_mb=_KERNEL_MB,
        shadow_ms=conditions.shadow_ms,
        rest_ms=_REST_MEDIAN_MS * float(np.exp(rng.normal(0, _REST_LOG_SD))),
        noise_log_sd=conditions.noise_log_sd,
        outliers=conditions.outliers * more,
        violation=violation,
        read_power=float(rng.choice(_CURVED)) if violation is ModelViolation.CURVED else 1.0,
    )
    if violation is not ModelViolation.DRIFT:
        return machine
    drift = float(rng.choice((-_DRIFT, _DRIFT)))
    return replace(machine, drift_ms=drift * float(true_costs(machine)[0]))


def _today(rng: np.random.Generator, table: TruthTable, today: Setting | None) -> int:
    settings = [row.setting for row in table.rows]
    if today is not None:
        return settings.index(today)
    shipped = [number for number, found in enumerate(settings) if found.codec in _SHIPPED]
    return int(rng.choice(shipped or range(len(settings))))


def true_costs(machine: TrueMachine) -> Floats:
    """Return the cost of a boot of each candidate, in ms, without noise."""
    return machine.fixed_ms + _read_ms(machine) + waited_ms(machine) + machine.rest_ms


def waited_ms(machine: TrueMachine) -> Floats:
    """Return max(B1, U) of each candidate, in ms."""
    return np.asarray(np.maximum(machine.shadow_ms, _unpack_ms(machine)))


def _unpack_ms(machine: TrueMachine) -> Floats:
    unpack = machine.populate_ms + np.array(machine.decompress_ms)
    if machine.violation is ModelViolation.CONTENTION:
        unpack = unpack + _CONTENTION * np.minimum(machine.shadow_ms, unpack)
    return np.asarray(unpack)


def _read_ms(machine: TrueMachine) -> Floats:
    read_mb = np.array(machine.size_mb) + machine.kernel_mb
    bent = (read_mb / read_mb[0]) ** (machine.read_power - 1)
    return np.asarray(machine.read_s_per_mb * 1000 * read_mb * bent)


def image_ms(machine: TrueMachine) -> Floats:
    """Return the part of the reading that is the images' own, in ms."""
    own = np.array(machine.size_mb)
    return np.asarray(_read_ms(machine) * own / (own + machine.kernel_mb))


def known_beforehand(
    rng: np.random.Generator, machine: TrueMachine, prior: Machine, conditions: MachineConditions
) -> tuple[Machine, tuple[CandidateFacts, ...]]:
    """Return what a bench or a lab would say of a machine, with errors of the stated size.

    ``prior``: the error of each figure. The error that all candidates share (the processor, the
    virtual machine) is part of the bench's error, and comes on top of the lab's.
    """

    def told(truth: float, known: Quantity) -> Quantity:
        off = quantity_at(replace(known, median=1.0, least=0.0), rng.normal(0, 1, 1))
        return replace(known, median=truth / float(off[0]))

    error = conditions.unpack_log_sd
    shared = prior.lab if conditions.lab else prior.cpu
    own = error if conditions.lab else sqrt(max(error**2 - shared.log_sd**2, 0.0))
    factor = float(np.exp(rng.normal(0, shared.log_sd)))
    unpack = machine.populate_ms + np.array(machine.decompress_ms)
    facts = []
    for number, setting in enumerate(machine.settings):
        decompress_ms = machine.decompress_ms[number]
        wrong = float(np.exp(rng.normal(0, own))) / factor
        plain = decompress_ms <= 0
        facts.append(
            CandidateFacts(
                setting=setting,
                digest=f"{number:064x}",
                size_mb=Quantity(median=machine.size_mb[number]),
                decompress_ms=Quantity(
                    median=0.0 if plain else decompress_ms * wrong, log_sd=0.0 if plain else own
                ),
                unpack_ms=Quantity(median=float(unpack[number]) * wrong, log_sd=own)
                if conditions.lab
                else None,
            )
        )
    return (
        replace(
            prior,
            read_s_per_mb=told(machine.read_s_per_mb, prior.read_s_per_mb),
            kernel_mb=machine.kernel_mb,
            populate_ms=told(max(machine.populate_ms, 1e-3), prior.populate_ms),
        ),
        tuple(facts),
    )


class Booter:
    """Boots a synthetic machine, one boot after the other."""

    def __init__(self, machine: TrueMachine, rng: np.random.Generator) -> None:
        self._machine = machine
        self._rng = rng
        self._read_ms = machine.fixed_ms + _read_ms(machine)
        self._unpack_ms = _unpack_ms(machine)
        self._before = rng.normal(0, 1, 4)
        self._booted = 0

    def boot(self, column: int) -> BootEvidence:
        """Boot a candidate and return all that such a boot shows."""
        machine, rng = self._machine, self._rng
        noise = np.exp(self._noise())
        unpack_ms = float(self._unpack_ms[column] * noise[0])
        shadow_ms = float(machine.shadow_ms * noise[1])
        rest_ms = float(machine.rest_ms * noise[2])
        read_ms = float(self._read_ms[column] * noise[3]) + self._booted * machine.drift_ms
        self._booted += 1
        waited = shadow_ms < unpack_ms
        seen_ms = min(shadow_ms * float(np.exp(rng.normal(0, _SEEN_SHADOW_LOG_SD))), unpack_ms)
        return BootEvidence(
            relation=Relation.SAME,
            class_key="today's",
            age_days=1.0,
            digest=f"{column:064x}",
            setting=machine.settings[column],
            loaded_mb=machine.size_mb[column],
            unpack_us=max(1, round(unpack_ms * 1000)),
            begin_to_init_us=1 + round(1000 * (max(shadow_ms, unpack_ms) + rest_ms)),
            waiting=Waiting.WAITED if waited else Waiting.HIDDEN,
            shadow_us=round(seen_ms * 1000) if waited else None,
            rest_us=round(rest_ms * 1000) if waited else None,
            read_us=max(1, round(read_ms * 1000)),
            read_source=IntervalSource.EXEC_MINUS_INIT,
            read_beside=(Beside.LOADER, Beside.KERNEL),
        )

    def _noise(self) -> Floats:
        """Return the logarithms by which unpacking, B1, B2 and reading are off in this boot."""
        rng, machine = self._rng, self._machine
        noise = rng.normal(0, 1, 4)
        if machine.violation is ModelViolation.CORRELATED:
            noise = _CORRELATION * self._before + sqrt(1 - _CORRELATION**2) * noise
            self._before = noise
        noise = noise * machine.noise_log_sd
        if rng.random() < machine.outliers:
            noise[rng.integers(4)] += rng.uniform(*DISTURBED_LOGS)
        return np.asarray(noise)


def run_campaign(
    truth: TrueMachine,
    machine: Machine,
    candidates: Sequence[CandidateFacts],
    *,
    rules: Rules,
    seed: int,
) -> CampaignRun:
    """Boot what teaches most until the decision is settled.

    ``machine`` and ``candidates``: what is known beforehand, in the order of ``truth``.
    """
    booter = Booter(truth, np.random.default_rng([seed, 1]))
    boots: list[BootEvidence] = []
    order: list[int] = []
    looks: list[Look] = []
    while True:
        posterior = sample_posterior(machine, candidates, boots, seed=len(boots), count=_DRAWS)
        draws = priced(posterior.parameters, machine, candidates)
        decision = decide(
            draws,
            candidates,
            baseline=0,
            thresholds=rules.thresholds,
            source="simulation",
            booted=bool(boots),
        )
        if len(boots) in rules.looks:
            looks.append(_look(truth, decision, draws, len(boots), rules.thresholds))
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
    regret, tolerance = float(costs[chosen] - costs.min()), tolerance_ms(truth, rules.thresholds)
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
        looks=tuple(looks),
    )


def _look(
    truth: TrueMachine, decision: Decision, draws: Draws, boots: int, thresholds: Thresholds
) -> Look:
    costs = true_costs(truth)
    chosen = truth.settings.index(decision.setting)
    saving = costs[0] - costs
    low, high = np.quantile(savings(draws, 0), [0.025, 0.975], axis=0)
    held = ((low <= saving) & (saving <= high))[1:]
    return Look(
        boots=boots,
        outcome=decision.outcome,
        saving_ms=float(saving[chosen]),
        regret_ms=float(costs[chosen] - costs.min()),
        tolerance_ms=tolerance_ms(truth, thresholds),
        held=int(held.sum()),
        of=len(held),
    )


def tolerance_ms(machine: TrueMachine, thresholds: Thresholds) -> float:
    """Return which difference does not matter."""
    return float(thresholds.tolerance(image_ms(machine) + waited_ms(machine))[0])


def simulate_one(
    source: TableSet,
    conditions: MachineConditions,
    rules: Rules,
    *,
    prior: Machine,
    seed: Sequence[int],
) -> MachineRun:
    """Draw a machine and run a campaign on it."""
    rng = np.random.default_rng(list(seed))
    table = source.tables[int(rng.integers(len(source.tables)))]
    truth = draw_machine(rng, table, conditions, prior, today=source.today)
    machine, candidates = known_beforehand(rng, truth, prior, conditions)
    own = int(rng.integers(1 << 32))
    return MachineRun(
        seed=tuple(seed),
        table=table.name,
        conditions=conditions,
        today=truth.settings[0],
        campaign=run_campaign(truth, machine, candidates, rules=rules, seed=own),
    )


def spread(
    work: Callable[[_Job], _Result], jobs: Sequence[_Job], *, processes: int
) -> Iterator[_Result]:
    """Yield what ``work`` returns for each job, in order. Work and jobs are pickled."""
    # Not forked: a process with threads, as numpy has, is not safe to fork.
    with get_context("spawn").Pool(min(processes, len(jobs))) as pool:
        yield from pool.imap(work, jobs)
