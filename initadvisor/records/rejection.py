"""Why a boot, although recorded, is no sample.

A boot of another kind (on battery, in a virtual machine, another kernel, command line or hardware)
is no reason: it is a sample of its own class.
"""

from __future__ import annotations

from enum import StrEnum


class RejectionReason(StrEnum):
    """Why a boot is no sample."""

    NO_MESSAGES = "no-messages"
    NO_TIMES = "no-times"
    NO_INITRAMFS = "no-initramfs"
    NO_BEGIN = "no-begin"
    NO_END = "no-end"
    MESSAGES_LOST = "messages-lost"
    CONTRADICTORY = "contradictory"
    UNPACK_FAILED = "unpack-failed"
    PANICKED = "panicked"
    RETAINED = "retained"
    DEBUG_KERNEL = "debug-kernel"
    CRASH_KERNEL = "crash-kernel"
    KEXEC = "kexec"
    SOFT_REBOOT = "soft-reboot"
    HIBERNATION = "hibernation"
    EMERGENCY = "emergency"
    MENU = "menu"

    @property
    def explanation(self) -> str:
        """One line for people."""
        return _EXPLANATIONS[self]

    @property
    def only_loader(self) -> bool:
        """Whether the kernel's part of such a boot is a sample all the same.

        The kernel unpacks the image once, before anything of this can happen or whatever the
        loader did before; only the times of firmware and loader belong to something else.
        """
        return self in {
            RejectionReason.SOFT_REBOOT,
            RejectionReason.HIBERNATION,
            RejectionReason.MENU,
        }


_EXPLANATIONS = {
    RejectionReason.NO_MESSAGES: "the kernel's messages of this boot are gone",
    RejectionReason.NO_TIMES: (
        "the kernel's messages carry no times, or none that tell how long it took"
    ),
    RejectionReason.NO_INITRAMFS: "the boot loader passed no initramfs that the kernel could use",
    RejectionReason.NO_BEGIN: "the message that unpacking begins is missing",
    RejectionReason.NO_END: "the message that unpacking has ended is missing",
    RejectionReason.MESSAGES_LOST: "kernel messages were lost before /init ran",
    RejectionReason.CONTRADICTORY: "the kernel's marks cannot all be of one boot",
    RejectionReason.UNPACK_FAILED: "the kernel could not unpack the image, or not all of it",
    RejectionReason.PANICKED: "the kernel panicked before /init ran",
    RejectionReason.RETAINED: (
        "retain_initrd or keepinitrd: the kernel does not say when it has unpacked"
    ),
    RejectionReason.DEBUG_KERNEL: "a kernel with aids for debugging that slow it down",
    RejectionReason.CRASH_KERNEL: "a kernel that was started to save a crash dump",
    RejectionReason.KEXEC: "started by another kernel (kexec), not by firmware and loader",
    RejectionReason.SOFT_REBOOT: "a soft reboot since: user space's times are not the boot's",
    RejectionReason.HIBERNATION: (
        "a resume from hibernation since: the loader's times are not the boot's"
    ),
    RejectionReason.EMERGENCY: "the boot ended in emergency mode",
    RejectionReason.MENU: "the loader's menu was shown: its time includes somebody's decision",
}
