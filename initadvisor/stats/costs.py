"""Draws from what is known of a machine and its candidates, through the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.codec import Codec
from initadvisor.model.cost import Factor
from initadvisor.model.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from initadvisor.model.cost import (
        CandidateFacts,
        Machine,
        ObservedBoot,
        Quantity,
        Shadow,
    )

    Floats = NDArray[np.float64]

DRAWS = 20_000
"""Enough for a probability of 0.95 to be right within 0.003 (two standard errors)."""

_SHADOW_LOG_SD = 0.3
_UNSEEN_INIT_FACTOR = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Joint draws: rows are possible machines, columns candidates; times in ms.

    ``extra_ms`` has one value per candidate; ``factors`` one per row (units as in
    ``DecidingFact``).
    """

    size_mb: Floats
    read_ms: Floats
    unpack_ms: Floats
    total_ms: Floats
    extra_ms: Floats
    factors: Mapping[Factor, Floats]


def draw_costs(
    machine: Machine, candidates: Sequence[CandidateFacts], *, seed: int, count: int = DRAWS
) -> Draws:
    """Draw ``count`` machines from what is known and price every candidate on each of them.

    What candidates share (loader, shadow, populate, CPU, what the lab differs by) is drawn once per
    machine, so differences between candidates are known far better than their totals.
    """
    rng = np.random.default_rng(seed)
    read_s_per_mb = _lognormal(rng, machine.read_s_per_mb, count)
    cpu = _lognormal(rng, machine.cpu, count)
    shadow, rest = _draw_shadow(rng, machine.shadow, count)
    loader_ms = _lognormal(rng, machine.fixed_ms, count)
    loader_ms += read_s_per_mb * 1000 * machine.kernel_mb

    size = np.column_stack([_lognormal(rng, c.size_mb, count) for c in candidates])
    read_ms = size * (read_s_per_mb * 1000)[:, None]
    unpack_ms = _draw_unpack(rng, machine, candidates, cpu)
    waited = np.maximum(shadow[:, None], unpack_ms)
    return Draws(
        size_mb=size,
        read_ms=read_ms,
        unpack_ms=unpack_ms,
        total_ms=loader_ms[:, None] + read_ms + waited + rest[:, None],
        extra_ms=np.array([c.extra_ms for c in candidates]),
        factors={
            Factor.LOADER: 1 / read_s_per_mb,
            Factor.SHADOW: shadow,
            Factor.CPU: cpu,
        },
    )


def _draw_unpack(
    rng: np.random.Generator, machine: Machine, candidates: Sequence[CandidateFacts], cpu: Floats
) -> Floats:
    """Draw U of every candidate: as the lab measured it, else P + D.

    The lab's time for an uncompressed candidate is P, which the others have the same of.
    """
    count = len(cpu)
    lab = _lognormal(rng, machine.lab, count)
    populate = _lognormal(rng, machine.populate_ms, count)
    decompress = [_lognormal(rng, c.decompress_ms, count) * cpu for c in candidates]
    measured = {
        column: _lognormal(rng, candidate.unpack_ms, count) * lab
        for column, candidate in enumerate(candidates)
        if candidate.unpack_ms is not None
    }
    for column, unpack in measured.items():
        if candidates[column].setting.codec is Codec.CAT:
            populate = unpack
    return np.column_stack(
        [measured.get(column, populate + own) for column, own in enumerate(decompress)]
    )


def summary(values: Floats, source: str) -> Estimate:
    """Return the mean of draws and the bounds that hold the middle 95 % of them."""
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(mean=float(values.mean()), low=float(low), high=float(high), source=source)


def _lognormal(rng: np.random.Generator, quantity: Quantity, count: int) -> Floats:
    return np.asarray(quantity.median * np.exp(rng.normal(0.0, quantity.log_sd, count)))


def _draw_shadow(rng: np.random.Generator, shadow: Shadow, count: int) -> tuple[Floats, Floats]:
    """Draw B1 and B2, both from the same boot so that their dependence is kept."""
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
