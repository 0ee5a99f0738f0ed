"""From what was measured to a decision and the rows that show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, log
from statistics import median, stdev
from typing import TYPE_CHECKING

from initadvisor.model.boot_evidence import Shared
from initadvisor.model.codec import Codec
from initadvisor.model.cost import CandidateFacts, Objective, Outcome, Quantity
from initadvisor.model.estimate import Evidence
from initadvisor.model.image import Verdict
from initadvisor.model.recommendation import Row
from initadvisor.stats.costs import summary
from initadvisor.stats.decision import Thresholds, chances, decide, decide_by_size, savings
from initadvisor.stats.given import draw_costs_given

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.model.boot_evidence import BootEvidence, Lessons
    from initadvisor.model.config import Config
    from initadvisor.model.cost import Decision
    from initadvisor.model.image import Lint
    from initadvisor.model.setting import Setting
    from initadvisor.stats.costs import Draws
    from initadvisor.workflow.contenders import Contender
    from initadvisor.workflow.disk import Disk
    from initadvisor.workflow.evidence import LabEvidence
    from initadvisor.workflow.knowledge import CalibrationTable
    from initadvisor.workflow.machine import Knowledge

_LEAST_LOG_SD = 0.03
"""However alike the samples of one run are, another run differs by this much."""


_SAMPLED_LOG_SD = 0.1
"""How far the time to decompress the whole is from that of a sample, grown by their sizes."""

_WORTH_BUILDING = 0.02
"""A setting that is the best with less probability than this will not be recommended."""


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
        if measured := self.lab.decompress_ms.get(contender.digest):
            return measured
        sampled = contender.sampled
        samples_ms = sampled.decompress_ms if sampled else self.bench_ms[contender.digest]
        found = decompress_ms(contender.codec, samples_ms, self.table)
        if sampled is None:
            return found
        return replace(found, log_sd=hypot(found.log_sd, _SAMPLED_LOG_SD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The decision, the weakest evidence it rests on, and a row for each contender.

    ``unbuilt``: the settings without a candidate that may be the best, the likeliest first. Only
    they are worth building.
    """

    decision: Decision
    evidence: Evidence
    rows: tuple[Row, ...]
    lessons: Lessons
    unbuilt: tuple[Setting, ...] = ()


def weigh(
    field: Sequence[Contender],
    *,
    unpacking: Unpacking,
    verdicts: Mapping[str, Lint],
    disk: Disk,
    knowledge: Knowledge,
    boots: Sequence[BootEvidence],
    config: Config,
    seed: int,
) -> Weighed:
    """Weigh the contenders, today's first; ``verdicts`` go by the digest of the image."""
    lab = unpacking.lab
    facts = [
        CandidateFacts(
            setting=contender.setting,
            digest=contender.digest,
            size_mb=replace(contender.size, median=contender.size.median / 1e6),
            decompress_ms=unpacking.decompress_ms(contender),
            unpack_ms=lab.unpack_ms.get(contender.digest),
            extra_ms=_build_ms(contender, field, config),
            eligible=_fits(contender, disk)
            and contender.unusable is None
            and verdicts[contender.digest].verdict is not Verdict.REFUSED,
        )
        for contender in field
    ]
    thresholds = Thresholds(
        tolerance_ms=config.tolerance_ms,
        tolerance_fraction=config.tolerance_fraction,
        certainty=config.certainty,
    )
    given = draw_costs_given(knowledge.machine, facts, boots, seed=seed)
    draws = given.draws
    choose = decide_by_size if config.objective is Objective.SIZE else decide
    evidence = [
        Evidence.BOOTS if own else lab.evidence(contender.digest)
        for contender, own in zip(field, given.lessons.own_boots, strict=True)
    ]
    of_setting = dict(zip([fact.setting for fact in facts], evidence, strict=True))
    weakest = Evidence.weakest(
        of for fact, of in zip(facts, evidence, strict=True) if fact.eligible or fact is facts[0]
    )
    decision = choose(draws, facts, baseline=0, thresholds=thresholds, source=str(weakest))
    if decision.outcome is Outcome.SWITCH:
        # That no other candidate is better still is nothing the gain rests on.
        weakest = Evidence.weakest((evidence[0], of_setting[decision.setting]))
        decision = replace(decision, saving_ms=replace(decision.saving_ms, source=str(weakest)))
    loader = given.lessons.now(Shared.LOADER).source
    rows = _rows(field, draws, verdicts, disk, lab, evidence, loader=loader)
    return Weighed(
        decision=decision,
        evidence=weakest,
        rows=tuple(sorted(rows, key=lambda row: row.total_ms.mean)),
        lessons=given.lessons,
        unbuilt=_unbuilt(field, facts, draws, decision, by_size=config.objective is Objective.SIZE),
    )


def _unbuilt(
    field: Sequence[Contender],
    facts: Sequence[CandidateFacts],
    draws: Draws,
    decision: Decision,
    *,
    by_size: bool,
) -> tuple[Setting, ...]:
    """Return what is only estimated and may win, and what is said to lead."""
    chance = chances(draws, facts, by_size=by_size)
    named = {decision.setting, decision.leader}
    order = sorted(range(len(field)), key=lambda column: -chance[column])
    return tuple(
        field[column].setting
        for column in order
        if field[column].sampled
        and (chance[column] >= _WORTH_BUILDING or field[column].setting in named)
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
    cost = contender.cost
    if cost is None:
        alike = [c for c in field if c.cost and c.codec is contender.codec]
        likeliest = min(
            alike, key=lambda c: abs(c.size.median - contender.size.median), default=contender
        )
        cost = likeliest.cost
    return cost.build_cpu_s * 1000 / config.boots_per_upgrade if cost else 0.0


def _fits(contender: Contender, disk: Disk) -> bool:
    """Tell whether the image has room beside today's, as replacing it safely needs."""
    return contender.today or contender.largest_bytes <= disk.free_bytes


def _rows(
    field: Sequence[Contender],
    draws: Draws,
    verdicts: Mapping[str, Lint],
    disk: Disk,
    lab: LabEvidence,
    evidence: Sequence[Evidence],
    *,
    loader: str,
) -> list[Row]:
    saving = savings(draws, 0)
    rows = []
    for column, contender in enumerate(field):
        own = evidence[column]
        against_today = Evidence.weakest((evidence[0], own))
        unpack = str(own) if own is Evidence.BOOTS else lab.source(contender.digest)
        cost, notes = contender.cost, contender.notes
        rows.append(
            Row(
                setting=contender.setting,
                size_bytes=int(contender.size.median),
                size_log_sd=contender.size.log_sd,
                size_source=contender.size_source,
                read_ms=summary(draws.read_ms[:, column], loader),
                unpack_ms=summary(draws.unpack_ms[:, column], unpack),
                total_ms=summary(draws.total_ms[:, column], str(own)),
                saving_ms=summary(saving[:, column], str(against_today)),
                build_s=cost.build_s if cost else None,
                build_cpu_s=cost.build_cpu_s if cost else None,
                build_peak_bytes=cost.build_peak_bytes if cost else None,
                fits=_fits(contender, disk),
                lint=verdicts[contender.digest],
                notes=(*notes, contender.unusable) if contender.unusable else notes,
                unusable=contender.unusable,
            )
        )
    return rows
