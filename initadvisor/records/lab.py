"""The lab: kernels that unpack the very candidates in throw-away virtual machines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from initadvisor.core.settings import Setting


class Engine(StrEnum):
    """What runs the kernel."""

    KVM = "kvm"
    UML = "uml"
    TCG = "tcg"

    @property
    def description(self) -> str:
        """What it is, in words."""
        return _DESCRIPTIONS[self]

    @property
    def runs_own_kernel(self) -> bool:
        """Whether it runs this machine's own kernel, so that it can verify an image for it."""
        return self is not Engine.UML

    @property
    def keeps_time(self) -> bool:
        """Whether the time it takes says anything about a processor that is not emulated."""
        return self is not Engine.TCG


_DESCRIPTIONS = {
    Engine.KVM: "this machine's own kernel on its own processor (QEMU with KVM)",
    Engine.UML: "another kernel, as a process of this machine (user-mode Linux)",
    Engine.TCG: "this machine's own kernel on an emulated processor (QEMU without KVM)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabKernel:
    """The kernel that unpacks: the file it was started from, and its release."""

    path: str
    sha256: str
    release: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSubject:
    """An image that a run times. ``today``: the one that is in use."""

    setting: Setting
    path: str
    sha256: str
    size_bytes: int
    today: bool = False


class BootKind(StrEnum):
    """What a boot of the lab is for.

    ``unpack``: the kernel does nothing beside (``initramfs_async=0``), its own initcall accounting
    gives the time. ``init``: as the machine boots, up to the moment that it would run /init.
    """

    UNPACK = "unpack"
    INIT = "init"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSample:
    """One boot that went as it should.

    ``unpack_us``: the time to unpack. ``init_us``, of boots of that kind: from the beginning of
    unpacking until /init would run. ``waiter``: the initcall that was the first to wait for the
    initramfs, None where none was seen to wait.
    """

    image_sha256: str
    round: int
    kind: BootKind
    unpack_us: int
    init_us: int | None = None
    waiter: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBoot:
    """A boot that gave no sample, and why: the VM hung, was killed, said nothing, or refused."""

    image_sha256: str
    round: int
    reason: str


class RunEnd(StrEnum):
    """Why a run ended."""

    SETTLED = "settled"
    ROUNDS = "rounds"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRun:
    """One run, as it was begun: which images on which kernel, started how, on what processor."""

    started_at: datetime
    engine: Engine
    engine_version: str
    kernel: LabKernel
    cpu_model: str
    subjects: tuple[LabSubject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A run with all that came of it. ``end`` is None for one that never came to its end.

    ``warnings`` say what may have disturbed it.
    """

    number: int
    run: LabRun
    samples: tuple[LabSample, ...]
    lost: tuple[LostBoot, ...]
    end: RunEnd | None
    warnings: tuple[str, ...]


class Unpacked(StrEnum):
    """What the kernel made of an image."""

    YES = "yes"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """That a kernel unpacked, or refused, exactly these bytes.

    ``image_sha256``: of the file as it is on the disk. ``content_sha256``: of what comes out of it,
    all segments in a row. A kernel unpacks some damaged images without a word, so neither it nor
    the digests are enough alone. ``reason``: the kernel's own, where it refused.
    """

    at: datetime
    engine: Engine
    kernel: LabKernel
    image_sha256: str
    content_sha256: str
    unpacked: Unpacked
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTrial:
    """What came of trying an engine, so that a VM that hangs is waited for only once.

    ``circumstances`` is everything the outcome depends on, as text: another text, another trial.
    """

    engine: Engine
    circumstances: str
    works: bool
    reason: str
    at: datetime
