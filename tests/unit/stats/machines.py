"""Machines and candidates whose right answer is known by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.model.cost import CandidateFacts, Machine, ObservedBoot, Quantity, Shadow
from initadvisor.model.setting import Setting
from initadvisor.stats.costs import DRAWS, draw_parts, priced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.stats.costs import Draws

BOOTS = (
    ObservedBoot(waited=True, unpack_ms=200, shadow_ms=20, begin_to_init_ms=350),
    ObservedBoot(waited=True, unpack_ms=400, shadow_ms=60, begin_to_init_ms=None),
    ObservedBoot(waited=False, unpack_ms=300, shadow_ms=None, begin_to_init_ms=1000),
)


def known(median: float, log_sd: float = 0.0) -> Quantity:
    """Return a figure that is certain unless ``log_sd`` is given."""
    return Quantity(median=median, log_sd=log_sd)


def machine(
    *,
    mb_s: float = 100.0,
    shadow_ms: float | None = 0.0,
    read_log_sd: float = 0.0,
    cpu_log_sd: float = 0.0,
    lab_log_sd: float = 0.0,
) -> Machine:
    """Return a machine with a loader of ``mb_s`` and a known shadow (None: drawn from boots)."""
    return Machine(
        read_s_per_mb=known(1 / mb_s, read_log_sd),
        fixed_ms=known(100),
        kernel_mb=10,
        populate_ms=known(80),
        cpu=known(1, cpu_log_sd),
        lab=known(1, lab_log_sd),
        shadow=Shadow(boots=BOOTS, fixed_ms=shadow_ms, source="a test"),
    )


def candidate(
    setting: str,
    size_mb: float,
    decompress_ms: float,
    *,
    log_sd: float = 0.0,
    eligible: bool = True,
    unpack_ms: float | None = None,
) -> CandidateFacts:
    """Return a candidate whose figures are certain unless ``log_sd`` is given.

    ``unpack_ms``: what a lab measured, as uncertain as D.
    """
    return CandidateFacts(
        setting=Setting.parse(setting),
        size_mb=known(size_mb),
        decompress_ms=known(decompress_ms, log_sd),
        unpack_ms=None if unpack_ms is None else known(unpack_ms, log_sd),
        eligible=eligible,
    )


def draw_costs(
    machine: Machine, candidates: Sequence[CandidateFacts], *, seed: int, count: int = DRAWS
) -> Draws:
    """Draw machines from what is known beforehand and price every candidate on each of them."""
    return priced(draw_parts(machine, candidates, seed=seed, count=count), machine, candidates)
