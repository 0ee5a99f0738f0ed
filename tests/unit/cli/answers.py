"""A made-up answer of ``recommend``, to be varied."""

from __future__ import annotations

from pathlib import Path

from initadvisor.model.boot_evidence import Shared
from initadvisor.model.cost import (
    Action,
    DecidingFact,
    Decision,
    Factor,
    Objective,
    Outcome,
    Stretch,
)
from initadvisor.model.estimate import Estimate, Evidence, SizeSource
from initadvisor.model.image import Lint, Verdict
from initadvisor.model.recommendation import Assumption, Recommendation, Row, Storage
from initadvisor.model.setting import Setting
from initadvisor.model.upgrade_pace import upgrade_pace

ZSTD, LZ4 = Setting.parse("zstd"), Setting.parse("lz4 -9")


def figure(mean: float, low: float, high: float) -> Estimate:
    """Return an estimate."""
    return Estimate(mean=mean, low=low, high=high, source="a test")


def row(
    setting: Setting,
    *,
    size_mb: float,
    saving: Estimate,
    lint: Lint | None = None,
    size_log_sd: float = 0.0,
) -> Row:
    """Return a row whose other figures do not matter; one with an uncertain size was sampled."""
    return Row(
        setting=setting,
        size_bytes=int(size_mb * 1e6),
        size_log_sd=size_log_sd,
        size_source=SizeSource.SAMPLED if size_log_sd else SizeSource.BUILT,
        read_ms=figure(100, 10, 1000),
        unpack_ms=figure(200, 150, 260),
        total_ms=figure(900, 300, 12_000),
        saving_ms=saving,
        build_s=1.5,
        build_cpu_s=2.5,
        build_peak_bytes=60_000_000,
        fits=True,
        lint=lint or Lint(verdict=Verdict.OK),
    )


def decision(outcome: Outcome, *, saving: Estimate) -> Decision:
    """Return a decision between zstd, today's, and lz4 -9."""
    switch = outcome is Outcome.SWITCH
    return Decision(
        action=Action.SWITCH if switch else Action.KEEP,
        outcome=outcome,
        setting=LZ4 if switch else ZSTD,
        probability=0.97 if outcome is not Outcome.UNDECIDED else 0.3,
        best_probability=0.96 if outcome is not Outcome.UNDECIDED else 0.3,
        settled=outcome is not Outcome.UNDECIDED,
        saving_ms=saving if switch else figure(0, 0, 0),
        leader=LZ4,
        leader_probability=0.97 if switch else 0.6,
        leader_saving_ms=saving,
    )


LOADER_DECIDES = DecidingFact(
    factor=Factor.LOADER,
    settled=0.6,
    stretches=(
        Stretch(low=5, high=152.3, setting=ZSTD),
        Stretch(low=152.3, high=1234.5, setting=LZ4),
        Stretch(low=1234.5, high=50_000, setting=Setting.parse("cat")),
    ),
)


def answer(
    chosen: Decision,
    *,
    objective: Objective = Objective.BOOT,
    sample: bool = False,
    whole_boot_ms: float | None = None,
    lint: Lint | None = None,
    sampled: bool = False,
    deciding: DecidingFact | None = None,
) -> Recommendation:
    """Return a whole answer around a decision; ``sampled``: lz4 -9 was not built."""
    return Recommendation(
        image=Path("/boot/initrd.img"),
        sample=sample,
        generator="dracut",
        kernel_release="6.1.0-1-amd64",
        baseline=ZSTD,
        baseline_source="default of dracut 059",
        objective=objective,
        certainty=0.95,
        evidence=Evidence.BENCH,
        decision=chosen,
        storage=Storage(
            device="sda",
            kind="sata",
            read_mb_s=figure(500, 480, 520),
            loader_mb_s=figure(1000, 50, 5000),
            free_bytes=10**9,
            room_on="/boot",
        ),
        unpacked_bytes=120_000_000,
        whole_boot_ms=whole_boot_ms,
        pace=upgrade_pace(None, None),
        rows=(
            row(
                LZ4,
                size_mb=30,
                saving=chosen.leader_saving_ms,
                lint=lint,
                size_log_sd=0.01 if sampled else 0.0,
            ),
            row(ZSTD, size_mb=40, saving=figure(0, 0, 0)),
        ),
        unbuilt=(LZ4,) if sampled else (),
        deciding=deciding,
        assumptions=(Assumption(about=Shared.SHADOW, text="the shadow is unknown"),),
        warnings=("the disk is virtual",),
    )
