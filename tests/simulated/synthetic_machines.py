"""A small table, and synthetic machines of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from typing_extensions import Unpack

from benchmarks.synthetic import CampaignRun, MachineConditions, ModelViolation, draw_machine
from initadvisor.model.cost import Outcome
from initadvisor.model.setting import Setting
from initadvisor.model.truth_table import TruthRow, TruthTable
from tests.unit.stats.simulated import unknown_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.synthetic import TrueMachine
    from initadvisor.model.cost import Machine

ZSTD, LZ4, XZ, CAT = (Setting.parse(text) for text in ("zstd -19", "lz4 -9", "xz", "cat"))
TABLE = TruthTable(
    name="small",
    source="a test",
    populate_ms=80.0,
    rows=tuple(
        TruthRow(setting=setting, size_mb=size_mb, unpack_ms=unpack_ms)
        for setting, size_mb, unpack_ms in (
            (CAT, 110.0, 80.0),
            (LZ4, 55.0, 120.0),
            (ZSTD, 40.0, 200.0),
            (XZ, 36.0, 980.0),
        )
    ),
)


class Changes(TypedDict, total=False):
    """Fields of ``MachineConditions``."""

    read_mb_s: float
    shadow_ms: float
    noise_log_sd: float
    outliers: float
    violation: ModelViolation
    unpack_log_sd: float
    lab: bool


def conditions(**changes: Unpack[Changes]) -> MachineConditions:
    """Return what machines have in common: quiet ones that are as the model says."""
    return replace(
        MachineConditions(
            read_mb_s=100.0,
            shadow_ms=30.0,
            noise_log_sd=0.0,
            outliers=0.0,
            unpack_log_sd=0.3,
            lab=False,
        ),
        **changes,
    )


def drawn(
    seed: int = 1, *, today: Setting | None = ZSTD, **changes: Unpack[Changes]
) -> TrueMachine:
    """Draw a machine like the table's; the same seed gives the same but for its conditions."""
    rng = np.random.default_rng(seed)
    return draw_machine(rng, TABLE, conditions(**changes), prior(), today=today)


def the_table_s(*, today: Setting = ZSTD, **changes: Unpack[Changes]) -> TrueMachine:
    """Return the very machine of the table, where L without the kernel and B2 take 100 ms each."""
    found = draw_machine(
        np.random.default_rng(1),
        TABLE,
        conditions(**changes),
        prior(),
        today=today,
        like_table=True,
    )
    return replace(found, fixed_ms=100.0, rest_ms=100.0, kernel_mb=10.0)


def prior() -> Machine:
    """Return what is known of any machine."""
    return unknown_machine()


def campaign(
    boots: int,
    *,
    outcome: Outcome = Outcome.SWITCH,
    stated: float = 0.99,
    right: bool = True,
    regret_ms: float = 0.0,
    setting: Setting = LZ4,
    booted: Sequence[Setting] | None = None,
    best: Setting = LZ4,
) -> CampaignRun:
    """Return how a campaign ended; the tolerance is 10 ms."""
    return CampaignRun(
        boots=boots,
        outcome=outcome,
        setting=setting,
        stated=stated,
        regret_ms=regret_ms,
        tolerance_ms=10.0,
        right=right,
        order=(0,) * boots,
        booted=tuple(booted or (ZSTD,) * boots),
        best=best,
    )
