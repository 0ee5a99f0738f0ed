"""Draws from what is known of a machine and its candidates, through the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Estimate
from initadvisor.decide.arrays import columns, quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.decide.arrays import Floats
    from initadvisor.decide.cost import CandidateFacts, Machine, ObservedBoot, Quantity, Shadow


DRAWS = 20_000
"""Enough for a probability of 0.95 to be right within 0.003 (two standard errors)."""

_SHADOW_LOG_SD = 0.3
_UNSEEN_INIT_FACTOR = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Joint draws: rows are possible machines, columns candidates; times in ms.

    ``shadow_ms``: B1, a value for each draw; ``waited_ms``: max(B1, U). ``extra_ms`` has one value
    per candidate.
    """

    size_mb: Floats
    read_ms: Floats
    unpack_ms: Floats
    shadow_ms: Floats
    waited_ms: Floats
    total_ms: Floats
    extra_ms: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterDraws:
    """Joint draws of the model's parts, before they are put together; see ``Machine``.

    ``fixed_ms`` is L without reading the kernel. ``own_ms`` has a column for each candidate: U
    without the factor ``lab`` where the lab measured it, else D without the factors ``cpu`` and
    ``codec``, of which there is a column for each candidate, too: alike for those of one codec.
    """

    read_s_per_mb: Floats
    fixed_ms: Floats
    shadow_ms: Floats
    rest_ms: Floats
    populate_ms: Floats
    cpu: Floats
    codec: Floats
    lab: Floats
    size_mb: Floats
    own_ms: Floats


def draw_parts(
    machine: Machine, candidates: Sequence[CandidateFacts], *, seed: int, count: int
) -> ParameterDraws:
    """Draw ``count`` machines from what is known.

    What candidates share (loader, shadow, populate, CPU, the error of a codec, what the lab differs
    by) is drawn once per machine, so differences between candidates are known far better than their
    totals.
    """
    rng = np.random.default_rng(seed)
    read_s_per_mb = _lognormal(rng, machine.read_s_per_mb, count)
    cpu = _lognormal(rng, machine.cpu, count)
    shadow, rest = draw_shadow(rng, machine.shadow, count)
    fixed = _lognormal(rng, machine.fixed_ms, count)
    size = [_lognormal(rng, candidate.size_mb, count) for candidate in candidates]
    lab = _lognormal(rng, machine.lab, count)
    populate = _lognormal(rng, machine.populate_ms, count)
    own = [_lognormal(rng, candidate.decompress_ms, count) for candidate in candidates]
    for column, candidate in enumerate(candidates):
        if candidate.unpack_ms is not None:
            own[column] = _lognormal(rng, candidate.unpack_ms, count)
    shared = {c.setting.codec: rng.standard_normal(count) for c in candidates if c.codec_log_sd}
    codec = [
        np.exp(c.codec_log_sd * shared[c.setting.codec]) if c.codec_log_sd else np.ones(count)
        for c in candidates
    ]
    return ParameterDraws(
        read_s_per_mb=read_s_per_mb,
        fixed_ms=fixed,
        shadow_ms=shadow,
        rest_ms=rest,
        populate_ms=populate,
        cpu=cpu,
        codec=columns(codec),
        lab=lab,
        size_mb=columns(size),
        own_ms=columns(own),
    )


def priced(
    parameters: ParameterDraws, machine: Machine, candidates: Sequence[CandidateFacts]
) -> Draws:
    """Put the parts together to what each candidate costs."""
    loader_ms = parameters.fixed_ms + parameters.read_s_per_mb * 1000 * machine.kernel_mb
    read_ms = parameters.size_mb * (parameters.read_s_per_mb * 1000)[:, None]
    unpack_ms = unpack_times(parameters, candidates)
    waited = np.maximum(parameters.shadow_ms[:, None], unpack_ms)
    return Draws(
        size_mb=parameters.size_mb,
        read_ms=read_ms,
        unpack_ms=unpack_ms,
        shadow_ms=parameters.shadow_ms,
        waited_ms=waited,
        total_ms=loader_ms[:, None] + read_ms + waited + parameters.rest_ms[:, None],
        extra_ms=np.array([c.extra_ms for c in candidates]),
    )


