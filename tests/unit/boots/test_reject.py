"""Which boots are no samples, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from initadvisor.boots.record import Circumstances, rejections
from initadvisor.records.boot import RejectionReason
from initadvisor.records.marks import DebugAid, KernelTimestamps

GOOD = KernelTimestamps(
    release="6.1.0",
    version="#1 SMP",
    command_line="root=/dev/sda1 ro",
    begun=True,
    freed=True,
    begin_us=300_000,
    end_us=500_000,
    run_init_us=600_000,
    run_program="/init",
    loaded_kib=42152,
    synchronous=False,
    messages=800,
)
NOTHING_FREED = replace(GOOD, freed=False, end_us=None, loaded_kib=None)
NOTHING_BEGUN = replace(NOTHING_FREED, begun=False, begin_us=None)


@pytest.mark.parametrize(
    ("marks", "reasons"),
    [
        (GOOD, ()),
        (replace(GOOD, run_init_us=None, run_program=None), ()),
        (replace(GOOD, release=None, command_line=None), ()),
        (KernelTimestamps(), (RejectionReason.NO_MESSAGES,)),
        (NOTHING_BEGUN, (RejectionReason.NO_INITRAMFS,)),
        (replace(NOTHING_BEGUN, release=None), (RejectionReason.NO_BEGIN,)),
        (replace(NOTHING_BEGUN, run_program=None), (RejectionReason.NO_BEGIN,)),
        (
            replace(NOTHING_BEGUN, missed_messages=3),
            (RejectionReason.MESSAGES_LOST, RejectionReason.NO_BEGIN),
        ),
        (replace(GOOD, run_program="/sbin/init"), (RejectionReason.NO_INITRAMFS,)),
        (replace(GOOD, run_program="/bin/sh", command_line="rdinit=/bin/sh"), ()),
        (replace(GOOD, run_program="/bin/sh", command_line_whole=False), ()),
        (replace(GOOD, begun=False, begin_us=None), (RejectionReason.NO_BEGIN,)),
        (NOTHING_FREED, (RejectionReason.NO_END,)),
        (replace(NOTHING_FREED, retained=True), (RejectionReason.RETAINED,)),
        (replace(NOTHING_FREED, retained=True, initcall_us=5), (RejectionReason.RETAINED,)),
        (replace(NOTHING_FREED, retained=True, initcall_us=5, synchronous=True), ()),
        (replace(GOOD, begin_us=None, end_us=None), (RejectionReason.NO_TIMES,)),
        (replace(GOOD, missed_messages=1), (RejectionReason.MESSAGES_LOST,)),
        (replace(GOOD, failures=("Decoding failed",)), (RejectionReason.UNPACK_FAILED,)),
        (replace(GOOD, contradictory=True), (RejectionReason.CONTRADICTORY,)),
        (replace(GOOD, panic="VFS", run_program=None), (RejectionReason.PANICKED,)),
        (replace(GOOD, panic="VFS"), (RejectionReason.PANICKED,)),
        (replace(GOOD, oops="Oops: 0002 [#1] SMP"), (RejectionReason.OOPSED,)),
        (replace(GOOD, debug_aids=(DebugAid.KASAN,)), (RejectionReason.DEBUG_KERNEL,)),
        (
            replace(GOOD, command_line="irqpoll elfcorehdr=0x7f000000"),
            (RejectionReason.CRASH_KERNEL,),
        ),
    ],
)
def test_a_kernel_s_marks_tell_whether_they_are_a_sample(
    marks: KernelTimestamps, reasons: tuple[RejectionReason, ...]
) -> None:
    assert rejections(marks) == reasons


@pytest.mark.parametrize(
    ("circumstances", "reason"),
    [
        (Circumstances(kexec=True), RejectionReason.KEXEC),
        (Circumstances(soft_reboots=1), RejectionReason.SOFT_REBOOT),
        (Circumstances(hibernations=1), RejectionReason.HIBERNATION),
        (Circumstances(emergency=True), RejectionReason.EMERGENCY),
        (Circumstances(menu_shown=True), RejectionReason.MENU),
    ],
)
def test_what_else_is_known_rejects_a_boot_too(
    circumstances: Circumstances, reason: RejectionReason
) -> None:
    assert rejections(GOOD, circumstances) == (reason,)


def test_only_the_loader_s_part_is_spoilt_by_what_the_kernel_does_not_feel() -> None:
    assert {reason for reason in RejectionReason if reason.only_loader} == {
        RejectionReason.SOFT_REBOOT,
        RejectionReason.HIBERNATION,
        RejectionReason.MENU,
    }


@pytest.mark.parametrize("reason", RejectionReason)
def test_every_reason_is_explained_in_one_line(reason: RejectionReason) -> None:
    assert 20 < len(reason.explanation) < 80
    assert "\n" not in reason.explanation
