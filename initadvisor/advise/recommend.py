"""The main job: from an image to a recommendation, with what it rests on.

What an answer rests on is collected once; candidates are ranked, and again after builds and the
lab.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from initadvisor.advise.boots import Boots, boot_context, recorded_boots, what_was_learnt
from initadvisor.advise.contents import ContentsPricing, contents_cost, largest_excess
from initadvisor.advise.decision_input import DecisionInput, Unpacking, decision_result
from initadvisor.advise.kernel_cost import KernelPricing, kernel_cost
from initadvisor.advise.machine import AS_GIVEN, know_machine, unpacking_assumptions
from initadvisor.advise.ranking import explain, summarise
from initadvisor.advise.recommendation import Assumption, Recommendation, Storage
from initadvisor.advise.unused import unused_cost
from initadvisor.candidates.build import BuildObserver, build_candidates
from initadvisor.candidates.decompression import ROUNDS, BenchObserver, decompression_ms, remember
from initadvisor.candidates.sampler import SampleObserver
from initadvisor.candidates.schedule import UNKNOWN_BUILD
from initadvisor.candidates.search_space import (
    estimated_candidate_set,
    open_search_space,
)
from initadvisor.core.config import Objective
from initadvisor.core.errors import InitadvisorError, UnsafeError, side_fact
from initadvisor.data.tables import calibration
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.next_boot import BootLimits
from initadvisor.decide.upgrades import upgrade_pace
from initadvisor.host.configuration import CONFIG_PATH, load_config
from initadvisor.host.hardware import memory
from initadvisor.image.contents import Verdict
from initadvisor.lab.evidence import lab_evidence, lint_all, verdicts_on
from initadvisor.lab.observing import LabObserver
from initadvisor.target.context import what_matters_more
from initadvisor.target.disk import examine_disk
from initadvisor.target.kernel_config import find_kernel_config, read_kernel_config
from initadvisor.target.kernel_room import kernel_room
from initadvisor.target.target import find_target, sample_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.advise.contents import (
        ContentsCost,
        ContentVariantCosts,
        EstimatedVariant,
        UnusedCost,
    )
    from initadvisor.advise.decision_input import DecisionResult
    from initadvisor.advise.ranking import RankedCandidates
    from initadvisor.candidates.search_space import CandidateSet, SearchSpace
    from initadvisor.core.config import Config
    from initadvisor.core.settings import Setting
    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.contents import Lint
    from initadvisor.image.kernel import KernelConfig
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.target.kernel_room import KernelRoom
    from initadvisor.target.target import Target
    from initadvisor.vm.machine import VirtualMachine


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asks for; fields as the options of ``initadvisor recommend``."""

    image: Path | None = None
    sample: bool = False
    kernel_config: Path | None = None
    read_speed_mb_s: float | None = None
    overlap_ms: float | None = None
    objective: Objective | None = None
    only: tuple[Setting, ...] = ()
    everything: bool = False
    build: bool = False
    lab: bool = False
    explain: bool = False


class RecommendObserver(BuildObserver, SampleObserver, BenchObserver, LabObserver, Protocol):
    """Receives progress events."""


