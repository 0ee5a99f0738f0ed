"""The main job: from an image to a recommendation, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from initadvisor.model.boot_evidence import Shared
from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.image import Verdict
from initadvisor.model.recommendation import Recommendation, Storage
from initadvisor.workflow.bench import ROUNDS, BenchObserver, decompression_ms, remember
from initadvisor.workflow.boot_context import boot_context
from initadvisor.workflow.boots import Boots, recorded_boots, what_was_learnt
from initadvisor.workflow.candidates import build_candidates
from initadvisor.workflow.configuration import load_config
from initadvisor.workflow.context import what_matters_more
from initadvisor.workflow.disk import examine_disk
from initadvisor.workflow.evidence import lab_evidence, refused_by_kernel
from initadvisor.workflow.field import FieldObserver, estimated_field, surveyed
from initadvisor.workflow.kernel_config import find_kernel_config, read_kernel_config
from initadvisor.workflow.knowledge import calibration
from initadvisor.workflow.machine import know_machine, unpacking_assumptions
from initadvisor.workflow.observing import LabObserver
from initadvisor.workflow.target import find_target, sample_target
from initadvisor.workflow.verdicts import lint_all
from initadvisor.workflow.weigh import Unpacking, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.candidate import Gap
    from initadvisor.model.config import Config
    from initadvisor.model.cost import Objective
    from initadvisor.model.estimate import Estimate
    from initadvisor.model.image import Lint
    from initadvisor.model.kernel import KernelConfig
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.disk import Disk
    from initadvisor.workflow.evidence import LabEvidence
    from initadvisor.workflow.field import Field, Ground
    from initadvisor.workflow.target import Target
    from initadvisor.workflow.weigh import Weighed

_SEED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asks for; fields as the options of ``initadvisor recommend``."""

    image: Path | None = None
    sample: bool = False
    kernel_config: Path | None = None
    read_speed_mb_s: float | None = None
    shadow_ms: float | None = None
    objective: Objective | None = None
    only: tuple[Setting, ...] = ()
    everything: bool = False
    build: bool = False
    lab: bool = False


class Observer(FieldObserver, BenchObserver, LabObserver, Protocol):
    """Told how the work goes."""


