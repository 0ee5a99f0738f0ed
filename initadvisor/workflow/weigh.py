"""From what was measured to a decision and the rows that show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, log
from statistics import median, stdev
from typing import TYPE_CHECKING

from initadvisor.model.codec import Codec
from initadvisor.model.cost import CandidateFacts, Objective, Outcome, Quantity
from initadvisor.model.estimate import Evidence, SizeSource
from initadvisor.model.image import Verdict
from initadvisor.model.recommendation import Row
from initadvisor.stats.costs import draw_costs, summary
from initadvisor.stats.decision import Thresholds, decide, decide_by_size, savings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.model.config import Config
    from initadvisor.model.cost import Decision
    from initadvisor.model.image import Lint
    from initadvisor.stats.costs import Draws
    from initadvisor.workflow.contenders import Contender
    from initadvisor.workflow.disk import Disk
    from initadvisor.workflow.evidence import LabEvidence
    from initadvisor.workflow.knowledge import CalibrationTable
    from initadvisor.workflow.machine import Knowledge

_LEAST_LOG_SD = 0.03
"""However alike the samples of one run are, another run differs by this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacking:
    """What is known of the time to unpack, by the digest of the image.

    ``bench_ms``: samples of user-space decompression; ``table``: how a kernel's compares with that;
    ``lab``: what kernels in virtual machines took, which counts for more.
    """

    bench_ms: Mapping[str, Sequence[float]]
    table: CalibrationTable
    lab: LabEvidence

    def decompress_ms(self, contender: Contender) -> Quantity:
        """Return D: another kernel's, where it unpacked the image, else scaled user-space time."""
        digest = contender.stream.sha256
        if measured := self.lab.decompress_ms.get(digest):
            return measured
        return decompress_ms(contender.stream.codec, self.bench_ms[digest], self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The decision, the weakest evidence it rests on, and a row for each contender."""

    decision: Decision
    evidence: Evidence
    rows: tuple[Row, ...]


def weigh(
    field: Sequence[Contender],
    *,
    unpacking: Unpacking,
    verdicts: Mapping[str, Lint],
    disk: Disk,
    knowledge: Knowledge,
    config: Config,
    seed: int,
) -> Weighed:
    """Weigh the contenders, today's first; ``verdicts`` go by the digest of the image."""
    lab = unpacking.lab
    facts = [
        CandidateFacts(
            setting=contender.setting,
            size_mb=Quantity(median=contender.size_bytes / 1e6),
            decompress_ms=unpacking.decompress_ms(contender),
            unpack_ms=lab.unpack_ms.get(contender.stream.sha256),
            extra_ms=_build_ms(contender, field, config),
            eligible=_fits(contender, disk)
            and contender.unusable is None
            and verdicts[contender.stream.sha256].verdict is not Verdict.REFUSED,
        )
        for contender in field
    ]
    thresholds = Thresholds(
        tolerance_ms=config.tolerance_ms,
        tolerance_fraction=config.tolerance_fraction,
        certainty=config.certainty,
    )
    draws = draw_costs(knowledge.machine, facts, seed=seed)
    choose = decide_by_size if config.objective is Objective.SIZE else decide
    evidence = [lab.evidence(contender.stream.sha256) for contender in field]
    of_setting = dict(zip([fact.setting for fact in facts], evidence, strict=True))
    weakest = Evidence.weakest(
        of for fact, of in zip(facts, evidence, strict=True) if fact.eligible or fact is facts[0]
    )
    decision = choose(draws, facts, baseline=0, thresholds=thresholds, source=str(weakest))
    if decision.outcome is Outcome.SWITCH:
        # That no other candidate is better still is nothing the gain rests on.
        weakest = Evidence.weakest((evidence[0], of_setting[decision.setting]))
        decision = replace(decision, saving_ms=replace(decision.saving_ms, source=str(weakest)))
    rows = _rows(field, draws, verdicts, disk, lab, loader=knowledge.loader_mb_s.source)
    return Weighed(
        decision=decision,
        evidence=weakest,
        rows=tuple(sorted(rows, key=lambda row: row.total_ms.mean)),
    )


def decompress_ms(codec: Codec, samples_ms: Sequence[float], table: CalibrationTable) -> Quantity:
    """Return what a kernel is expected to take, from samples of user-space decompression."""
    if codec is Codec.CAT:
        return Quantity(median=0.0, source="not compressed")
    ratio = table.codecs[codec].ratio
    spread = stdev(log(sample) for sample in samples_ms) if len(samples_ms) > 1 else 0.0
    return Quantity(
        median=median(samples_ms) * ratio.median,
        log_sd=hypot(max(spread, _LEAST_LOG_SD), ratio.log_sd),
        source=ratio.source,
    )


def _build_ms(contender: Contender, field: Sequence[Contender], config: Config) -> float:
    """Return a build's share of one boot, if the objective counts it.

    An image that was found, not built, is taken to cost what its likeliest setting does: of the
    candidates with its codec, the one nearest to it in size.
    """
    if config.objective is not Objective.BALANCED:
        return 0.0
    alike = [c for c in field if c.candidate and c.stream.codec is contender.stream.codec]
    built = contender.candidate or min(
        (c.candidate for c in alike if c.candidate),
        key=lambda candidate: abs(candidate.size_bytes - contender.size_bytes),
        default=None,
    )
    return built.build_cpu_s * 1000 / config.boots_per_upgrade if built else 0.0


def _fits(contender: Contender, disk: Disk) -> bool:
    """Tell whether the image has room beside today's, as replacing it safely needs."""
    return contender.today or contender.size_bytes <= disk.free_bytes


def _rows(
    field: Sequence[Contender],
    draws: Draws,
    verdicts: Mapping[str, Lint],
    disk: Disk,
    lab: LabEvidence,
    *,
    loader: str,
) -> list[Row]:
    saving = savings(draws, 0)
    today = lab.evidence(field[0].stream.sha256)
    rows = []
    for column, contender in enumerate(field):
        evidence = lab.evidence(contender.stream.sha256)
        against_today = Evidence.weakest((today, evidence))
        built = contender.candidate
        notes = built.notes if built else ()
        rows.append(
            Row(
                setting=contender.setting,
                size_bytes=contender.size_bytes,
                size_source=SizeSource.BUILT,
                read_ms=summary(draws.read_ms[:, column], loader),
                unpack_ms=summary(draws.unpack_ms[:, column], lab.source(contender.stream.sha256)),
                total_ms=summary(draws.total_ms[:, column], str(evidence)),
                saving_ms=summary(saving[:, column], str(against_today)),
                build_s=built.build_s if built else None,
                build_cpu_s=built.build_cpu_s if built else None,
                build_peak_bytes=built.build_peak_bytes if built else None,
                fits=_fits(contender, disk),
                lint=verdicts[contender.stream.sha256],
                notes=(*notes, contender.unusable) if contender.unusable else notes,
            )
        )
    return rows
