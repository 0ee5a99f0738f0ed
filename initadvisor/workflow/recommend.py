"""The main job: from an image to a recommendation, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.image import Verdict
from initadvisor.model.recommendation import Recommendation, Storage
from initadvisor.vm.choose import Wanted
from initadvisor.workflow.baseline import identified, todays_setting
from initadvisor.workflow.bench import BenchObserver, decompression_ms
from initadvisor.workflow.boot_context import boot_context
from initadvisor.workflow.candidates import BuildObserver, build_candidates
from initadvisor.workflow.configuration import load_config
from initadvisor.workflow.contenders import contenders
from initadvisor.workflow.context import what_matters_more
from initadvisor.workflow.disk import examine_disk
from initadvisor.workflow.evidence import lab_evidence
from initadvisor.workflow.kernel_config import find_kernel_config, read_kernel_config
from initadvisor.workflow.knowledge import calibration
from initadvisor.workflow.lab import run_lab_for
from initadvisor.workflow.machine import know_machine, unpacking_assumptions
from initadvisor.workflow.plan import plan_settings
from initadvisor.workflow.source import open_source
from initadvisor.workflow.target import find_target, sample_target
from initadvisor.workflow.timing import LabObserver, Rounds
from initadvisor.workflow.verdicts import lint_all
from initadvisor.workflow.weigh import Unpacking, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.config import Config
    from initadvisor.model.cost import Objective
    from initadvisor.model.generator import ConfiguredSetting
    from initadvisor.model.image import Lint
    from initadvisor.model.kernel import KernelConfig
    from initadvisor.model.setting import Setting
    from initadvisor.workflow.baseline import Baseline
    from initadvisor.workflow.contenders import Contender
    from initadvisor.workflow.disk import Disk
    from initadvisor.workflow.ledger import BuildResult
    from initadvisor.workflow.machine import Knowledge
    from initadvisor.workflow.source import Source
    from initadvisor.workflow.target import Target

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
    with open_source(target.path, installed=target.installed) as source:
        generator = target.made_by(source.contents)
        baseline = todays_setting(source, _configured(host, generator, target))
        built = _build(host, generator, source, baseline, config, request, observer)
        baseline = identified(baseline, source, built.candidates)
        field = contenders(host, generator, source, baseline, built.candidates)
        streams = [contender.stream for contender in field]
        times_ms = decompression_ms(host, streams, seed=_SEED, observer=observer)
        kernel = _kernel_release(target, source)
        kernel_config = _kernel_config(host, request, kernel)
        verdicts = lint_all(host, source, streams, config=kernel_config, release=kernel)
        _require_comparison(source, verdicts[source.initrd_sha256], field, built)
        disk = examine_disk(host, source.path, sample=target.sample)
        context = boot_context(host, kernel)
        table = calibration(host)
        knowledge = know_machine(
            read_mb_s=disk.read_mb_s,
            given_read_mb_s=request.read_speed_mb_s,
            given_shadow_ms=request.shadow_ms,
            unpacked_bytes=source.contents.unpacked_bytes,
            context=context,
            table=table,
        )
        if request.lab:
            _run_lab(host, source, field, verdicts, kernel, config, observer)
        lab = lab_evidence(host, field, kernel)
        weighed = weigh(
            field,
            unpacking=Unpacking(bench_ms=times_ms, table=table, lab=lab),
            verdicts=verdicts,
            disk=disk,
            knowledge=knowledge,
            config=config,
            seed=_SEED,
        )
        return Recommendation(
            image=source.path,
            sample=target.sample,
            generator=generator.NAME,
            kernel_release=kernel,
            baseline=baseline.setting,
            baseline_source=baseline.source,
            objective=config.objective,
            certainty=config.certainty,
            evidence=weighed.evidence,
            decision=weighed.decision,
            storage=_storage(disk, knowledge),
            unpacked_bytes=source.contents.unpacked_bytes,
            whole_boot_ms=context.whole_boot_ms,
            rows=weighed.rows,
            gaps=built.gaps,
            assumptions=(
                *knowledge.assumptions,
                *unpacking_assumptions(field, knowledge.machine, lab),
            ),
            warnings=(
                *baseline.warnings,
                *disk.warnings,
                *table.warnings,
                *lab.warnings,
                *_unknown_kernel(kernel, kernel_config),
            ),
            context=what_matters_more(host, generator, source),
        )


def _config(host: Host, request: Request) -> Config:
    config = load_config(host)
    return replace(config, objective=request.objective) if request.objective else config


def _configured(host: Host, generator: Generator, target: Target) -> ConfiguredSetting | None:
    """Return what is configured, None for an image this machine's generator does not make."""
    if target.installed is None:
        return None
    return generator.configured(host, target.installed.kernel_release)


def _build(
    host: Host,
    generator: Generator,
    source: Source,
    baseline: Baseline,
    config: Config,
    request: Request,
    observer: Observer,
) -> BuildResult:
    settings = plan_settings(
        host,
        generator,
        config,
        only=request.only,
        also=(baseline.setting,) if baseline.certain else (),
        everything=request.everything,
    )
    return build_candidates(
        host,
        generator,
        source,
        settings,
        observer=observer,
        jobs=config.jobs,
        cache_limit_bytes=config.cache_limit_bytes,
    )


def _kernel_release(target: Target, source: Source) -> str | None:
    if target.installed:
        return target.installed.kernel_release
    return source.contents.kernel_release


def _kernel_config(host: Host, request: Request, kernel: str | None) -> KernelConfig | None:
    if request.kernel_config:
        return read_kernel_config(request.kernel_config)
    return find_kernel_config(host, kernel) if kernel else None


def _require_comparison(
    source: Source, today: Lint, field: Sequence[Contender], built: BuildResult
) -> None:
    """Raise where no advice can be given: today's image is refused, or nothing is beside it."""
    if today.verdict is Verdict.REFUSED:
        msg = (
            f"cannot weigh {source.path}: its kernel would refuse it as it is "
            f"({'; '.join(today.reasons)})"
        )
        raise UnsafeError(msg, hint="is it the image, and --kernel-config the kernel, that boots?")
    if len(field) == 1:
        gaps = "; ".join(f"{gap.setting}: {gap.reason}" for gap in built.gaps)
        msg = f"nothing to compare {source.path} with" + (f": {gaps}" if gaps else "")
        raise InitadvisorError(msg, hint="install compressors, or name other settings with --only")


def _run_lab(
    host: Host,
    source: Source,
    field: Sequence[Contender],
    verdicts: Mapping[str, Lint],
    kernel: str | None,
    config: Config,
    observer: Observer,
) -> None:
    """Have kernels unpack what they would not refuse; the store then has what they took."""
    run_lab_for(
        host,
        source,
        [c for c in field if verdicts[c.stream.sha256].verdict is not Verdict.REFUSED],
        Wanted(release=kernel),
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
