"""Machines drawn at random, the boots they would show, and what would be known beforehand."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.boot_evidence import BootEvidence, Relation
from initadvisor.model.boot_marks import Waiting
from initadvisor.model.codec import Codec
from initadvisor.model.cost import CandidateFacts, Quantity
from initadvisor.model.read_interval import Beside, IntervalSource
from initadvisor.model.simulation import Conditions, Strain, TrueMachine
from initadvisor.model.whatif import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from initadvisor.model.cost import Machine
    from initadvisor.model.setting import Setting
    from initadvisor.model.simulation import Scenario
    from initadvisor.model.truth_table import TruthTable
    from initadvisor.model.whatif import Given

    Floats = NDArray[np.float64]

_SHIPPED = frozenset({Codec.ZSTD, Codec.GZIP, Codec.XZ, Codec.LZ4})
"""What distributions configure; today's setting is one of these."""

CONTENT_LOG_SD = 0.25
PROCESSOR_LOG_SD = 0.5
OWN_SIZE_LOG_SD = 0.02
OWN_TIME_LOG_SD = 0.1
"""How machines differ from the table they are drawn from: what the image holds, how fast the
processor is, and what that does to single settings.
"""

_REST_MEDIAN_MS = 162.0
_REST_LOG_SD = 0.6
"""B2 of 30 boots of real machines."""

_KERNEL_MB = 12.0
_CURVED = (0.85, 1.15)
_DRIFT = 0.01
_CONTENTION = 0.3
_CORRELATION = 0.8
_MORE_OUTLIERS = 3
DISTURBED_LOGS = (0.5, 2.0)
"""By which logarithm one part of a disturbed boot takes longer, anywhere in this range."""

_SEEN_SHADOW_LOG_SD = 0.3


def draw_conditions(rng: np.random.Generator, scenario: Scenario, number: int) -> Conditions:
    """Draw the conditions of the machine with a number, its turn to break the model included."""
    return Conditions(
        read_mb_s=_drawn(rng, scenario.read_mb_s, above=0.0),
        shadow_ms=_drawn(rng, scenario.shadow_ms, above=1.0),
        noise_log_sd=scenario.noise_log_sd,
        outliers=scenario.outliers,
        strain=scenario.strains[number % len(scenario.strains)],
        unpack_log_sd=scenario.unpack_log_sd,
        lab=scenario.lab,
    )


def _drawn(rng: np.random.Generator, given: Given, *, above: float) -> float:
    """Return a value as it is, one of a range so that its logarithm is anywhere alike.

    ``above`` is added before the logarithm is taken: a range may begin at 0.
    """
    if not isinstance(given, Span):
        return given
    logs = rng.uniform(np.log(given.low + above), np.log(given.high + above))
    return float(np.clip(np.exp(logs) - above, given.low, given.high))


def draw_machine(
    rng: np.random.Generator,
    table: TruthTable,
    conditions: Conditions,
    prior: Machine,
    *,
    today: Setting | None = None,
    like_table: bool = False,
) -> TrueMachine:
    """Draw a machine like those of a table: other content, another processor, its own L and B2.

    ``today``: today's setting, drawn where it is None. ``like_table``: the machine is the very one
    that the table was made on. Raises ``ValueError`` for a setting the table lacks.
    """
    first = _today(rng, table, today)
    rows = [table.rows[first], *(row for number, row in enumerate(table.rows) if number != first)]
    vary = 0.0 if like_table else 1.0
    scale = float(np.exp(vary * rng.normal(0, CONTENT_LOG_SD)))
    slower = scale * float(np.exp(vary * rng.normal(0, PROCESSOR_LOG_SD)))
    sizes = np.exp(vary * rng.normal(0, OWN_SIZE_LOG_SD, len(rows)))
    times = np.exp(vary * rng.normal(0, OWN_TIME_LOG_SD, len(rows)))
    decompress = np.array([row.unpack_ms - table.populate_ms for row in rows])
    strain = conditions.strain
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
        outliers=conditions.outliers * (_MORE_OUTLIERS if strain is Strain.OUTLIERS else 1),
        strain=strain,
        read_power=float(rng.choice(_CURVED)) if strain is Strain.CURVED else 1.0,
    )
    if strain is not Strain.DRIFT:
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
    """Return what a boot of each candidate costs, in ms, without noise."""
    waited = np.maximum(machine.shadow_ms, _unpack_ms(machine))
    return machine.fixed_ms + _read_ms(machine) + waited + machine.rest_ms


def _unpack_ms(machine: TrueMachine) -> Floats:
    unpack = machine.populate_ms + np.array(machine.decompress_ms)
    if machine.strain is Strain.CONTENTION:
        unpack = unpack + _CONTENTION * np.minimum(machine.shadow_ms, unpack)
    return np.asarray(unpack)


def _read_ms(machine: TrueMachine) -> Floats:
    read_mb = np.array(machine.size_mb) + machine.kernel_mb
    bent = (read_mb / read_mb[0]) ** (machine.read_power - 1)
    return np.asarray(machine.read_s_per_mb * 1000 * read_mb * bent)


def known_beforehand(
    rng: np.random.Generator, machine: TrueMachine, prior: Machine, conditions: Conditions
) -> tuple[Machine, tuple[CandidateFacts, ...]]:
    """Return what bench or lab would say of a machine, with errors as large as they are said to be.

    ``prior``: how far each figure may be off. What is off alike for all candidates (the processor,
    the virtual machine) is a part of what the conditions allow where bench measured, and beside it
    where the lab did.
    """

    def told(truth: float, known: Quantity) -> Quantity:
        return replace(known, median=truth * float(np.exp(rng.normal(0, known.log_sd))))

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
    """Boots a made-up machine, one boot after the other."""

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
        """Return by which logarithms unpacking, B1, B2 and reading are off in this boot."""
        rng, machine = self._rng, self._machine
        noise = rng.normal(0, 1, 4)
        if machine.strain is Strain.CORRELATED:
            noise = _CORRELATION * self._before + sqrt(1 - _CORRELATION**2) * noise
            self._before = noise
        noise = noise * machine.noise_log_sd
        if rng.random() < machine.outliers:
            noise[rng.integers(4)] += rng.uniform(*DISTURBED_LOGS)
        return np.asarray(noise)
