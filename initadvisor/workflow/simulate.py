"""Campaigns on made-up machines: how long they take, and how often they end right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.model.estimate import Evidence
from initadvisor.model.simulation import MachineRun
from initadvisor.stats.simulated_machine import draw_machine, known_beforehand
from initadvisor.stats.simulation import run_campaign, run_fixed
from initadvisor.workflow.knowledge import shipped_calibration
from initadvisor.workflow.machine import unmeasured_machine
from initadvisor.workflow.truth_tables import truth_table, truth_table_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.model.cost import Machine
    from initadvisor.model.setting import Setting
    from initadvisor.model.simulation import Conditions
    from initadvisor.model.truth_table import TruthTable
    from initadvisor.stats.simulation import Rules

UNPACK_LOG_SD = {Evidence.BENCH: 0.30, Evidence.LAB: 0.05}
"""How far off a time to unpack is that is known beforehand; all of the lab's are off together by
``Machine.lab`` besides.
"""

_LEAST_ROWS = 8
"""Tables of fewer settings (published ones name two) are no campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where machines are drawn from.

    ``tables``: one of them for each machine. ``today``: today's setting, drawn where it is None;
    ``like_table``: the machines are the very ones of the tables.
    """

    tables: tuple[TruthTable, ...]
    today: Setting | None = None
    like_table: bool = False


def measured_tables() -> tuple[TruthTable, ...]:
    """Return the built-in tables of this package's own measurements."""
    tables = (truth_table(name) for name in truth_table_names())
    return tuple(table for table in tables if len(table.rows) >= _LEAST_ROWS)


def prior_machine() -> Machine:
    """Return what is known of a machine before anything of it was measured."""
    return unmeasured_machine(shipped_calibration())


def simulate_one(
    ground: Ground, conditions: Conditions, rules: Rules, *, prior: Machine, seed: Sequence[int]
) -> MachineRun:
    """Draw a machine, run a campaign on it, and the classic comparison beside it."""
    rng = np.random.default_rng(list(seed))
    table = ground.tables[int(rng.integers(len(ground.tables)))]
    truth = draw_machine(
        rng, table, conditions, prior, today=ground.today, like_table=ground.like_table
    )
    machine, candidates = known_beforehand(rng, truth, prior, conditions)
    own = int(rng.integers(1 << 32))
    return MachineRun(
        seed=tuple(seed),
        table=table.name,
        conditions=conditions,
        today=truth.settings[0],
        campaign=run_campaign(truth, machine, candidates, rules=rules, seed=own),
        fixed=run_fixed(truth, rules=rules, seed=own),
    )
