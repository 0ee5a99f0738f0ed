"""The posterior: what is known of a machine and its candidates, given boots of the machine.

Three parts of the model are apart from each other, before the boots and after them, because each
boot shows each in figures of its own: the loader's (``boot_reading``), the time to unpack
(``boot_unpacking``), and what the kernel does meanwhile and after that (``boot_overlap``). A part
that no boot tells anything of is drawn as it is without boots, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.boot_evidence import Parameter, ParameterUpdate, PosteriorSummary
from initadvisor.decide.costs import (
    DRAWS,
    draw_parts,
    populate_column,
    populate_times,
    priced,
    summary,
)
from initadvisor.decide.posterior.boot_overlap import draw_shadow_given
from initadvisor.decide.posterior.boot_reading import READ_LOG_SD, draw_reading, summarise_reading
from initadvisor.decide.posterior.boot_summary import (
    UNPACK_LOG_SD,
    columns,
    summarise_shadow,
    summarise_unpacking,
)
from initadvisor.decide.posterior.boot_unpacking import draw_unpacking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.decide.arrays import Floats
    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import CandidateFacts, Machine
    from initadvisor.decide.costs import Draws, ParameterDraws
    from initadvisor.decide.posterior.boot_reading import ReadSummary
    from initadvisor.decide.posterior.boot_summary import ShadowSummary, UnpackSummary


_READING, _UNPACKING, _SHADOW = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How far single boots of one image are apart, as standard deviations of logarithms.

    ``loader_seen``: whether boots of this machine show an interval that contains the reading.
    """

    unpack_log_sd: float = UNPACK_LOG_SD
    read_log_sd: float = READ_LOG_SD
    loader_seen: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The parts of the model as draws, given boots, and what further boots would be like.

    ``found``: None without boots. ``effective``: how many independent draws they are worth, in the
    part where they are worth least.
    """

    parameters: ParameterDraws
    prior: ParameterDraws
    noise: Noise
    found: Summaries | None
    effective: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorCosts:
    """What candidates cost, given boots, what that is made of, and what the boots taught."""

    draws: Draws
    posterior: Posterior
    summary: PosteriorSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Summaries:
    """What boots tell, in few figures, each part of the model by itself."""

    reading: ReadSummary
    unpacking: UnpackSummary
    shadow: ShadowSummary


def sample_posterior_costs(
    machine: Machine,
    candidates: Sequence[CandidateFacts],
    boots: Sequence[BootEvidence],
    *,
    seed: int,
    count: int = DRAWS,
) -> PosteriorCosts:
    """Draw machines from what is known once boots of this machine are, and price the candidates.

    The order of the boots does not matter. Without boots it is the same draws as of ``draw_parts``.
    """
    posterior = sample_posterior(machine, candidates, boots, seed=seed, count=count)
    return PosteriorCosts(
        draws=priced(posterior.parameters, machine, candidates),
        posterior=posterior,
        summary=_lessons(machine, candidates, posterior),
    )


def sample_posterior(
    machine: Machine,
    candidates: Sequence[CandidateFacts],
    boots: Sequence[BootEvidence],
    *,
    seed: int,
    count: int = DRAWS,
) -> Posterior:
    """Draw what ``sample_posterior_costs`` puts together, without saying what was learnt."""
    prior = draw_parts(machine, candidates, seed=seed, count=count)
    if not boots:
        return Posterior(
            parameters=prior, prior=prior, noise=Noise(), found=None, effective=float(count)
        )
    found = summarised(machine, candidates, boots)
    parts, effective = _given(machine, candidates, prior, found, seed=seed)
    seen = bool(found.reading.lines)
    noise = Noise(
        unpack_log_sd=found.unpacking.log_sd, read_log_sd=found.reading.log_sd, loader_seen=seen
    )
    return Posterior(parameters=parts, prior=prior, noise=noise, found=found, effective=effective)


def summarised(
    machine: Machine, candidates: Sequence[CandidateFacts], boots: Sequence[BootEvidence]
) -> Summaries:
    """Put boots (at least one) into few figures; the rest takes no longer for many than for one."""
    table = columns(boots, candidates)
    unpacking = summarise_unpacking(table, candidates)
    return Summaries(
        reading=summarise_reading(table, candidates),
        unpacking=unpacking,
        shadow=summarise_shadow(
            table,
            unpack_log_sd=unpacking.log_sd,
            synchronous=machine.shadow.fixed_ms == 0,
        ),
    )


def _given(
    machine: Machine,
    candidates: Sequence[CandidateFacts],
    prior: ParameterDraws,
    found: Summaries,
    *,
    seed: int,
) -> tuple[ParameterDraws, float]:
    """Draw each part anew that boots tell of, with random numbers of its own."""
    parts, effective = prior, float(len(prior.cpu))
    if found.reading.used.any():
        rng = np.random.default_rng([seed, _READING])
        read, fixed = draw_reading(rng, machine, found.reading, prior)
        parts = replace(parts, read_s_per_mb=read, fixed_ms=fixed)
    if found.unpacking.seen:
        rng = np.random.default_rng([seed, _UNPACKING])
        parts, worth = draw_unpacking(rng, machine, candidates, found.unpacking.seen, parts)
        effective = min(effective, worth)
    if found.shadow.used.any():
        rng = np.random.default_rng([seed, _SHADOW])
        shadow, rest, worth = draw_shadow_given(rng, machine, found.shadow, len(prior.cpu))
        parts = replace(parts, shadow_ms=shadow, rest_ms=rest)
        effective = min(effective, worth)
    return parts, effective


def _lessons(
    machine: Machine, candidates: Sequence[CandidateFacts], posterior: Posterior
) -> PosteriorSummary:
    found = posterior.found
    before = _shared(machine, candidates, posterior.prior)
    after = _shared(machine, candidates, posterior.parameters)
    boots = _boots(machine, candidates, found) if found else dict.fromkeys(Parameter, 0)
    sources = _sources(machine, candidates)
    used = found.reading.used | found.unpacking.used | found.shadow.used if found else np.zeros(0)
    return PosteriorSummary(
        updates=tuple(
            ParameterUpdate(
                what=what,
                prior=summary(before[what], sources[what]),
                posterior=summary(after[what], _source(boots[what]) or sources[what]),
                boots=boots[what],
            )
            for what in before
        ),
        boots_used=int(used.sum()),
        own_boots=tuple(found.unpacking.own.tolist()) if found else (0,) * len(candidates),
        read_sizes=found.reading.sizes if found else 0,
    )


def _source(boots: int) -> str:
    if not boots:
        return ""
    return f"{boots} boot{'s' if boots > 1 else ''} of this machine"


def _shared(
    machine: Machine, candidates: Sequence[CandidateFacts], parameters: ParameterDraws
) -> Mapping[Parameter, Floats]:
    """Return the draws of what the candidates share, of the lab only where it measured any."""
    values = {
        Parameter.LOADER: 1 / parameters.read_s_per_mb,
        Parameter.FIXED: parameters.fixed_ms + parameters.read_s_per_mb * 1000 * machine.kernel_mb,
        Parameter.SHADOW: parameters.shadow_ms,
        Parameter.REST: parameters.rest_ms,
        Parameter.POPULATE: populate_times(parameters, candidates),
        Parameter.CPU: parameters.cpu,
        Parameter.LAB: parameters.lab,
    }
    if all(candidate.unpack_ms is None for candidate in candidates):
        del values[Parameter.LAB]
    return values


def _sources(machine: Machine, candidates: Sequence[CandidateFacts]) -> Mapping[Parameter, str]:
    column = populate_column(candidates)
    plain = None if column is None else candidates[column].unpack_ms
    return {
        Parameter.LOADER: machine.read_s_per_mb.source,
        Parameter.FIXED: machine.fixed_ms.source,
        Parameter.SHADOW: machine.shadow.source,
        Parameter.REST: f"drawn from {len(machine.shadow.boots)} boots of other machines",
        Parameter.POPULATE: (plain or machine.populate_ms).source,
        Parameter.CPU: machine.cpu.source,
        Parameter.LAB: machine.lab.source,
    }


def _boots(
    machine: Machine, candidates: Sequence[CandidateFacts], found: Summaries
) -> Mapping[Parameter, int]:
    """Return how many boots told something of each."""
    lab = bench = 0
    for column, place in found.unpacking.seen.items():
        if candidates[column].unpack_ms is None:
            bench += place.count
        else:
            lab += place.count
    reading, shadow = int(found.reading.used.sum()), int(found.shadow.used.sum())
    return {
        Parameter.LOADER: reading,
        Parameter.FIXED: reading if found.reading.today else 0,
        Parameter.SHADOW: shadow if machine.shadow.fixed_ms is None else 0,
        Parameter.REST: shadow,
        Parameter.POPULATE: bench,
        Parameter.CPU: bench,
        Parameter.LAB: lab,
    }
