"""The main job: from an image to a recommendation, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.image import Verdict
from initadvisor.model.recommendation import Recommendation, Storage
from initadvisor.vm.choose import Wanted
from initadvisor.workflow.bench import BenchObserver, decompression_ms
from initadvisor.workflow.boot_context import boot_context
from initadvisor.workflow.candidates import BuildObserver
from initadvisor.workflow.configuration import load_config
from initadvisor.workflow.context import what_matters_more
from initadvisor.workflow.disk import examine_disk
from initadvisor.workflow.evidence import lab_evidence, refused_by_kernel
from initadvisor.workflow.field import gathered
from initadvisor.workflow.kernel_config import find_kernel_config, read_kernel_config
from initadvisor.workflow.knowledge import calibration
from initadvisor.workflow.lab import run_lab_for
from initadvisor.workflow.machine import know_machine, unpacking_assumptions
from initadvisor.workflow.target import find_target, sample_target
from initadvisor.workflow.timing import LabObserver, Rounds
from initadvisor.workflow.verdicts import lint_all
from initadvisor.workflow.weigh import Unpacking, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.config import Config
    from initadvisor.model.cost import Objective
    from initadvisor.model.image import Lint
    from initadvisor.model.kernel import KernelConfig
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.boot_context import BootContext
    from initadvisor.workflow.disk import Disk
    from initadvisor.workflow.evidence import LabEvidence
    from initadvisor.workflow.field import Field
    from initadvisor.workflow.knowledge import CalibrationTable
    from initadvisor.workflow.machine import Knowledge

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
    lab: bool = False


class Observer(BuildObserver, BenchObserver, LabObserver, Protocol):
    """Told how the work goes."""


def recommend(host: Host, request: Request, *, observer: Observer) -> Recommendation:
    """Build, measure, weigh, and decide.

    Raises ``InitadvisorError`` (with its exit code) where there is no image, it cannot be read or
    is none, nothing can be built, or the lab is asked for and no virtual machine works.
    """
    config = _config(host, request)
    target = sample_target(host) if request.sample else find_target(host, request.image)
    with gathered(
        host,
        target,
        config,
        only=request.only,
        everything=request.everything,
        observer=observer,
    ) as field:
        found = _examine(host, request, config, field, sample=target.sample, observer=observer)
        weighed = weigh(
            field.contenders,
            unpacking=Unpacking(bench_ms=found.times_ms, table=found.table, lab=found.lab),
            verdicts=found.verdicts,
            disk=found.disk,
            knowledge=found.knowledge,
            config=config,
            seed=_SEED,
        )
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
            storage=_storage(found.disk, found.knowledge),
            unpacked_bytes=field.source.contents.unpacked_bytes,
            whole_boot_ms=found.context.whole_boot_ms,
            rows=weighed.rows,
            gaps=field.built.gaps,
            assumptions=(
                *found.knowledge.assumptions,
                *unpacking_assumptions(field.contenders, found.knowledge.machine, found.lab),
            ),
            warnings=(
                *field.baseline.warnings,
                *found.disk.warnings,
                *found.table.warnings,
                *found.lab.warnings,
                *_unknown_kernel(field.kernel_release, found.kernel_config),
            ),
            context=what_matters_more(host, field.generator, field.source),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """What was measured, looked up and assumed before anything is weighed."""

    times_ms: Mapping[str, Sequence[float]]
    kernel_config: KernelConfig | None
    verdicts: Mapping[str, Lint]
    disk: Disk
    context: BootContext
    table: CalibrationTable
    knowledge: Knowledge
    lab: LabEvidence


def _examine(
    host: Host,
    request: Request,
    config: Config,
    field: Field,
    *,
    sample: bool,
    observer: Observer,
) -> _Findings:
    """Time, judge and read what is to be weighed; see ``recommend`` for what is raised."""
    source, release = field.source, field.kernel_release
    streams = [contender.stream for contender in field.contenders]
    times_ms = decompression_ms(host, streams, seed=_SEED, observer=observer)
    kernel_config = _kernel_config(host, request, release)
    verdicts = lint_all(host, source, streams, config=kernel_config, release=release)
    _require_comparison(verdicts[source.initrd_sha256], field)
    disk = examine_disk(host, source.path, sample=sample)
    context = boot_context(host, release)
    table = calibration(host)
    if request.lab:
        _run_lab(host, field, verdicts, config, observer)
    verdicts = _with_refusals(verdicts, refused_by_kernel(host, verdicts, release))
    _require_comparison(verdicts[source.initrd_sha256], field)
    return _Findings(
        times_ms=times_ms,
        kernel_config=kernel_config,
        verdicts=verdicts,
        disk=disk,
        context=context,
        table=table,
        knowledge=know_machine(
            read_mb_s=disk.read_mb_s,
            given_read_mb_s=request.read_speed_mb_s,
            given_shadow_ms=request.shadow_ms,
            unpacked_bytes=source.contents.unpacked_bytes,
            context=context,
            table=table,
        ),
        lab=lab_evidence(host, field.contenders, release),
    )


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
    source, built = field.source, field.built
    if today.verdict is Verdict.REFUSED:
        msg = (
            f"cannot weigh {source.path}: its kernel would refuse it as it is "
            f"({'; '.join(today.reasons)})"
        )
        raise UnsafeError(msg, hint="is it the image, and --kernel-config the kernel, that boots?")
    if len(field.contenders) == 1:
        gaps = "; ".join(f"{gap.setting}: {gap.reason}" for gap in built.gaps)
        msg = f"nothing to compare {source.path} with" + (f": {gaps}" if gaps else "")
        raise InitadvisorError(msg, hint="install compressors, or name other settings with --only")


def _run_lab(
    host: Host,
    field: Field,
    verdicts: Mapping[str, Lint],
    config: Config,
    observer: Observer,
) -> None:
    """Have kernels unpack what they would not refuse; the store then has what they took."""
    run_lab_for(
        host,
        field.source,
        [c for c in field.contenders if verdicts[c.stream.sha256].verdict is not Verdict.REFUSED],
        Wanted(release=field.kernel_release),
        rounds=Rounds(
            tolerance_ms=config.tolerance_ms, tolerance_fraction=config.tolerance_fraction
        ),
        observer=observer,
    )


def _unknown_kernel(kernel: str | None, config: KernelConfig | None) -> tuple[str, ...]:
    """Say once what keeps the verdicts of lint from being certain."""
    if config is not None:
        return ()
    return (
        f"the configuration of {f'Linux {kernel}' if kernel else 'the kernel'} is not known, so it "
        "is not certain which codecs it unpacks: name it with --kernel-config FILE",
    )


def _storage(disk: Disk, knowledge: Knowledge) -> Storage:
    return Storage(
        device=disk.device,
        kind=disk.kind,
        read_mb_s=disk.read_mb_s,
        loader_mb_s=knowledge.loader_mb_s,
        free_bytes=disk.free_bytes,
        room_on=disk.room_on,
    )
