"""What a decision is made from, and the decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, inf, log
from statistics import median, stdev
from typing import TYPE_CHECKING

from initadvisor.advise.recommendation import LIKE_TODAY
from initadvisor.candidates.schedule import build_range
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Objective
from initadvisor.core.estimates import Evidence
from initadvisor.decide.cost import CandidateFacts, Outcome, Quantity
from initadvisor.decide.decision import Thresholds, decide, decide_by_size
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from initadvisor.image.contents import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.advise.machine import Knowledge
    from initadvisor.candidates.schedule import BuildRange
    from initadvisor.candidates.search_space import Candidate
    from initadvisor.core.config import Config
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.data.tables import CalibrationTable
    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import Calibration, Decision
    from initadvisor.decide.next_boot import BootLimits
    from initadvisor.decide.posterior.posterior import PosteriorCosts
    from initadvisor.decide.upgrades import UpgradePace
    from initadvisor.host.hardware import Memory
    from initadvisor.image.contents import Lint
    from initadvisor.lab.evidence import LabEvidence
    from initadvisor.target.disk import Disk
    from initadvisor.target.kernel_room import KernelRoom


_LEAST_LOG_SD = 0.03
"""However alike the samples of one run are, another run differs by this much."""

_ANYTHING_MS = 1e9
"""More than any build adds to a boot; infinity has no mean."""

_BUSY_LOG_SD = 0.3
"""How far a time is off that was taken while others used all processors: they share caches, and on
many the arithmetic of a core."""

_SAMPLED_LOG_SD = 0.1
"""How far the time to decompress the whole is from that of a sample, grown by their sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacking:
    """What is known of the time to unpack, by the digest of the image.

    ``bench_ms``: samples of user-space decompression; ``table``: how a kernel's compares with that;
    ``lab``: what kernels in virtual machines took, which counts for more. ``slowness``: what user
    space takes on this processor, as a multiple of what it took on the calibrated one.
    """

    bench_ms: Mapping[str, Sequence[float]]
    table: CalibrationTable
    lab: LabEvidence
    slowness: float = 1.0

    def compared(self, candidates: Sequence[Candidate], unpacked_bytes: int) -> Unpacking:
        """Return the same with the slowness that the candidates' times in user space tell."""
        unpacked_mb = max(unpacked_bytes, 1) / 1e6
        ratios = [
            median(samples_ms) / unpacked_mb / self._row(candidate).user_ms_per_mb
            for candidate in candidates
            if candidate.codec is not Codec.CAT and (samples_ms := self._samples_ms(candidate))
        ]
        return replace(self, slowness=median(ratios)) if ratios else self

    def decompress_ms(self, candidate: Candidate) -> Quantity:
        """Return D: another kernel's, where it unpacked the image, else scaled user-space time.

        What all images of its codec share of the error is not in it: see ``codec_log_sd``.
        """
        if measured := self.lab.decompress_ms.get(candidate.digest):
            return measured
        if candidate.codec is Codec.CAT:
            return Quantity(median=0.0, source="not compressed")
        sampled = _SAMPLED_LOG_SD if candidate.sampled else 0.0
        busy = _BUSY_LOG_SD * candidate.sampled.busy_part if candidate.sampled else 0.0
        return self.scaled(
            self._samples_ms(candidate),
            self._row(candidate),
            buffer_mb=candidate.buffer_bytes / 1e6,
            log_sd=hypot(sampled, busy),
        )

    def scaled(
        self,
        samples_ms: Sequence[float],
        row: Calibration,
        *,
        buffer_mb: float,
        log_sd: float = 0.0,
    ) -> Quantity:
        """Return what a kernel takes for what user space took so long for, within ``log_sd``.

        ``buffer_mb``: the memory that it maps to do so.
        """
        spread = stdev(log(sample) for sample in samples_ms) if len(samples_ms) > 1 else 0.0
        return Quantity(
            median=median(samples_ms) * row.ratio
            + buffer_mb * self.table.buffer_ms_per_mb * self.slowness,
            log_sd=hypot(max(spread, _LEAST_LOG_SD), row.own_log_sd, log_sd),
            source=self.table.source,
        )

    def codec_log_sd(self, candidate: Candidate) -> float:
        """Return the error of D that it shares with all images of its codec.

        What a kernel was seen to take, of U or of D, shares none.
        """
        seen = self.lab.unpack_ms.keys() | self.lab.decompress_ms.keys()
        if candidate.codec is Codec.CAT or candidate.digest in seen:
            return 0.0
        return self._row(candidate).log_sd

    def _samples_ms(self, candidate: Candidate) -> Sequence[float]:
        sampled = candidate.sampled
        return sampled.decompress_ms if sampled else self.bench_ms[candidate.digest]

    def _row(self, candidate: Candidate) -> Calibration:
        return self.table.row(candidate.codec, far=candidate.far)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInput:
    """Everything a decision is made from.

    ``candidates``: the contenders, today's first. ``verdicts`` go by the digest of the image.
    ``pace``: over how many boots a build is spread. ``memory``: that of the machine the images are
    built on, ``limits``: what of them may be booted to learn from; None where the images are not
    this machine's, so that no boot or build of it tells anything.
    """

    candidates: Sequence[Candidate]
    unpacking: Unpacking
    verdicts: Mapping[str, Lint]
    disk: Disk
    knowledge: Knowledge
    boots: Sequence[BootEvidence]
    config: Config
    pace: UpgradePace
    memory: Memory | None
    limits: BootLimits | None
    seed: int
    room: KernelRoom | None = None

    @property
    def thresholds(self) -> Thresholds:
        """When a difference counts."""
        return Thresholds(
            tolerance_ms=self.config.tolerance_ms,
            tolerance_fraction=self.config.tolerance_fraction,
            certainty=self.config.certainty,
        )

    @property
    def by_size(self) -> bool:
        """Whether sizes decide, whatever they cost in time."""
        return self.config.objective is Objective.SIZE

    @property
    def todays_build_open(self) -> bool:
        """Whether the objective counts what building today's image takes, and that is not known."""
        today = self.candidates[0]
        return (
            self.config.objective is Objective.BALANCED
            and today.cost is None
            and today.codec is not Codec.CAT
        )

    @property
    def todays_build(self) -> BuildRange | None:
        """What building today's image took, if nobody did; None where nothing tells."""
        today, *others = self.candidates
        return build_range(
            today.setting,
            [(c.setting, c.cost.build_cpu_s) for c in others if c.cost],
            like={c.setting for c in others if c.like_today},
        )

    @property
    def todays_build_off_ms(self) -> tuple[float, float]:
        """How much less, and how much more, than counted building today's adds to a boot, in ms.

        0 where that is known, and where nothing bounds it.
        """
        spread = self.todays_build if self.todays_build_open else None
        if spread is None:
            return 0.0, 0.0
        a_boot = 1000 / self.pace.boots
        return (
            (spread.middle_s - spread.least_s) * a_boot,
            (spread.most_s - spread.middle_s) * a_boot,
        )

    def widened(self, saving_ms: Estimate) -> Estimate:
        """Return a saving against today's image with what its build may take in the interval."""
        less_ms, more_ms = self.todays_build_off_ms
        return replace(saving_ms, low=saving_ms.low - less_ms, high=saving_ms.high + more_ms)

    def fits(self, candidate: Candidate) -> bool | None:
        """Tell whether the image has room beside today's, as replacing it safely needs.

        None where the room is not known.
        """
        if candidate.today:
            return True
        free_bytes = self.disk.free_bytes
        return None if free_bytes is None else candidate.largest_bytes <= free_bytes

    def more_kernels(self, candidate: Candidate) -> int | None:
        """Return how many more kernels fit on the boot partition after a switch to a candidate."""
        if self.room is None or candidate.today:
            return self.room.today if self.room else None
        today_bytes = round(self.candidates[0].size.median)
        return self.room.after_switch(today_bytes, round(candidate.largest_bytes))

    def unusable(self, candidate: Candidate) -> str | None:
        """Return why it is not advised: this machine cannot make it, or it may be today's image.

        A compressor that needs more memory than there is may be killed at the next kernel upgrade,
        which then has no image, whatever the objective.
        """
        cost = candidate.cost
        if candidate.like_today:
            return LIKE_TODAY
        if candidate.unusable or candidate.today or self.memory is None or cost is None:
            return candidate.unusable
        if cost.build_peak_bytes <= self.memory.total_bytes:
            return None
        return (
            f"its build needs {_mb(cost.build_peak_bytes)}, this machine has "
            f"{_mb(self.memory.total_bytes)}"
        )

    def notes(self, candidate: Candidate) -> tuple[str, ...]:
        """Return what is to be said of a contender."""
        unusable, cost = self.unusable(candidate), candidate.cost
        notes = (*candidate.notes, *((unusable,) if unusable else ()))
        if unusable or self.memory is None or cost is None:
            return notes
        if cost.build_peak_bytes <= self.memory.available_bytes:
            return notes
        return (
            *notes,
            f"its build needs {_mb(cost.build_peak_bytes)} of memory, of which this machine has "
            f"{_mb(self.memory.available_bytes)} free now",
        )


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """The decision, and what it was made from.

    ``evidence``: what the time to unpack each contender rests on; ``weakest``: the weakest of it
    that the decision rests on. ``hinges_on_build``: it is open only because it is not known what
    building today's image takes.
    """

    facts: tuple[CandidateFacts, ...]
    posterior_costs: PosteriorCosts
    decision: Decision
    evidence: tuple[Evidence, ...]
    weakest: Evidence
    hinges_on_build: bool = False

    def column(self, setting: Setting) -> int:
        """Return which of the contenders has a setting."""
        return [fact.setting for fact in self.facts].index(setting)