_SEED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The contenders as they are known now, and what comes of weighing them."""

    candidate_set: CandidateSet
    decision_input: DecisionInput
    decision_result: DecisionResult
    ranked: RankedCandidates


class CandidateEvaluation:
    """Everything an answer rests on; what does not depend on the candidates is found out once."""

    def __init__(
        self,
        host: Host,
        request: Request,
        config: Config,
        search_space: SearchSpace,
        observer: RecommendObserver,
        *,
        sample: bool,
    ) -> None:
        source, release = search_space.source, search_space.kernel_release
        self._host = host
        self.request = request
        self._config = config
        self._search_space = search_space
        self._observer = observer
        self._build_gaps: tuple[SkippedSetting, ...] = ()
        self.kernel_config = _kernel_config(host, request, release)
        installed = search_space.generator.images(host) if source.installed else ()
        observer.doing("measuring how fast the disk reads")
        self.disk = examine_disk(host, _loaded(source.path, installed), sample=sample)
        self.gaps: list[str] = []
        self.room = side_fact(
            lambda: kernel_room(host, installed), "the room for kernels", self.gaps
        )
        self.context = boot_context(host, release)
        self.table = calibration(host)
        self.boots = recorded_boots(host, release) if source.installed else Boots()
        self.pace = upgrade_pace(config.boots_per_upgrade, self.boots.pace)
        # What is another machine's image is built and booted there.
        self._memory = memory(host) if source.installed else None
        self._limits = (
            BootLimits(excess_ms=config.max_excess_s * 1000, everything=request.everything)
            if source.installed
            else None
        )
        self.knowledge = know_machine(
            read_mb_s=self.disk.read_mb_s,
            link_mb_s=self.disk.link_mb_s,
            given_read_mb_s=config.read_speed_mb_s,
            given_overlap_ms=config.overlap_ms,
            unpacked_bytes=source.contents.unpacked_bytes,
            context=self.context,
            table=self.table,
            read_given=_given_by(request.read_speed_mb_s),
            overlap_given=_given_by(request.overlap_ms),
        )

    def build(self, candidate_set: CandidateSet, settings: Sequence[Setting]) -> None:
        """Build those of the field's estimated candidates that have these settings.

        What cannot be built is not weighed any more.
        """
        if not settings:
            return
        # A row may be named by its level, which is another command line (zstd -3 for zstd).
        planned = {c.setting: c.sampled.setting for c in candidate_set.candidates if c.sampled}
        result = build_candidates(
            self._host,
            self._search_space.generator,
            self._search_space.source,
            [planned[setting] for setting in settings],
            observer=self._observer,
            jobs=self._config.jobs,
            cache_limit_bytes=self._config.cache_limit_bytes,
        )
        self._build_gaps += result.skipped
        failed = {skipped.setting for skipped in result.skipped}
        kept = tuple(setting for setting in self._search_space.settings if setting not in failed)
        self._search_space = replace(self._search_space, settings=kept)

    def rank(self) -> Answer:
        """Weigh the candidates that are there, and estimates of the others."""
        candidate_set = estimated_candidate_set(
            self._host, self._search_space, observer=self._observer
        )
        # One for each setting: what failed last says why.
        skipped = {one.setting: one for one in (*candidate_set.skipped, *self._build_gaps)}
        candidate_set = replace(candidate_set, skipped=tuple(skipped.values()))
        decision_input = self._decision_input(candidate_set)
        todays_digest = self._search_space.source.initrd_sha256
        _require_comparison(decision_input.verdicts[todays_digest], candidate_set)
        self._observer.doing("weighing the candidates")
        result = decision_result(decision_input)
        return Answer(
            candidate_set=candidate_set,
            decision_input=decision_input,
            decision_result=result,
            ranked=summarise(decision_input, result),
        )

    def contents_cost(
        self, *, other_kernels: bool, unused: bool, variants: bool, estimate: bool
    ) -> ContentsCost:
        """Share out what today's image costs; nothing is compressed for that.

        With ``other_kernels`` its kernel is, with every codec, to say what that would cost;
        ``unused`` tells what of the image no boot used, ``variants`` what it costs with less in it,
        ``estimate`` about that.
        """
        alone = replace(self._search_space, settings=())
        decision_input = self._decision_input(
            estimated_candidate_set(self._host, alone, observer=self._observer)
        )
        source = self._search_space.source
        result = decision_result(decision_input)
        gaps: list[str] = []
        kernel = side_fact(
            lambda: kernel_cost(
                self._host,
                source,
                self._search_space.kernel_release,
                KernelPricing(unpacking=decision_input.unpacking, result=result, seed=_SEED),
                compress=other_kernels,
                observer=self._observer,
            ),
            "what the kernel costs",
            gaps,
        )
        if other_kernels and kernel is None and not gaps:
            gaps.append("what other codecs of its kernel cost is not known: it has none here")
        pricing = ContentsPricing(source.contents, result)
        used = (
            side_fact(
                lambda: unused_cost(self._host, source, self._search_space.kernel_release, pricing),
                "what of it boots used",
                gaps,
            )
            if unused or variants or estimate
            else None
        )
        about = (
            side_fact(
                lambda: self._estimated_variants(pricing, used),
                "what less in it would save",
                gaps,
            )
            if variants or estimate
            else None
        )
        return contents_cost(
            source.path,
            source.contents,
            pricing,
            kernel=kernel,
            unused=used if unused else None,
            variants=self._content_variants(pricing, used) if variants else None,
            estimates=about,
            warnings=(
                *gaps,
                *(used.warnings if used else ()),
                *self.disk.warnings,
                *(self.disk.speed_warnings if self._config.read_speed_mb_s is None else ()),
                *self.boots.warnings,
            ),
        )

    def _content_variants(
        self, pricing: ContentsPricing, used: UnusedCost | None
    ) -> ContentVariantCosts:
        from initadvisor.advise.content_variants import (
            content_variant_costs,  # takes long; most answers need none of it
        )

        return content_variant_costs(
            self._host,
            self._search_space.generator,
            self._search_space.source,
            pricing,
            unused=_module_names(used),
            observer=self._observer,
        )

    def _estimated_variants(
        self, pricing: ContentsPricing, used: UnusedCost | None
    ) -> tuple[EstimatedVariant, ...]:
        from initadvisor.advise.content_estimates import (
            estimated_variants,  # most answers need none of it
        )

        return estimated_variants(
            self._host,
            self._search_space.generator,
            self._search_space.source,
            self._search_space.kernel_release,
            pricing,
            unused=_module_names(used),
        )

    def _decision_input(self, candidate_set: CandidateSet) -> DecisionInput:
        host, search_space = self._host, self._search_space
        verdicts = verdicts_on(
            host,
            search_space.source,
            candidate_set.candidates,
            config=self.kernel_config,
            release=search_space.kernel_release,
        )
        lab = lab_evidence(host, candidate_set.candidates, search_space.kernel_release)
        unpacking = Unpacking(
            bench_ms=self._times_ms(candidate_set), table=self.table, lab=lab
        ).compared(candidate_set.candidates, search_space.source.contents.unpacked_bytes)
        return DecisionInput(
            candidates=candidate_set.candidates,
            unpacking=unpacking,
            verdicts=verdicts,
            disk=self.disk,
            knowledge=self.knowledge.slower(unpacking.slowness),
            boots=self.boots.evidence,
            config=self._config,
            pace=self.pace,
            memory=self._memory,
            limits=self._limits,
            seed=_SEED,
            room=self.room,
        )

    def run_lab(self, candidate_set: CandidateSet, machine: VirtualMachine) -> None:
        """Have kernels unpack what they would not refuse; the store then has what they took."""
        from initadvisor.lab.timing import Rounds, run_lab_for  # most answers need none of it

        verdicts = lint_all(
            self._host,
            candidate_set.source,
            candidate_set.candidates,
            config=self.kernel_config,
            release=candidate_set.kernel_release,
        )
        run_lab_for(
            self._host,
            candidate_set.source,
            [
                c
                for c in candidate_set.candidates
                if verdicts[c.digest].verdict is not Verdict.REFUSED
            ],
            machine,
            rounds=Rounds(
                tolerance_ms=self._config.tolerance_ms,
                tolerance_fraction=self._config.tolerance_fraction,
            ),
            observer=self._observer,
        )

    def _times_ms(self, candidate_set: CandidateSet) -> Mapping[str, Sequence[float]]:
        """Time user-space decompression of what is there; once for an answer without builds."""
        source, streams = (
            candidate_set.source,
            [c.stream for c in candidate_set.candidates if c.stream],
        )
        if source.unpack_cpu_ms:
            remember(self._host, streams[0], source.unpack_cpu_ms)
        return decompression_ms(
            self._host,
            streams,
            rounds=ROUNDS if self.request.build else 1,
            seed=_SEED,
            observer=self._observer,
        )


def _loaded(path: Path, installed: Sequence[InstalledImage]) -> Path:
    """Return the file that a loader reads: the copy of an image, where kernel-install(8) made one.

    With Debian's installer the one is on the ESP, the other on the root file system.
    """
    return next((one.paths[-1] for one in installed if one.path == path), path)


def _kernel_config(host: Host, request: Request, kernel: str | None) -> KernelConfig | None:
    if request.kernel_config:
        return read_kernel_config(request.kernel_config)
    return find_kernel_config(host, kernel) if kernel else None


def _require_comparison(today: Lint, candidate_set: CandidateSet) -> None:
    """Raise where no advice can be given: today's image is refused, or nothing is beside it."""
    source = candidate_set.source
    if today.verdict is Verdict.REFUSED:
        msg = (
            f"cannot weigh {source.path}: its kernel would refuse it as it is "
            f"({'; '.join(today.reasons)})"
        )
        raise UnsafeError(msg, hint="is it the image, and --kernel-config the kernel, that boots?")
    if len(candidate_set.candidates) == 1:
        skipped_settings = "; ".join(
            f"{skipped.setting}: {skipped.reason}" for skipped in candidate_set.skipped
        )
        msg = f"nothing to compare {source.path} with" + (
            f": {skipped_settings}" if skipped_settings else ""
        )
        raise InitadvisorError(msg, hint="install compressors, or name other settings with --only")


