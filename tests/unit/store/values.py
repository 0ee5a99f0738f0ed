"""Values to keep."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.model.lab import (
    BootKind,
    Engine,
    EngineTrial,
    LabKernel,
    LabRun,
    LabSample,
    LabSubject,
    LostBoot,
    Unpacked,
    Verification,
)
from initadvisor.model.setting import Setting

if TYPE_CHECKING:
    from initadvisor.store.store import Store

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
KERNEL = LabKernel(path="/boot/vmlinuz-6.12.1", sha256="k1", release="6.12.1-amd64")
CPU = "A Processor @ 2.10GHz"
ZSTD, CAT = "a" * 64, "b" * 64


def subject(setting: str, sha256: str, *, today: bool = False) -> LabSubject:
    """Return an image of a run."""
    return LabSubject(
        setting=Setting.parse(setting),
        path=f"/var/cache/{setting}.img",
        sha256=sha256,
        size_bytes=40_000_000,
        today=today,
    )


def run(
    *,
    engine: Engine = Engine.KVM,
    kernel: LabKernel = KERNEL,
    cpu_model: str = CPU,
    started_at: datetime = NOON,
) -> LabRun:
    """Return a run of two images."""
    return LabRun(
        started_at=started_at,
        engine=engine,
        engine_version="7.2",
        kernel=kernel,
        cpu_model=cpu_model,
        subjects=(subject("zstd -19", ZSTD, today=True), subject("cat", CAT)),
    )


def sample(
    unpack_us: int, *, image: str = ZSTD, number: int = 1, kind: BootKind = BootKind.UNPACK
) -> LabSample:
    """Return a sample."""
    whole = kind is BootKind.INIT
    return LabSample(
        image_sha256=image,
        round=number,
        kind=kind,
        unpack_us=unpack_us,
        init_us=unpack_us + 1000 if whole else None,
        waiter="populate_rootfs" if whole else None,
    )


def lost(reason: str, *, image: str = ZSTD) -> LostBoot:
    """Return a boot that gave nothing."""
    return LostBoot(image_sha256=image, round=2, reason=reason)


def verification(*, image: str = ZSTD, words: str = "") -> Verification:
    """Return a verification; one with words is a refusal."""
    return Verification(
        at=NOON,
        engine=Engine.TCG,
        kernel=KERNEL,
        image_sha256=image,
        content_sha256="c" * 64,
        unpacked=Unpacked.REFUSED if words else Unpacked.YES,
        words=words,
    )


def trial(*, works: bool, circumstances: str = "kvm of 6.12") -> EngineTrial:
    """Return a trial of KVM."""
    return EngineTrial(
        engine=Engine.KVM,
        circumstances=circumstances,
        works=works,
        reason="" if works else "it hangs",
        at=NOON,
    )


def fill(store: Store, *samples_us: int) -> int:
    """Record a run with samples of the compressed image; return its number."""
    number = store.begin_lab_run(run())
    for time_us in samples_us:
        store.add_sample(number, sample(time_us))
    return number
