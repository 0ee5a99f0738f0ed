"""Machines that are known because they are made up, and the boots that they would show.

A machine is one draw of what is known beforehand. Its boots differ from each other by as much as
single boots are said to, all boots of one image have an error in common, and a few are disturbed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.boot_evidence import BootEvidence, Relation
from initadvisor.model.boot_marks import Waiting
from initadvisor.model.cost import Machine, Shadow
from initadvisor.model.read_interval import Beside, IntervalSource
from initadvisor.stats.costs import draw_parts, priced
from initadvisor.workflow.knowledge import observed_boots
from tests.fixtures.known_machines import candidate, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.model.cost import CandidateFacts
    from initadvisor.stats.costs import Draws, Parts

    Floats = NDArray[np.float64]

FIELD: tuple[CandidateFacts, ...] = tuple(
    replace(candidate(setting, size_mb, decompress_ms, log_sd=log_sd), digest=f"{number:064x}")
    for number, (setting, size_mb, decompress_ms, log_sd) in enumerate(
        (
            ("zstd -19", 40, 120, 0.14),
            ("lz4 -9", 55, 40, 0.19),
            ("xz", 36, 900, 0.05),
            ("gzip -9", 46, 300, 0.09),
            ("cat", 110, 0, 0.0),
        )
    )
)
"""Candidates as bench measures them, today's first."""

WITH_LAB: tuple[CandidateFacts, ...] = (
    replace(FIELD[0], unpack_ms=known(210, 0.03)),
    replace(FIELD[1], unpack_ms=known(120, 0.03)),
    FIELD[2],
    FIELD[3],
    replace(FIELD[4], unpack_ms=known(85, 0.03)),
)
"""The same where the lab measured some of them."""

SEEN_SHADOW_LOG_SD = 0.3
BETWEEN_BOOTS_LOG_SD = 0.05
SAME_IMAGE_LOG_SD = 0.02
DISTURBED = 0.03
"""Such a part of the boots takes several times as long, for reasons of its own."""


def unknown_machine() -> Machine:
    """Return what is known of a machine that has not booted yet."""
    return Machine(
        read_s_per_mb=known(1 / 200, 1.17),
        fixed_ms=known(100, 1.0),
        kernel_mb=10,
        populate_ms=known(80, 0.35),
        cpu=known(1, 0.25),
        lab=known(1, 0.1),
        shadow=Shadow(boots=observed_boots(), source="boots of other machines"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Many machines, a row for each: what they are, what candidates cost there, and their noise."""

    parts: Parts
    costs: Draws
    rng: np.random.Generator

    def boot(
        self, row: int, column: int, *, boots: int = 1, beside_mb: float = 0.0
    ) -> list[BootEvidence]:
        """Return boots of one candidate on one machine, with all that they can show."""
        common = self.rng.normal(0, SAME_IMAGE_LOG_SD, 3)
        return [self._one(row, column, common, beside_mb) for _ in range(boots)]

    def _one(self, row: int, column: int, common: Floats, beside_mb: float) -> BootEvidence:
        parts, rng = self.parts, self.rng
        noise = rng.normal(0, BETWEEN_BOOTS_LOG_SD, 4)
        if rng.random() < DISTURBED:
            noise[0] += rng.uniform(0.5, 2.5)
        unpack_ms = float(self.costs.unpack_ms[row, column] * np.exp(noise[0] + common[0]))
        shadow_ms = float(parts.shadow_ms[row] * np.exp(noise[1]))
        rest_ms = float(parts.rest_ms[row] * np.exp(noise[2] + common[1]))
        waited = shadow_ms < unpack_ms
        loaded_mb = float(parts.size_mb[row, column]) + beside_mb
        read_ms = parts.fixed_ms[row] + parts.read_s_per_mb[row] * 1000 * (loaded_mb + 10)
        seen = min(shadow_ms * float(np.exp(rng.normal(0, SEEN_SHADOW_LOG_SD))), unpack_ms)
        return BootEvidence(
            relation=Relation.SAME,
            class_key="today's",
            age_days=1.0,
            digest=FIELD[column].digest,
            setting=FIELD[column].setting,
            loaded_mb=loaded_mb,
            unpack_us=round(unpack_ms * 1000),
            begin_to_init_us=round(1000 * (max(shadow_ms, unpack_ms) + rest_ms)) + 1,
            waiting=Waiting.WAITED if waited else Waiting.HIDDEN,
            shadow_us=round(seen * 1000) if waited else None,
            rest_us=round(rest_ms * 1000) if waited else None,
            read_us=round(float(read_ms * np.exp(noise[3] + common[2])) * 1000),
            read_source=IntervalSource.EXEC_MINUS_INIT,
            read_beside=(Beside.LOADER, Beside.KERNEL),
        )


def simulate(
    candidates: Sequence[CandidateFacts] = FIELD, *, count: int, seed: int = 1
) -> Simulated:
    """Make machines up."""
    machine = unknown_machine()
    parts = draw_parts(machine, candidates, seed=seed, count=count)
    return Simulated(
        parts=parts,
        costs=priced(parts, machine, candidates),
        rng=np.random.default_rng([seed, 1]),
    )