def recommend(host: Host, request: Request, *, observer: RecommendObserver) -> Recommendation:
    """Estimate or build, measure, weigh, and decide.

    Candidates that were not built are estimated from a sample; with ``build`` those that may be the
    best are built, and all are weighed again. With ``explain`` it is said why.

    Raises ``InitadvisorError`` (with its exit code) where there is no image, it cannot be read or
    is none, nothing can be compared, or the lab is asked for and no virtual machine works.
    """
    config = _as_asked(load_config(host), request)
    target = sample_target(host) if request.sample else find_target(host, request.image)
    with (
        open_search_space(
            host,
            target,
            config,
            only=request.only,
            everything=request.everything,
            observer=observer,
        ) as search_space,
        _lab_machine(host, search_space, request) as machine,
    ):
        evaluation = CandidateEvaluation(
            host, request, config, search_space, observer, sample=target.sample
        )
        answer = evaluation.rank()
        if request.build:
            evaluation.build(answer.candidate_set, answer.ranked.unbuilt)
            answer = evaluation.rank()
        if machine:
            evaluation.run_lab(answer.candidate_set, machine)
            answer = evaluation.rank()
        found = replace(
            _recommendation(host, target, config, evaluation, answer),
            only_asked=bool(request.only),
        )
        if request.explain:
            found = replace(
                found, explanation=explain(answer.decision_input, answer.decision_result)
            )
        return found


