"""Why a boot is no sample: every reason that applies, the most telling first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.records.boot_class import command_line_words, parameters
from initadvisor.records.rejection import RejectionReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.records.marks import KernelTimestamps


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
    return (*_of_kernel(timestamps), *_of_circumstances(circumstances))


def _of_circumstances(circumstances: Circumstances) -> Iterator[RejectionReason]:
    if circumstances.kexec:
        yield RejectionReason.KEXEC
    if circumstances.emergency:
        yield RejectionReason.EMERGENCY
    if circumstances.hibernations:
        yield RejectionReason.HIBERNATION
    if circumstances.soft_reboots:
        yield RejectionReason.SOFT_REBOOT
    if circumstances.menu_shown:
        yield RejectionReason.MENU


def _of_kernel(timestamps: KernelTimestamps) -> Iterator[RejectionReason]:
    if not timestamps.messages:
        yield RejectionReason.NO_MESSAGES
        return
    yield from _of_image(timestamps)
    if timestamps.contradictory:
        yield RejectionReason.CONTRADICTORY
    if timestamps.panic is not None and timestamps.run_program is None:
        yield RejectionReason.PANICKED
    if timestamps.debug_aids:
        yield RejectionReason.DEBUG_KERNEL
    if _is_crash_kernel(timestamps):
        yield RejectionReason.CRASH_KERNEL


def _of_image(timestamps: KernelTimestamps) -> Iterator[RejectionReason]:
    """Tell a mark that was never made from one that was lost.

    Where the image is retained nothing marks the end of its unpacking: what is waited for ends with
    it, but where nothing waits it ends unseen. Only a synchronous unpack that the kernel accounts
    for (initcall_debug) is timed all the same.
    """
    if timestamps.failures:
        yield RejectionReason.UNPACK_FAILED
    if timestamps.missed_messages:
        yield RejectionReason.MESSAGES_LOST
    if _without_initramfs(timestamps):
        yield RejectionReason.NO_INITRAMFS
    elif not timestamps.begun:
        yield RejectionReason.NO_BEGIN
    elif not timestamps.freed:
        if timestamps.unpack_us is None:
            yield RejectionReason.RETAINED if timestamps.retained else RejectionReason.NO_END
    elif timestamps.unpack_us is None:
        yield RejectionReason.NO_TIMES


def _without_initramfs(timestamps: KernelTimestamps) -> bool:
    """Tell whether nothing was passed, or nothing that has an /init.

    A kernel that finds no /init mounts the root file system itself and runs what is there: so it
    does with an image of microcode alone.
    """
    if timestamps.run_program is None:
        return False
    if timestamps.release is not None and not timestamps.begun and not timestamps.missed_messages:
        return True
    if timestamps.command_line is None or not timestamps.command_line_whole:
        return False  # rdinit= may have stood there
    asked = parameters(timestamps.command_line, "rdinit")
    return timestamps.run_program != (asked[-1] if asked else _DEFAULT_INIT)


def _is_crash_kernel(timestamps: KernelTimestamps) -> bool:
    """kexec-tools passes the place of the dump (Documentation/admin-guide/kdump/kdump.rst)."""
    words = command_line_words(timestamps.command_line or "")
    return any(word.startswith("elfcorehdr=") for word in words)
