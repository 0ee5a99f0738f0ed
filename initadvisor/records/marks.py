"""What a kernel's messages tell of one boot: its marks, and what it waited for.

All times are the kernel's own stamps in microseconds (printk's ``local_clock()``): subtract them
only from each other. Everything before that clock starts (firmware, loader, EFI stub, the kernel's
own decompression) is invisible to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from heapq import nlargest
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DebugAid(StrEnum):
    """Something for developers that makes this kernel another kernel where speed is concerned."""

    KASAN = "kasan"
    KMSAN = "kmsan"
    KCSAN = "kcsan"
    LOCKDEP = "lockdep"
    KMEMLEAK = "kmemleak"
    SLAB_DEBUG = "slab-debug"
    PAGE_DEBUG = "page-debug"
    FUNCTION_TRACER = "function-tracer"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineWords:
    """What the kernel (on x86) says of the machine, so that boots long past can be told apart.

    ``hypervisor``: as in "Hypervisor detected: KVM". ``product``: vendor, product, board, version
    and date of the firmware in one. ``microcode``: its revision, ``0xf4``.
    """

    hypervisor: str | None = None
    product: str | None = None
    processor: str | None = None
    microcode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimestamps:
    """The kernel's words about its initramfs in one boot; None for what it has not said.

    ``begin_us``, ``end_us``: "Trying to unpack rootfs image as initramfs..." and the first "Freeing
    initrd memory". ``run_init_us``: the first "Run ... as init process", of ``run_program``.
    ``loaded_kib``: what was freed, all lines together: what the loader passed, rounded to pages.
    ``initcall_us``: how long the initcall that unpacks took by its own account (initcall_debug);
    it is the time to unpack only where the kernel unpacks synchronously.

    ``release`` and ``version``: what ``uname -r`` and ``uname -v`` print; a release shows that the
    messages reach back to the start. ``command_line_whole``: it was not cut off by the length of a
    message. ``begun``, ``freed``: whether the two marks are there, with or without a stamp.
    ``synchronous``: the kernel unpacks before it goes on; None where neither its version nor its
    messages tell. ``retained``: it was told not to free the image, so that nothing marks the end.
    ``missed_messages``: how many were lost, as far as is known, before /init ran. ``failures``:
    what it says went wrong with the image, the first few. ``panic`` and ``oops``: the first
    words of each before /init ran; an oops is an error of its own that the kernel survived.
    ``contradictory``: marks that cannot be of one boot. ``messages``: how many there were up to
    /init.
    """

    release: str | None = None
    version: str | None = None
    command_line: str | None = None
    command_line_whole: bool = True
    begun: bool = False
    freed: bool = False
    begin_us: int | None = None
    end_us: int | None = None
    run_init_us: int | None = None
    run_program: str | None = None
    loaded_kib: int | None = None
    initcall_us: int | None = None
    synchronous: bool | None = None
    retained: bool = False
    missed_messages: int = 0
    failures: tuple[str, ...] = ()
    panic: str | None = None
    oops: str | None = None
    debug_aids: tuple[DebugAid, ...] = ()
    contradictory: bool = False
    messages: int = 0
    machine: MachineWords = MachineWords()

    @property
    def unpack_us(self) -> int | None:
        """How long unpacking took (U of the cost model), from mark to mark.

        None also where both have the same stamp: the clock is then too coarse to tell.
        """
        if self.begin_us is not None and self.end_us is not None:
            return _between(self.begin_us, self.end_us, least=1)
        if not self.synchronous or self.begin_us is None:
            return None
        return self.initcall_us or None

    @property
    def begin_to_init_us(self) -> int | None:
        """From the beginning of unpacking until /init runs: max(B1, U) + B2."""
        return _between(self.begin_us, self.run_init_us, least=1)

    @property
    def slack_us(self) -> int | None:
        """From the end of unpacking until /init runs.

        NOT what the boot hides: B2 is in it, all of it where the kernel waited.
        """
        return _between(self.end_us, self.run_init_us, least=0)


def _between(first_us: int | None, last_us: int | None, *, least: int) -> int | None:
    """Return the time from one mark to another, None where they cannot be in that order."""
    if first_us is None or last_us is None or last_us - first_us < least:
        return None
    return last_us - first_us


class Waiting(StrEnum):
    """Whether the init task (PID 1) waited for the unpack.

    ``waited``: it did, so B1 was seen. ``hidden``: it had other work until after the end, so B1 is
    only bounded. ``synchronous``: it unpacked itself, there is no B1. ``unknown``: the messages do
    not tell.
    """

    WAITED = "waited"
    HIDDEN = "hidden"
    SYNCHRONOUS = "synchronous"
    UNKNOWN = "unknown"


class WaitEvidence(StrEnum):
    """What tells it, best first."""

    KERNEL = "kernel"
    INITCALLS = "initcalls"
    CALLER_IDS = "caller-ids"
    LINES = "lines"

    @property
    def description(self) -> str:
        """What it is, in words."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    WaitEvidence.KERNEL: "the kernel's version or command line",
    WaitEvidence.INITCALLS: "the initcalls of the init task (initcall_debug)",
    WaitEvidence.CALLER_IDS: "the messages of the init task (caller ids)",
    WaitEvidence.LINES: "the silence between messages",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowObservation:
    """B1 and B2 of the cost model, as far as one boot shows them.

    ``shadow_us``: B1 where it was seen: from the beginning of unpacking to the last sign of the
    init task before it waited (0 where unpacking is synchronous). ``shadow_min_us`` and
    ``shadow_max_us`` bound B1 in any case where the marks allow it: it is at least that sign, and
    where the boot waited, at most the time to unpack; where it did not, at least the time to unpack
    and at most the time to /init. ``rest_us``: B2, where it was seen. ``slack_us``: from the end
    of unpacking to /init; never B1.

    ``waiter`` and ``resumed``: the initcall that waited, else the last message before the silence
    and the first after it.
    """

    waiting: Waiting
    evidence: WaitEvidence | None = None
    shadow_us: int | None = None
    shadow_min_us: int | None = None
    shadow_max_us: int | None = None
    rest_us: int | None = None
    slack_us: int | None = None
    waiter: str = ""
    resumed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootStep:
    """Something that a boot did: an initcall, or a unit that was started; ``name`` says which."""

    name: str
    start_us: int
    duration_us: int


_SHORTEST_STEP_US = 1000


def longest(steps: Iterable[BootStep], *, most: int) -> tuple[BootStep, ...]:
    """Return at most so many steps in the order of time: the longest, and none below 1 ms."""
    long = (step for step in steps if step.duration_us >= _SHORTEST_STEP_US)
    kept = nlargest(most, long, key=attrgetter("duration_us"))
    return tuple(sorted(kept, key=attrgetter("start_us")))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBoot:
    """All that the kernel's messages tell of one boot; ``initcalls``: the longest of them."""

    timestamps: KernelTimestamps
    shadow: ShadowObservation
    initcalls: tuple[BootStep, ...] = ()
