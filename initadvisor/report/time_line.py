"""One boot from firmware to user space, in stages; all times are of the kernel's clock, in ms.

Firmware and loader run before that clock and are put directly before its start.
"""

from __future__ import annotations

from math import ceil, floor, log10
from operator import attrgetter
from typing import TYPE_CHECKING

from initadvisor.records.boot_start import Phase
from initadvisor.records.marks import Waiting
from initadvisor.report.report import Lane, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.records.boot import BootRecord
    from initadvisor.records.marks import BootStep

WAITING = "waiting for the unpacking"
_TICKS = 6
_LAST_TICK = 0.86
_MOST_STEPS = 12
"""Of each lane; whoever looks for the rest has the record."""


def stages(record: BootRecord) -> tuple[Stage, ...]:
    """Return what is known of a boot, lane by lane, each in the order of time."""
    return (
        *_before_kernel(record),
        *_since_kernel(record),
        *_unpacking(record),
        *_steps(Lane.INITCALLS, record.initcalls, "initcall_debug"),
        *_steps(Lane.INITRD_UNITS, record.initrd_units, "the journal"),
        *_steps(Lane.CRITICAL_CHAIN, record.critical_chain, "systemd"),
    )


def ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round values between two others, about six; 1, 2 or 5 times a power of ten apart.

    None is so near to the end that its words would be cut off.
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    last = low + _LAST_TICK * (high - low)
    return tuple(step * number for number in range(ceil(low / step), floor(last / step) + 1))


def _before_kernel(record: BootRecord) -> Iterator[Stage]:
    known = {one.phase: one for one in record.phases}
    loader, firmware = known.get(Phase.LOADER), known.get(Phase.FIRMWARE)
    if loader is None:
        return
    start = -loader.duration_us
    if firmware is not None:
        source = str(firmware.source)
        yield _stage(Lane.BOOT, "firmware", start - firmware.duration_us, start, source)
    efi, source = record.times.efi, str(loader.source)
    if efi.menu_us is not None and efi.init_us is not None and efi.init_us <= efi.menu_us:
        menu = min(start + efi.menu_us - efi.init_us, 0)
        yield _stage(Lane.BOOT, "loader", start, menu, source)
        yield _stage(Lane.BOOT, "menu, then reading", menu, 0, source)
    else:
        yield _stage(Lane.BOOT, "loader", start, 0, source)


def _since_kernel(record: BootRecord) -> Iterator[Stage]:
    """Yield kernel, initramfs and user space; an initramfs without systemd ends where it does."""
    known = {one.phase: one for one in record.phases}
    marks, kernel = record.timestamps, known.get(Phase.KERNEL)
    run_init, begin = marks.run_init_us, marks.begin_us
    end = run_init or (kernel.duration_us if kernel else None)
    if end is None:
        return
    messages = "the kernel's messages"
    if begin is not None and begin < end:
        yield _stage(Lane.BOOT, "kernel, before the unpacking", 0, begin, messages)
        yield _stage(Lane.BOOT, "kernel, until /init", begin, end, messages)
    else:
        yield _stage(Lane.BOOT, "kernel", 0, end, messages)
    if kernel is None:
        return
    initrd, userspace = known.get(Phase.INITRD), known.get(Phase.USERSPACE)
    left = kernel.duration_us + (initrd.duration_us if initrd else 0)
    if left > end:
        yield _stage(Lane.BOOT, "initramfs, until switch-root", end, left, str(kernel.source))
    if userspace is not None:
        finish = left + userspace.duration_us
        yield _stage(Lane.BOOT, "user space", left, finish, str(userspace.source))


def _unpacking(record: BootRecord) -> Iterator[Stage]:
    marks, seen = record.timestamps, record.shadow
    begin, unpack_us = marks.begin_us, record.unpack_us
    if begin is None or unpack_us is None:
        return
    end = begin + unpack_us
    yield _stage(Lane.UNPACKING, "unpacking", begin, end, "the kernel's messages")
    how = seen.evidence.description if seen.evidence else "the kernel's messages"
    if seen.waiting is Waiting.WAITED and seen.shadow_us is not None:
        waits = min(begin + seen.shadow_us, end)
        yield _stage(Lane.MEANWHILE, "other work", begin, waits, how)
        yield _stage(Lane.MEANWHILE, WAITING, waits, end, how)
    elif seen.waiting is Waiting.HIDDEN:
        yield _stage(Lane.MEANWHILE, "other work, until it ends", begin, end, how)


def _steps(lane: Lane, steps: Sequence[BootStep], source: str) -> Iterator[Stage]:
    """Yield the longest steps, each with its name as people write it: systemd escapes a dash."""
    shown = sorted(steps, key=attrgetter("duration_us"))[-_MOST_STEPS:]
    for step in sorted(shown, key=attrgetter("start_us")):
        name = step.name.replace(r"\x2d", "-")
        yield _stage(lane, name, step.start_us, step.start_us + step.duration_us, source)


def _stage(lane: Lane, name: str, from_us: int, to_us: int, source: str) -> Stage:
    return Stage(lane=lane, name=name, from_ms=from_us / 1000, to_ms=to_us / 1000, source=source)
