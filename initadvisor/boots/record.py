"""From what a boot left behind to its record, and why it may be no sample."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from initadvisor.boots.attribute import image_evidence, named_initrd
from initadvisor.boots.boot_class import boot_class, class_with_words, past_class
from initadvisor.boots.journal import BootEnding
from initadvisor.boots.kmsg import running_boot
from initadvisor.boots.loader_times import critical_chain, loader_times, same_loader_run, slept
from initadvisor.boots.machine_name import machine_name
from initadvisor.boots.module_use import module_use
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.core.estimates import Certainty
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.records.attribution import Attribution, ImageEvidence
from initadvisor.records.boot import BootRecord, RebootGapTime, RecordSource, RejectionReason
from initadvisor.records.boot_class import command_line_words, parameters
from initadvisor.records.boot_start import (
    TRIAL_TAG,
    BootMethod,
    BootStart,
    Phase,
    PhaseSource,
    PhaseTime,
    boot_phases,
)
from initadvisor.records.marks import KernelBoot, KernelTimestamps, ShadowObservation, Waiting
from initadvisor.records.read_interval import NoInterval, read_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol, TypeAlias

    from initadvisor.boots.journal import BootEnd, BootSpan, JournalBoot
    from initadvisor.boots.loader_times import StartupTimes
    from initadvisor.host import Host
    from initadvisor.records.boot_class import BootClass
    from initadvisor.records.boot_start import LoaderTimes

    class Attribute(Protocol):
        """Finds the image that left the traces, among those that were there at a time."""

        def __call__(self, evidence: ImageEvidence, *, booted_at: datetime) -> Attribution: ...

    ExtraCmdline: TypeAlias = Callable[[str | None], tuple[str, ...]]
    """Returns what the entry of a trial added to the command line; nothing of one unknown."""


_WHO_MAY_READ = "run this as root, or as a member of group systemd-journal, who may read them"

_LONGEST_GAP_US = 600_000_000
"""What takes longer than ten minutes was no reboot that nobody waited in."""

_FOREIGN = Attribution(certainty=Certainty.UNKNOWN, reason="another machine's images are not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Journalled:
    """What the journal has of a boot; ``before`` and ``before_end``: of the boot before it."""

    boot: JournalBoot
    end: BootEnd
    before: BootSpan | None = None
    before_end: BootEnd | None = None


def running_record(
    host: Host,
    journalled: Journalled | None,
    *,
    attribute: Attribute,
    extra_cmdline: ExtraCmdline,
    boot_disk: str | None = None,
    previous: LoaderTimes | None = None,
) -> BootRecord:
    """Return the record of the running boot.

    ``journalled`` is None where the journal has nothing of it or may not be read; ``previous`` are
    the readings that the boot before left. Raises ``NeedsRootError`` where no kernel message may be
    read, ``InitadvisorError`` where not even the boot's identifier can.
    """
    kernel, notes = _kernel(host, journalled)
    times = loader_times(host)
    variables = loader_variables(host)
    start = boot_start(host, variables)
    evidence, unreadable = image_evidence(
        host, start, freed_kib=kernel.timestamps.loaded_kib, page_bytes=os.sysconf("SC_PAGE_SIZE")
    )
    started_at = _started_at(host, journalled)
    there = (*variables.unreadable, *times.unreadable, *unreadable)
    journal = journalled.boot if journalled else None
    known = boot_class(host, boot_disk=boot_disk, extra_cmdline=extra_cmdline(evidence.trial))
    circumstances = Circumstances(
        kexec=start.method is BootMethod.KEXEC
        or _after_kexec(journalled)
        or (previous is not None and same_loader_run(previous, times) is True),
        soft_reboots=max(times.manager.soft_reboots or 0, journal.soft_reboots if journal else 0),
        hibernations=journal.hibernations if journal else int(slept(host) is True),
        emergency=journal is not None and journal.emergency,
        menu_shown=times.efi.menu_us is not None,
    )
    return BootRecord(
        boot_id=running_boot_id(host),
        source=RecordSource.UNIT,
        machine=machine_name((host.read_text("/etc/machine-id") or "").strip()),
        started_at=started_at,
        start=start,
        timestamps=replace(kernel.timestamps, command_line=None),
        shadow=kernel.shadow,
        boot_class=class_with_words(known, kernel.timestamps.machine),
        times=times,
        read=read_interval(start, times),
        phases=boot_phases(start.method, times),
        reboot_gap=reboot_gap(journalled),
        initcalls=kernel.initcalls,
        initrd_units=journal.initrd_units if journal else (),
        critical_chain=critical_chain(host, times.manager),
        modules=module_use(host),
        evidence=evidence,
        attribution=attribute(evidence, booted_at=started_at),
        rejections=rejections(kernel.timestamps, circumstances),
        notes=(*notes, *(f"{wrong.source}: {wrong.reason}" for wrong in there)),
    )


def past_record(
    journalled: Journalled,
    *,
    source: RecordSource,
    today: BootClass,
    attribute: Attribute,
    extra_cmdline: ExtraCmdline,
) -> BootRecord:
    """Return the record of a boot that only a journal tells of.

    ``today`` and the images that ``attribute`` knows are this machine's, and are of no use for
    others' boots. A journal does not tell how a boot was started, nor when a loader read what.
    """
    boot = journalled.boot
    timestamps = boot.kernel.timestamps
    own = source is RecordSource.BACKFILL
    started_at = _moment(boot.span.first.realtime_us - boot.span.first.monotonic_us)
    tags = parameters(timestamps.command_line or "", TRIAL_TAG) if own else ()
    # Of a trial that nothing is known of any more, the image's size may still be.
    trial = next((tag for tag in tags[-1:] if extra_cmdline(tag)), None)
    evidence = ImageEvidence(
        freed_kib=timestamps.loaded_kib,
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        trial=trial,
        initrd=named_initrd(timestamps.command_line or ""),
    )
    circumstances = Circumstances(
        kexec=_after_kexec(journalled),
        soft_reboots=boot.soft_reboots,
        hibernations=boot.hibernations,
        emergency=boot.emergency,
    )
    clue = "a journal does not tell how a boot was started"
    return BootRecord(
        boot_id=boot.span.boot_id,
        source=source,
        machine=machine_name(boot.span.machine_id),
        started_at=started_at,
        start=BootStart(method=BootMethod.UNKNOWN, certainty=Certainty.UNKNOWN, clues=(clue,)),
        timestamps=replace(timestamps, command_line=None),
        shadow=boot.kernel.shadow,
        boot_class=past_class(
            boot, today=today if own else None, extra_cmdline=extra_cmdline(trial)
        ),
        read=NoInterval(reason="a journal does not tell when a loader read what"),
        phases=_past_phases(boot.startup) if boot.startup else (),
        reboot_gap=reboot_gap(journalled),
        initcalls=boot.kernel.initcalls,
        initrd_units=boot.initrd_units,
        evidence=evidence,
        attribution=attribute(evidence, booted_at=started_at) if own else _FOREIGN,
        rejections=rejections(timestamps, circumstances),
    )


def running_boot_id(host: Host) -> str:
    """Return the running kernel's boot ID; raises ``InitadvisorError`` where it has none."""
    path = "/proc/sys/kernel/random/boot_id"
    if (text := host.read_text(path)) is None:
        msg = f"cannot read {path}: there is no telling this boot from others"
        raise InitadvisorError(msg)
    return text.strip().replace("-", "")