def unpack_times(parameters: ParameterDraws, candidates: Sequence[CandidateFacts]) -> Floats:
    """Return U of every candidate, in ms: as the lab measured it, else P + D."""
    populate = populate_times(parameters, candidates)
    return columns(
        [
            populate + parameters.own_ms[:, column] * parameters.cpu * parameters.codec[:, column]
            if candidate.unpack_ms is None
            else parameters.own_ms[:, column] * parameters.lab
            for column, candidate in enumerate(candidates)
        ]
    )


def populate_times(parameters: ParameterDraws, candidates: Sequence[CandidateFacts]) -> Floats:
    """Return P, in ms."""
    column = populate_column(candidates)
    return (
        parameters.populate_ms if column is None else parameters.own_ms[:, column] * parameters.lab
    )


def populate_column(candidates: Sequence[CandidateFacts]) -> int | None:
    """Return the uncompressed candidate that the lab measured: its U is P, which all have."""
    measured = [
        column
        for column, candidate in enumerate(candidates)
        if candidate.unpack_ms is not None and candidate.setting.codec is Codec.CAT
    ]
    return measured[-1] if measured else None


def self_extraction_times(
    parameters: ParameterDraws, decompress_ms: Quantity, codec_log_sd: float, *, seed: int
) -> Floats:
    """Return what a kernel takes to unpack itself, in ms, on each of the machines."""
    rng = np.random.default_rng(seed)
    count = len(parameters.cpu)
    codec = np.exp(codec_log_sd * rng.standard_normal(count))
    return _lognormal(rng, decompress_ms, count) * parameters.cpu * codec


def summary(values: Floats, source: str) -> Estimate:
    """Return mean and median of draws, and the bounds that hold the middle 95 % of them."""
    low, median, high = map(float, quantiles(values, (0.025, 0.5, 0.975)))
    mean = float(values.mean())
    return Estimate(mean=mean, low=low, high=high, source=source, median=median)


def quantity_at(quantity: Quantity, normal: Floats) -> Floats:
    """Return what a quantity is where a standard normal variable has these values."""
    above, below = quantity.log_sd, quantity.log_sd_below
    log_sd = above if below is None else np.where(normal < 0, below, above)
    return np.maximum(quantity.median * np.exp(log_sd * normal), quantity.least)


def _lognormal(rng: np.random.Generator, quantity: Quantity, count: int) -> Floats:
    return quantity_at(quantity, rng.normal(0.0, 1.0, count))


def draw_shadow(rng: np.random.Generator, shadow: Shadow, count: int) -> tuple[Floats, Floats]:
    """Draw B1 and B2 in ms, both from the same boot so that their dependence is kept."""
    ranges = np.array([_shadow_range(boot) for boot in shadow.boots])
    rest_known = np.array([_rest_after_unpack(boot) for boot in shadow.boots if boot.waited])
    rest_known = rest_known[~np.isnan(rest_known)]
    chosen = rng.integers(len(shadow.boots), size=count)
    low, high = ranges[chosen].T
    # A shadow that was seen is blurred, one that is only bounded may lie anywhere in between.
    observed = np.exp(rng.uniform(np.log(low), np.log(high)))
    observed *= np.where(low == high, np.exp(rng.normal(0.0, _SHADOW_LOG_SD, count)), 1.0)
    own_rest = np.array([_rest_after_unpack(boot) for boot in shadow.boots])[chosen]
    total = np.array([boot.begin_to_init_ms or np.nan for boot in shadow.boots])[chosen]
    waited = np.array([boot.waited for boot in shadow.boots])[chosen]
    rest = np.where(waited, own_rest, total - observed)
    rest = np.where(np.isnan(rest), rng.choice(rest_known, count), rest)
    if shadow.fixed_ms is not None:
        return np.full(count, shadow.fixed_ms), rest
    return observed, rest


def _shadow_range(boot: ObservedBoot) -> tuple[float, float]:
    if boot.shadow_ms is not None:
        return boot.shadow_ms, boot.shadow_ms
    return boot.unpack_ms, boot.begin_to_init_ms or boot.unpack_ms * _UNSEEN_INIT_FACTOR


def _rest_after_unpack(boot: ObservedBoot) -> float:
    if boot.begin_to_init_ms is None:
        return float("nan")
    return boot.begin_to_init_ms - boot.unpack_ms