def recommend(host: Host, request: Request, *, observer: Observer) -> Recommendation:
    """Estimate or build, measure, weigh, and decide.

    Candidates that were not built are estimated from a sample; with ``build`` those that may be the
    best are built, and all are weighed again.

    Raises ``InitadvisorError`` (with its exit code) where there is no image, it cannot be read or
    is none, nothing can be compared, or the lab is asked for and no virtual machine works.
    """
    config = _config(host, request)
    target = sample_target(host) if request.sample else find_target(host, request.image)
    with surveyed(host, target, config, only=request.only, everything=request.everything) as ground:
        scales = _Scales(host, request, config, ground, observer, sample=target.sample)
        answer = scales.weigh()
        if request.build:
            scales.build(answer.field, answer.weighed.unbuilt)
            answer = scales.weigh()
        if request.lab:
            scales.run_lab(answer.field)
            answer = scales.weigh()
        return _recommendation(host, target, config, scales, answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The contenders as they are known now, and what comes of weighing them."""

    field: Field
    weighed: Weighed
    lab: LabEvidence


class _Scales:
    """Everything an answer rests on; what does not depend on the candidates is found out once."""

    def __init__(
        self,
        host: Host,
        request: Request,
        config: Config,
        ground: Ground,
        observer: Observer,
        *,
        sample: bool,
    ) -> None:
        source, release = ground.source, ground.kernel_release
        self._host = host
        self._request = request
        self._config = config
        self._ground = ground
        self._observer = observer
        self._build_gaps: tuple[Gap, ...] = ()
        self.kernel_config = _kernel_config(host, request, release)
        self.disk = examine_disk(host, source.path, sample=sample)
        self.context = boot_context(host, release)
        self.table = calibration(host)
        self.boots = recorded_boots(host, release) if source.installed else Boots()
        self.knowledge = know_machine(
            read_mb_s=self.disk.read_mb_s,
            given_read_mb_s=request.read_speed_mb_s,
            given_shadow_ms=request.shadow_ms,
            unpacked_bytes=source.contents.unpacked_bytes,
            context=self.context,
            table=self.table,
        )

    def build(self, field: Field, settings: Sequence[Setting]) -> None:
        """Build those of the field's estimated candidates that have these settings.

        What cannot be built is not weighed any more.
        """
        if not settings:
            return
        # A row may be named by its level, which is another command line (zstd -3 for zstd).
        planned = {c.setting: c.sampled.setting for c in field.contenders if c.sampled}
        result = build_candidates(
            self._host,
            self._ground.generator,
            self._ground.source,
            [planned[setting] for setting in settings],
            observer=self._observer,
            jobs=self._config.jobs,
            cache_limit_bytes=self._config.cache_limit_bytes,
        )
        self._build_gaps += result.gaps
        failed = {gap.setting for gap in result.gaps}
        kept = tuple(setting for setting in self._ground.settings if setting not in failed)
        self._ground = replace(self._ground, settings=kept)

    def weigh(self) -> _Answer:
        """Weigh the candidates that are there, and estimates of the others."""
        host, ground = self._host, self._ground
        field = estimated_field(host, ground, observer=self._observer)
        field = replace(field, gaps=_distinct((*field.gaps, *self._build_gaps)))
        verdicts = lint_all(
            host,
            ground.source,
            field.contenders,
            config=self.kernel_config,
            release=ground.kernel_release,
        )
        _require_comparison(verdicts[ground.source.initrd_sha256], field)
        refusals = refused_by_kernel(host, verdicts, ground.kernel_release)
        verdicts = _with_refusals(verdicts, refusals)
        _require_comparison(verdicts[ground.source.initrd_sha256], field)
        lab = lab_evidence(host, field.contenders, ground.kernel_release)
        weighed = weigh(
            field.contenders,
            unpacking=Unpacking(bench_ms=self._times_ms(field), table=self.table, lab=lab),
            verdicts=verdicts,
            disk=self.disk,
            knowledge=self.knowledge,
            boots=self.boots.evidence,
            config=self._config,
            seed=_SEED,
        )
        return _Answer(field=field, weighed=weighed, lab=lab)

    def run_lab(self, field: Field) -> None:
        """Have kernels unpack what they would not refuse; the store then has what they took."""
        from initadvisor.vm.choose import Wanted  # takes long; most answers need none of it
        from initadvisor.workflow.lab import run_lab_for
        from initadvisor.workflow.timing import Rounds

        verdicts = lint_all(
            self._host,
            field.source,
            field.contenders,
            config=self.kernel_config,
            release=field.kernel_release,
        )
        run_lab_for(
            self._host,
            field.source,
            [c for c in field.contenders if verdicts[c.digest].verdict is not Verdict.REFUSED],
            Wanted(release=field.kernel_release),
            rounds=Rounds(
                tolerance_ms=self._config.tolerance_ms,
                tolerance_fraction=self._config.tolerance_fraction,
            ),
            observer=self._observer,
        )

    def _times_ms(self, field: Field) -> Mapping[str, Sequence[float]]:
        """Time user-space decompression of what is there; once for an answer without builds."""
        source, streams = field.source, [c.stream for c in field.contenders if c.stream]
        if source.unpack_cpu_ms:
            remember(self._host, streams[0], source.unpack_cpu_ms)
        return decompression_ms(
            self._host,
            streams,
            rounds=ROUNDS if self._request.build else 1,
            seed=_SEED,
            observer=self._observer,
        )


def _recommendation(
    host: Host, target: Target, config: Config, scales: _Scales, answer: _Answer
) -> Recommendation:
    field, weighed, knowledge = answer.field, answer.weighed, scales.knowledge
    return Recommendation(
        image=field.source.path,
        sample=target.sample,
        generator=field.generator.NAME,
        kernel_release=field.kernel_release,
        baseline=field.baseline.setting,
        baseline_source=field.baseline.source,
        objective=config.objective,
        certainty=config.certainty,
        evidence=weighed.evidence,
        decision=weighed.decision,
        storage=_storage(scales.disk, weighed.lessons.now(Shared.LOADER)),
        unpacked_bytes=field.source.contents.unpacked_bytes,
        whole_boot_ms=scales.context.whole_boot_ms,
        rows=weighed.rows,
        unbuilt=weighed.unbuilt,
        gaps=field.gaps,
        assumptions=(
            *knowledge.assumptions,
            *unpacking_assumptions(field.contenders, knowledge.machine, answer.lab),
            *what_was_learnt(weighed.lessons),
        ),
        warnings=(
            *field.baseline.warnings,
            *scales.disk.warnings,
            *scales.table.warnings,
            *answer.lab.warnings,
            *scales.boots.warnings,
            *_unknown_kernel(field.kernel_release, scales.kernel_config),
        ),
        context=what_matters_more(host, field.generator, field.source),
    )


def _distinct(gaps: tuple[Gap, ...]) -> tuple[Gap, ...]:
    """Return one gap for each setting: what failed last says why."""
    return tuple({gap.setting: gap for gap in gaps}.values())


def _config(host: Host, request: Request) -> Config:
    config = load_config(host)
    return replace(config, objective=request.objective) if request.objective else config


def _kernel_config(host: Host, request: Request, kernel: str | None) -> KernelConfig | None:
    if request.kernel_config:
        return read_kernel_config(request.kernel_config)
    return find_kernel_config(host, kernel) if kernel else None


def _with_refusals(verdicts: Mapping[str, Lint], refusals: Mapping[str, str]) -> dict[str, Lint]:
    """Return the verdicts, those of lint overruled where a kernel refused what lint would pass."""
    return {
        digest: replace(found, verdict=Verdict.REFUSED, reasons=(*found.reasons, refusals[digest]))
        if digest in refusals
        else found
        for digest, found in verdicts.items()
    }


def _require_comparison(today: Lint, field: Field) -> None:
    """Raise where no advice can be given: today's image is refused, or nothing is beside it."""
    source = field.source
    if today.verdict is Verdict.REFUSED:
        msg = (
            f"cannot weigh {source.path}: its kernel would refuse it as it is "
            f"({'; '.join(today.reasons)})"
        )
        raise UnsafeError(msg, hint="is it the image, and --kernel-config the kernel, that boots?")
    if len(field.contenders) == 1:
        gaps = "; ".join(f"{gap.setting}: {gap.reason}" for gap in field.gaps)
        msg = f"nothing to compare {source.path} with" + (f": {gaps}" if gaps else "")
        raise InitadvisorError(msg, hint="install compressors, or name other settings with --only")


def _unknown_kernel(kernel: str | None, config: KernelConfig | None) -> tuple[str, ...]:
    """Say once what keeps the verdicts of lint from being certain."""
    if config is not None:
        return ()
    return (
        f"the configuration of {f'Linux {kernel}' if kernel else 'the kernel'} is not known, so it "
        "is not certain which codecs it unpacks: name it with --kernel-config FILE",
    )


def _storage(disk: Disk, loader_mb_s: Estimate) -> Storage:
    return Storage(
        device=disk.device,
        kind=disk.kind,
        read_mb_s=disk.read_mb_s,
        loader_mb_s=loader_mb_s,
        free_bytes=disk.free_bytes,
        room_on=disk.room_on,
    )