def _module_names(used: UnusedCost | None) -> list[str]:
    files = used.files if used else ()
    return [file.names[0] for file in files if file.release is not None]


def price_contents(
    host: Host,
    image: Path | None,
    *,
    other_kernels: bool = False,
    unused: bool = False,
    variants: bool = False,
    estimate: bool = False,
    observer: RecommendObserver,
) -> ContentsCost:
    """Say what the files of an image, and its kernel, cost each boot; of this machine's by default.

    ``CandidateEvaluation.contents_cost`` has what can be asked for besides. Raises
    ``InitadvisorError`` (with its exit code) where it cannot be read or is none.
    """
    config, request = load_config(host), Request(image=image)
    target = find_target(host, image)
    with open_search_space(
        host,
        target,
        config,
        only=(),
        everything=False,
        observer=observer,
        to_compress=False,
        with_modules=unused or variants or estimate,
    ) as search_space:
        return CandidateEvaluation(
            host, request, config, search_space, observer, sample=False
        ).contents_cost(
            other_kernels=other_kernels, unused=unused, variants=variants, estimate=estimate
        )


@contextlib.contextmanager
def _lab_machine(
    host: Host, search_space: SearchSpace, request: Request
) -> Iterator[VirtualMachine | None]:
    """Give what the lab runs in, if the lab is asked for; raises what ``machine_for`` does."""
    if not request.lab:
        yield None
        return
    from initadvisor.lab.timing import timing_machine
    from initadvisor.vm.engines import Wanted  # takes long; most answers need none of it

    with timing_machine(host, Wanted(release=search_space.kernel_release)) as machine:
        yield machine


def _as_asked(config: Config, request: Request) -> Config:
    """Return the configuration with what the request says instead."""
    speed, overlap = request.read_speed_mb_s, request.overlap_ms
    return replace(
        config,
        objective=request.objective or config.objective,
        read_speed_mb_s=config.read_speed_mb_s if speed is None else speed,
        overlap_ms=config.overlap_ms if overlap is None else overlap,
    )