def decision_result(decision_input: DecisionInput) -> DecisionResult:
    """Price the contenders and decide."""
    facts = tuple(_facts(decision_input, candidate) for candidate in decision_input.candidates)
    given = sample_posterior_costs(
        decision_input.knowledge.machine, facts, decision_input.boots, seed=decision_input.seed
    )
    evidence = tuple(
        Evidence.BOOTS if own else decision_input.unpacking.lab.evidence(candidate.digest)
        for candidate, own in zip(decision_input.candidates, given.summary.own_boots, strict=True)
    )
    weakest = Evidence.weakest(
        of for fact, of in zip(facts, evidence, strict=True) if fact.eligible or fact is facts[0]
    )
    thresholds, booted = decision_input.thresholds, bool(given.summary.boots_used)
    if decision_input.by_size:
        held = decision = decide_by_size(
            given.draws, facts, baseline=0, thresholds=thresholds, source=str(weakest)
        )
    else:
        decision = decide(
            given.draws,
            facts,
            baseline=0,
            thresholds=thresholds,
            source=str(weakest),
            booted=booted,
        )
        held = _whatever_builds_take(decision_input, given, facts, decision)
    hinges_on_build, decision = held.outcome is not decision.outcome, held
    if decision.setting != facts[0].setting:
        decision = replace(decision, saving_ms=decision_input.widened(decision.saving_ms))
    if decision.leader != facts[0].setting:
        leader_ms = decision_input.widened(decision.leader_saving_ms)
        decision = replace(decision, leader_saving_ms=leader_ms)
    if decision.outcome is Outcome.SWITCH:
        # The gain does not depend on ruling out better candidates.
        of_setting = dict(zip([fact.setting for fact in facts], evidence, strict=True))
        weakest = Evidence.weakest((evidence[0], of_setting[decision.setting]))
        decision = replace(decision, saving_ms=replace(decision.saving_ms, source=str(weakest)))
    return DecisionResult(
        facts=facts,
        posterior_costs=given,
        decision=decision,
        evidence=evidence,
        weakest=weakest,
        hinges_on_build=hinges_on_build,
    )


