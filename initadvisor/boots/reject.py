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
    marks: KernelTimestamps, circumstances: Circumstances = Circumstances()
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
    return (*_of_kernel(marks), *_of_circumstances(circumstances))


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


def _of_kernel(marks: KernelTimestamps) -> Iterator[RejectionReason]:
    if not marks.messages:
        yield RejectionReason.NO_MESSAGES
        return
    yield from _of_image(marks)
    if marks.contradictory:
        yield RejectionReason.CONTRADICTORY
    if marks.panic is not None and marks.run_program is None:
        yield RejectionReason.PANICKED
    if marks.debug_aids:
        yield RejectionReason.DEBUG_KERNEL
    if _is_crash_kernel(marks):
        yield RejectionReason.CRASH_KERNEL


def _of_image(marks: KernelTimestamps) -> Iterator[RejectionReason]:
    """Tell a mark that was never made from one that was lost.

    Where the image is retained nothing marks the end of its unpacking: what is waited for ends with
    it, but where nothing waits it ends unseen. Only a synchronous unpack that the kernel accounts
    for (initcall_debug) is timed all the same.
    """
    if marks.failures:
        yield RejectionReason.UNPACK_FAILED
    if marks.missed_messages:
        yield RejectionReason.MESSAGES_LOST
    if _without_initramfs(marks):
        yield RejectionReason.NO_INITRAMFS
    elif not marks.begun:
        yield RejectionReason.NO_BEGIN
    elif not marks.freed:
        if marks.unpack_us is None:
            yield RejectionReason.RETAINED if marks.retained else RejectionReason.NO_END
    elif marks.unpack_us is None:
        yield RejectionReason.NO_TIMES


def _without_initramfs(marks: KernelTimestamps) -> bool:
    """Tell whether nothing was passed, or nothing that has an /init.

    A kernel that finds no /init mounts the root file system itself and runs what is there: so it
    does with an image of microcode alone.
    """
    if marks.run_program is None:
        return False
    if marks.release is not None and not marks.begun and not marks.missed_messages:
        return True
    if marks.command_line is None or not marks.command_line_whole:
        return False  # rdinit= may have stood there
    asked = parameters(marks.command_line, "rdinit")
    return marks.run_program != (asked[-1] if asked else _DEFAULT_INIT)


def _is_crash_kernel(marks: KernelTimestamps) -> bool:
    """kexec-tools passes the place of the dump (Documentation/admin-guide/kdump/kdump.rst)."""
    words = command_line_words(marks.command_line or "")
    return any(word.startswith("elfcorehdr=") for word in words)
