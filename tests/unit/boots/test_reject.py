"""Which boots are no samples, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from initadvisor.boots.reject import Circumstances, rejections
from initadvisor.records.marks import BootMarks, DebugAid
from initadvisor.records.rejection import Reason

GOOD = BootMarks(
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
        (BootMarks(), (Reason.NO_MESSAGES,)),
        (NOTHING_BEGUN, (Reason.NO_INITRAMFS,)),
        (replace(NOTHING_BEGUN, release=None), (Reason.NO_BEGIN,)),
        (replace(NOTHING_BEGUN, run_program=None), (Reason.NO_BEGIN,)),
        (
            replace(NOTHING_BEGUN, missed_messages=3),
            (Reason.MESSAGES_LOST, Reason.NO_BEGIN),
        ),
        (replace(GOOD, run_program="/sbin/init"), (Reason.NO_INITRAMFS,)),
        (replace(GOOD, run_program="/bin/sh", command_line="rdinit=/bin/sh"), ()),
        (replace(GOOD, run_program="/bin/sh", command_line_whole=False), ()),
        (NOTHING_FREED, (Reason.NO_END,)),
        (replace(NOTHING_FREED, retained=True), (Reason.RETAINED,)),
        (replace(NOTHING_FREED, retained=True, initcall_us=5), (Reason.RETAINED,)),
        (replace(NOTHING_FREED, retained=True, initcall_us=5, synchronous=True), ()),
        (replace(GOOD, begin_us=None, end_us=None), (Reason.NO_TIMES,)),
        (replace(GOOD, missed_messages=1), (Reason.MESSAGES_LOST,)),
        (replace(GOOD, failures=("Decoding failed",)), (Reason.UNPACK_FAILED,)),
        (replace(GOOD, contradictory=True), (Reason.CONTRADICTORY,)),
        (replace(GOOD, panic="VFS", run_program=None), (Reason.PANICKED,)),
        (replace(GOOD, debug_aids=(DebugAid.KASAN,)), (Reason.DEBUG_KERNEL,)),
        (
            replace(GOOD, command_line="irqpoll elfcorehdr=0x7f000000"),
            (Reason.CRASH_KERNEL,),
        ),
    ],
)
def test_a_kernel_s_marks_tell_whether_they_are_a_sample(
    marks: BootMarks, reasons: tuple[Reason, ...]
) -> None:
    assert rejections(marks) == reasons


@pytest.mark.parametrize(
    ("circumstances", "reason"),
    [
        (Circumstances(kexec=True), Reason.KEXEC),
        (Circumstances(soft_reboots=1), Reason.SOFT_REBOOT),
        (Circumstances(hibernations=1), Reason.HIBERNATION),
        (Circumstances(emergency=True), Reason.EMERGENCY),
        (Circumstances(menu_shown=True), Reason.MENU),
    ],
)
def test_what_else_is_known_rejects_a_boot_too(
    circumstances: Circumstances, reason: Reason
) -> None:
    assert rejections(GOOD, circumstances) == (reason,)


def test_only_the_loader_s_part_is_spoilt_by_what_the_kernel_does_not_feel() -> None:
    assert {reason for reason in Reason if reason.only_loader} == {
        Reason.SOFT_REBOOT,
        Reason.HIBERNATION,
        Reason.MENU,
    }


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_explained_in_one_line(reason: Reason) -> None:
    assert 20 < len(reason.explanation) < 80
    assert "\n" not in reason.explanation