def _kernel(host: Host, journalled: Journalled | None) -> tuple[KernelBoot, tuple[str, ...]]:
    """Return the kernel's messages from its ring or from the journal, whichever has more.

    The ring may tell which task printed a message, and the journal never does: so it comes first
    where both have all.
    """
    found = [] if journalled is None else [journalled.boot.kernel]
    notes: tuple[str, ...] = ()
    try:
        found.insert(0, running_boot(host))
    except NeedsRootError as err:
        if not found:
            msg = f"{err.message}, and no journal that may be read has them"
            raise NeedsRootError(msg, hint=_WHO_MAY_READ) from err
        notes = (err.message,)
    except InitadvisorError as err:
        notes = (err.message,)
    nothing = KernelBoot(
        timestamps=KernelTimestamps(), shadow=ShadowObservation(waiting=Waiting.UNKNOWN)
    )
    return max(found, key=_fullness, default=nothing), notes


def _fullness(kernel: KernelBoot) -> tuple[bool, ...]:
    timestamps = kernel.timestamps
    return (
        timestamps.unpack_us is not None,
        timestamps.begin_to_init_us is not None,
        timestamps.release is not None,
        not timestamps.missed_messages,
    )


def _started_at(host: Host, journalled: Journalled | None) -> datetime:
    """Return when the kernel started: by the clock as it is now, rather than as it was then."""
    for line in (host.read_text("/proc/stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "btime" and value.isdecimal() and len(value) <= 11:
            return _moment(int(value) * 1_000_000)
    if journalled is None:
        msg = "cannot tell when this boot began: /proc/stat has no btime"
        raise InitadvisorError(msg)
    first = journalled.boot.span.first
    return _moment(first.realtime_us - first.monotonic_us)


def _moment(realtime_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=max(realtime_us, 0))


def _after_kexec(journalled: Journalled | None) -> bool:
    end = journalled.before_end if journalled else None
    return end is not None and end.ending is BootEnding.KEXEC


def reboot_gap(journalled: Journalled | None) -> RebootGapTime:
    """Return the time from the last message of the boot before to the start of this one's kernel.

    Between the two lie the end of the shutdown, the firmware and the loader. It is no time of the
    loader's, and for loaders that record none themselves: as the rest stays the same, differences
    between images show in it over several reboots. The kernel's start is told by two clocks at the
    last message of this boot, by when the wall clock has most likely been synchronised.
    """
    if journalled is None or journalled.before is None or journalled.before_end is None:
        return RebootGapTime(reason="the journal has no boot before this one")
    last, ending = journalled.boot.span.last, journalled.before_end.ending
    ended = "is not known to have ended" if ending is None else "did not end"
    duration_us = last.realtime_us - last.monotonic_us - journalled.before.last.realtime_us
    problems = (
        (journalled.end.slept, "the machine slept in this boot, its clocks cannot be compared"),
        (ending is not BootEnding.REBOOT, f"the boot before {ended} by a reboot"),
        (
            not journalled.before_end.synchronised,
            "the clock of the boot before was not synchronised",
        ),
        (not journalled.end.synchronised, "the clock of this boot is not synchronised"),
        (duration_us <= 0, "the kernel would have started before the boot before it ended"),
        (
            duration_us > _LONGEST_GAP_US,
            f"{duration_us / 1e6:.0f} s lie between the boots, more than ten minutes",
        ),
    )
    for applies, reason in problems:
        if applies:
            return RebootGapTime(reason=reason)
    return RebootGapTime(duration_us=duration_us)


def _past_phases(startup: StartupTimes) -> tuple[PhaseTime, ...]:
    durations = {
        Phase.FIRMWARE: startup.firmware_us,
        Phase.LOADER: startup.loader_us,
        Phase.KERNEL: startup.kernel_us,
        Phase.INITRD: startup.initrd_us,
        Phase.USERSPACE: startup.userspace_us,
    }
    return tuple(
        PhaseTime(phase=phase, duration_us=duration_us, source=PhaseSource.MANAGER)
        for phase, duration_us in durations.items()
        if duration_us is not None
    )


_DEFAULT_INIT = "/init"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of a boot from elsewhere than the kernel's messages."""

    kexec: bool = False
    soft_reboots: int = 0
    hibernations: int = 0
    emergency: bool = False
    menu_shown: bool = False


def rejections(
    timestamps: KernelTimestamps, circumstances: Circumstances = Circumstances()
) -> tuple[RejectionReason, ...]:
    """Return why a boot is no sample, nothing for one that is.

    Aids for debugging are no matter of taste here: KASAN, KMSAN, KCSAN and lockdep check each
    access or lock while the image is decompressed and its files are made, kmemleak, slab and page
    debugging each allocation, and a function tracer each call; a codec that allocates or locks
    otherwise than another loses more by them, so that even comparing such boots with each other
    misleads. ``initcall_debug`` is none of them: it only prints, and tells more of who waited. The
    same goes for unhashed addresses and trace_printk, however loud their warnings are. What the
    printing costs shows on the command line, which makes such boots a class of their own.
    """
    return (
        *_kernel_rejections(timestamps),
        *_applying(
            (circumstances.kexec, RejectionReason.KEXEC),
            (circumstances.emergency, RejectionReason.EMERGENCY),
            (circumstances.hibernations, RejectionReason.HIBERNATION),
            (circumstances.soft_reboots, RejectionReason.SOFT_REBOOT),
            (circumstances.menu_shown, RejectionReason.MENU),
        ),
    )


def _applying(*reasons: tuple[object, RejectionReason]) -> Iterator[RejectionReason]:
    return (reason for applies, reason in reasons if applies)


def _kernel_rejections(timestamps: KernelTimestamps) -> Iterator[RejectionReason]:
    if not timestamps.messages:
        yield RejectionReason.NO_MESSAGES
        return
    yield from _applying(
        (timestamps.failures, RejectionReason.UNPACK_FAILED),
        (timestamps.missed_messages, RejectionReason.MESSAGES_LOST),
    )
    if missing := _missing_mark(timestamps):
        yield missing
    yield from _applying(
        (timestamps.contradictory, RejectionReason.CONTRADICTORY),
        (timestamps.panic is not None, RejectionReason.PANICKED),
        (timestamps.oops is not None, RejectionReason.OOPSED),
        (timestamps.debug_aids, RejectionReason.DEBUG_KERNEL),
        (_is_crash_kernel(timestamps), RejectionReason.CRASH_KERNEL),
    )


def _missing_mark(timestamps: KernelTimestamps) -> RejectionReason | None:
    """Tell a mark that was never made from one that was lost.

    Where the image is retained nothing marks the end of its unpacking: what is waited for ends with
    it, but where nothing waits it ends unseen. Only a synchronous unpack that the kernel accounts
    for (initcall_debug) is timed all the same.
    """
    if _without_initramfs(timestamps):
        return RejectionReason.NO_INITRAMFS
    if not timestamps.begun:
        return RejectionReason.NO_BEGIN
    if timestamps.unpack_us is not None:
        return None
    if timestamps.freed:
        return RejectionReason.NO_TIMES
    return RejectionReason.RETAINED if timestamps.retained else RejectionReason.NO_END


def _without_initramfs(timestamps: KernelTimestamps) -> bool:
    """Tell whether nothing was passed, or nothing that has an /init.

    A kernel that finds no /init mounts the root file system itself and runs what is there: so it
    does with an image of microcode alone.
    """
    if timestamps.run_program is None:
        return False
    if timestamps.release is not None and not (
        timestamps.begun or timestamps.freed or timestamps.missed_messages
    ):
        return True
    if timestamps.command_line is None or not timestamps.command_line_whole:
        return False  # rdinit= may have stood there
    asked = parameters(timestamps.command_line, "rdinit")
    return timestamps.run_program != (asked[-1] if asked else _DEFAULT_INIT)


def _is_crash_kernel(timestamps: KernelTimestamps) -> bool:
    """kexec-tools passes the place of the dump (Documentation/admin-guide/kdump/kdump.rst)."""
    words = command_line_words(timestamps.command_line or "")
    return any(word.startswith("elfcorehdr=") for word in words)