def _whatever_builds_take(
    decision_input: DecisionInput,
    given: PosteriorCosts,
    facts: Sequence[CandidateFacts],
    decision: Decision,
) -> Decision:
    """Return the decision, open where another cost of building today's image would change it.

    Of a codec nothing is known of, that cost is anything from 0.
    """
    if not decision_input.todays_build_open:
        return decision
    spread = decision_input.todays_build
    ends_s = (spread.least_s, spread.most_s) if spread else (0.0, inf)
    extra_ms = given.draws.extra_ms

    def decided(today_ms: float, thresholds: Thresholds, *, booted: bool) -> Decision:
        extra = extra_ms.copy()
        extra[0] = today_ms
        return decide(
            replace(given.draws, extra_ms=extra),
            facts,
            baseline=0,
            thresholds=thresholds,
            source=decision.saving_ms.source,
            booted=booted,
        )

    ends = [
        decided(
            min(cpu_s * 1000 / decision_input.pace.boots, _ANYTHING_MS),
            decision_input.thresholds,
            booted=bool(given.summary.boots_used),
        )
        for cpu_s in ends_s
    ]
    if all((end.outcome, end.setting) == (decision.outcome, decision.setting) for end in ends):
        return replace(
            decision,
            probability=min(decision.probability, *(end.probability for end in ends)),
            best_probability=min(decision.best_probability, *(e.best_probability for e in ends)),
            best=decision.best and all(end.best for end in ends),
            settled=decision.settled and all(end.settled for end in ends),
            loss_ms=max(decision.loss_ms, *(end.loss_ms for end in ends)),
        )
    return decided(extra_ms[0], replace(decision_input.thresholds, certainty=inf), booted=False)


def _facts(decision_input: DecisionInput, candidate: Candidate) -> CandidateFacts:
    return CandidateFacts(
        setting=candidate.setting,
        digest=candidate.digest,
        size_mb=replace(candidate.size, median=candidate.size.median / 1e6),
        decompress_ms=decision_input.unpacking.decompress_ms(candidate),
        codec_log_sd=decision_input.unpacking.codec_log_sd(candidate),
        unpack_ms=decision_input.unpacking.lab.unpack_ms.get(candidate.digest),
        extra_ms=_build_ms(decision_input, candidate),
        eligible=decision_input.fits(candidate) is not False
        and decision_input.unusable(candidate) is None
        and decision_input.verdicts[candidate.digest].verdict is not Verdict.REFUSED,
    )


def _build_ms(decision_input: DecisionInput, candidate: Candidate) -> float:
    """Return a build's share of one boot, if the objective counts it."""
    if decision_input.config.objective is not Objective.BALANCED:
        return 0.0
    if candidate.cost is not None:
        return candidate.cost.build_cpu_s * 1000 / decision_input.pace.boots
    spread = decision_input.todays_build if candidate.today else None
    return spread.middle_s * 1000 / decision_input.pace.boots if spread else 0.0