def _recommendation(
    host: Host, target: Target, config: Config, evaluation: CandidateEvaluation, answer: Answer
) -> Recommendation:
    candidate_set, ranked = answer.candidate_set, answer.ranked
    disk, lab = evaluation.disk, answer.decision_input.unpacking.lab
    source = candidate_set.source
    excess = largest_excess(
        contents_cost(
            source.path,
            source.contents,
            ContentsPricing(source.contents, answer.decision_result),
        ),
        max(row.saving_ms.middle for row in ranked.rows),
    )
    context = what_matters_more(host, candidate_set.generator, source, excess)
    said = candidate_set.baseline.warnings
    return Recommendation(
        image=source.path,
        image_sha256=source.sha256,
        sample=target.sample,
        generator=candidate_set.generator.NAME,
        kernel_release=candidate_set.kernel_release,
        baseline=candidate_set.baseline.setting,
        baseline_source=candidate_set.baseline.source,
        objective=config.objective,
        certainty=config.certainty,
        evidence=ranked.evidence,
        decision=ranked.decision,
        storage=Storage(
            device=disk.device,
            kind=disk.kind,
            read_mb_s=disk.read_mb_s,
            loader_mb_s=ranked.summary.now(Parameter.LOADER),
            free_bytes=disk.free_bytes,
            room_on=disk.room_on,
        ),
        unpacked_bytes=candidate_set.source.contents.unpacked_bytes,
        whole_boot_ms=evaluation.context.whole_boot_ms,
        rows=ranked.rows,
        pace=evaluation.pace,
        deciding=ranked.deciding,
        rival=ranked.rival,
        plan=ranked.plan,
        hinges_on_build=ranked.hinges_on_build,
        unbuilt=ranked.unbuilt,
        skipped=candidate_set.skipped,
        assumptions=tuple(_assumptions(config, evaluation, answer)),
        room=evaluation.room,
        warnings=(
            *_room_warnings(evaluation.room, ranked),
            *_busy(candidate_set),
            *said,
            *disk.warnings,
            *evaluation.gaps,
            *(disk.speed_warnings if config.read_speed_mb_s is None else ()),
            *evaluation.table.warnings,
            *lab.warnings,
            *evaluation.boots.warnings,
            *_unknown_kernel(candidate_set.kernel_release, evaluation.kernel_config),
        ),
        installed=target.installed is not None,
        given=tuple(_given(config, evaluation.request)),
        overlap_ms=ranked.summary.now(Parameter.SHADOW),
        contents=candidate_set.source.contents,
        context=tuple(line for line in context if line not in said),
        excess=excess,
    )


def _room_warnings(room: KernelRoom | None, ranked: RankedCandidates) -> Iterator[str]:
    """Say where the next kernel does not fit, today or with what is advised."""
    if room is None or room.in_place:
        return
    decision = ranked.decision
    [advised] = [row for row in ranked.rows if row.setting == decision.setting]
    if room.is_full:
        yield (
            f"the next kernel does not fit on {room.mount_point}: it takes "
            f"{room.kernel_bytes / 1e6:.0f} MB, {room.free_bytes / 1e6:.0f} MB are free"
        )
    elif advised.more_kernels == 0:
        yield (
            f"after a switch to {decision.setting} the next kernel does not fit on "
            f"{room.mount_point}"
        )


def _busy(candidate_set: CandidateSet) -> Iterator[str]:
    """Say that others used the processors while decompression was timed."""
    part = max((c.sampled.busy_part for c in candidate_set.candidates if c.sampled), default=0.0)
    if part:
        yield f"other programs used {100 * part:.0f} % of the processors: times are less certain"


def _given_by(asked: float | None) -> str:
    """Return where a value comes from that the user knows: an option, or the configuration."""
    return AS_GIVEN if asked is not None else f"from {CONFIG_PATH}"


def _given(config: Config, request: Request) -> Iterator[str]:
    """Yield what the user knows, with the file that says so where no option does."""
    for words, value, asked in (
        ("read speed {:g} MB/s", config.read_speed_mb_s, request.read_speed_mb_s),
        ("overlap {:g} ms", config.overlap_ms, request.overlap_ms),
    ):
        if value is not None:
            file = f" ({CONFIG_PATH})" if asked is None else ""
            yield f"{words.format(value)}{file}"


def _assumptions(
    config: Config, evaluation: CandidateEvaluation, answer: Answer
) -> Iterator[Assumption]:
    """Yield what the answer rests on; of what boots told of, what they made of what was assumed."""
    decision_input, summary = answer.decision_input, answer.ranked.summary
    known, told = decision_input.knowledge, summary.informed
    yield from (assumed for assumed in known.assumptions if assumed.about not in told)
    yield from unpacking_assumptions(
        decision_input.candidates, known.machine, decision_input.unpacking.lab, told=told
    )
    yield from what_was_learnt(summary)
    if config.objective is Objective.BALANCED:
        yield Assumption(about=None, text=evaluation.pace.words)
        if decision_input.todays_build_open:
            spread = decision_input.todays_build
            yield Assumption(about=None, text=spread.words if spread else UNKNOWN_BUILD)


def _unknown_kernel(kernel: str | None, config: KernelConfig | None) -> tuple[str, ...]:
    """Say once what keeps the verdicts of lint from being certain."""
    if config is not None:
        return ()
    return (
        f"which codecs {f'Linux {kernel}' if kernel else 'the kernel'} unpacks is not known: "
        "name its configuration with --kernel-config FILE",
    )
