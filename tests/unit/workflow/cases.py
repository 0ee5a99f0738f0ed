"""Cases to decide: an image of 100 MB on a machine whose boots are made up as they would be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.model.boot_evidence import BootEvidence, Relation
from initadvisor.model.boot_marks import Waiting
from initadvisor.model.config import Config
from initadvisor.model.cost import Quantity
from initadvisor.model.estimate import Estimate
from initadvisor.model.image import Lint, Verdict
from initadvisor.model.read_interval import Beside, IntervalSource
from initadvisor.model.sampling import SampledCandidate
from initadvisor.model.setting import Setting
from initadvisor.model.upgrade_pace import UpgradePace, upgrade_pace
from initadvisor.stats.next_boot import Limits
from initadvisor.workflow.boot_context import BootContext
from initadvisor.workflow.case import Case, Unpacking, judge
from initadvisor.workflow.contenders import BuildCost, Contender
from initadvisor.workflow.disk import Disk
from initadvisor.workflow.evidence import LabEvidence
from initadvisor.workflow.knowledge import shipped_calibration
from initadvisor.workflow.machine import know_machine
from initadvisor.workflow.weigh import Weighed, show
from tests.unit.workflow.test_evidence import contender

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host.memory import Memory

IMAGES = {
    "zstd": (44.0, 150.0),
    "zstd -19": (41.6, 170.0),
    "lz4 -9": (53.6, 30.0),
    "lz4": (54.0, 40.0),
    "cat": (102.0, 0.0),
    "xz": (40.9, 1100.0),
}
"""MB, and ms that user space takes to decompress them."""

POPULATE_MS = 100.0
SHADOW_MS = 30.0


def image(
    setting: str, *, estimated: bool = False, cpu_s: float | None = None, peak_mb: float = 10
) -> Contender:
    """Return one of the images; ``cpu_s`` is what building it took, None for one that was found."""
    size_mb, bench_ms = IMAGES[setting]
    found = replace(
        contender(setting),
        size=Quantity(median=size_mb * 1e6, log_sd=0.01 if estimated else 0.0),
        cost=None
        if cpu_s is None
        else BuildCost(build_s=cpu_s, build_cpu_s=cpu_s, build_peak_bytes=int(peak_mb * 1e6)),
    )
    if not estimated:
        return found
    sampled = SampledCandidate(
        setting=found.setting,
        key=setting,
        main_bytes=found.size,
        build_s=1,
        build_cpu_s=2,
        build_peak_bytes=3,
        decompress_ms=(bench_ms,) * 3,
        command=(setting,),
        sample_bytes=1,
        whole_bytes=100,
    )
    return replace(found, stream=None, sampled=sampled)


def boot(setting: str, mb_s: float, *, reading_seen: bool = True) -> BootEvidence:
    """Return a boot of an image, with a loader of this speed that takes 300 ms besides."""
    size_mb, bench_ms = IMAGES[setting]
    unpack_ms = POPULATE_MS + bench_ms
    return BootEvidence(
        relation=Relation.SAME,
        class_key="today's",
        age_days=0.0,
        digest=setting,
        setting=Setting.parse(setting),
        loaded_mb=size_mb,
        unpack_us=unpack_ms * 1000,
        begin_to_init_us=(unpack_ms + 100) * 1000,
        waiting=Waiting.WAITED,
        shadow_us=SHADOW_MS * 1000,
        rest_us=100_000,
        read_us=(300 + (size_mb + 10) / mb_s * 1000) * 1000 if reading_seen else None,
        read_source=IntervalSource.EXEC_MINUS_INIT if reading_seen else None,
        read_beside=(Beside.LOADER, Beside.KERNEL) if reading_seen else (),
    )


def lab_of(*settings: str) -> LabEvidence:
    """Return what a lab of this machine's kernel measured of images."""
    return LabEvidence(
        unpack_ms={
            setting: Quantity(median=POPULATE_MS + IMAGES[setting][1], log_sd=0.02, source="lab")
            for setting in settings
        }
    )


def case(
    *field: Contender | str,
    boots: Sequence[BootEvidence] = (),
    lab: LabEvidence = LabEvidence(),  # noqa: B008 # frozen
    linux_mb_s: float = 200.0,
    given_mb_s: float | None = None,
    config: Config = Config(),  # noqa: B008 # frozen
    pace: UpgradePace | None = None,
    memory: Memory | None = None,
    limits: Limits | None = Limits(),  # noqa: B008 # frozen
) -> Case:
    """Return a case, today's image first; by default this machine's own, and all images built."""
    images = [one if isinstance(one, Contender) else image(one) for one in field or IMAGES]
    speed = Estimate(mean=linux_mb_s, low=linux_mb_s, high=linux_mb_s, source="a test")
    return Case(
        field=[replace(images[0], today=True), *images[1:]],
        unpacking=Unpacking(
            bench_ms={name: (ms,) * 3 for name, (_, ms) in IMAGES.items()},
            table=shipped_calibration(),
            lab=lab,
        ),
        verdicts={one.digest: Lint(verdict=Verdict.OK) for one in images},
        disk=Disk(device="sda", kind="sata", read_mb_s=speed, free_bytes=10**9, room_on="/boot"),
        knowledge=know_machine(
            read_mb_s=speed,
            given_read_mb_s=given_mb_s,
            given_shadow_ms=None,
            unpacked_bytes=100_000_000,
            context=BootContext(
                asynchronous=True, whole_boot_ms=None, kernel_mb=10, kernel_mb_source="a test"
            ),
            table=shipped_calibration(),
        ),
        boots=boots,
        config=config,
        pace=upgrade_pace(config.boots_per_upgrade, pace),
        memory=memory,
        limits=limits,
        seed=1,
    )


def weigh(case: Case) -> Weighed:
    """Judge a case and put it in figures."""
    return show(case, judge(case))
