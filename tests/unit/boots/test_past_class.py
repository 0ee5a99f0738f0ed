"""The class of a boot by the kernel's words."""

from __future__ import annotations

import pytest

from initadvisor.boots.boot_class import class_with_words, past_class
from initadvisor.boots.journal import BootSpan, JournalBoot, Moment
from initadvisor.records.boot_class import BootClass, Hardware, command_line_sha256
from initadvisor.records.marks import (
    KernelBoot,
    KernelTimestamps,
    MachineWords,
    ShadowObservation,
    Waiting,
)

PRODUCT = "LENOVO 20N588101/20N588101, BIOS N2IETA0W (1.78 ) 09/19/2023"
WORDS = MachineWords(product=PRODUCT, processor="A Processor", microcode="0xf4")
NOW = Moment(realtime_us=1, monotonic_us=1)


def past(
    words: MachineWords,
    *,
    today: BootClass | None = None,
    command_line: str | None = "root=/dev/sda1 BOOT_IMAGE=/vmlinuz",
    whole: bool = True,
) -> BootClass:
    marks = KernelTimestamps(
        release="6.1.0",
        version="#1 SMP",
        command_line=command_line,
        command_line_whole=whole,
        machine=words,
    )
    shadow = ShadowObservation(waiting=Waiting.UNKNOWN)
    span = BootSpan(boot_id="0" * 32, machine_id=None, first=NOW, last=NOW)
    boot = JournalBoot(
        span=span, kernel=KernelBoot(timestamps=marks, shadow=shadow), on_battery=True
    )
    return past_class(boot, today=today)


def test_the_class_of_a_boot_is_told_by_its_messages() -> None:
    assert past(WORDS) == BootClass(
        virtualisation=None,
        on_battery=True,
        kernel="6.1.0 #1 SMP",
        command_line_sha256=command_line_sha256("root=/dev/sda1", key=b""),
        hardware=Hardware(
            product="LENOVO 20N588101/20N588101",
            firmware_version="N2IETA0W (1.78 ) 09/19/2023",
            cpu_model="A Processor",
            microcode="0xf4",
        ),
    )


@pytest.mark.parametrize(("line", "whole"), [(None, True), ("root=/dev/sd", False)])
def test_a_command_line_that_is_not_whole_is_not_known(line: str | None, whole: bool) -> None:
    assert past(WORDS, command_line=line, whole=whole).command_line_sha256 is None


@pytest.mark.parametrize(
    ("hypervisor", "word"),
    [("KVM", "kvm"), ("Microsoft Hyper-V", "microsoft"), ("Something New", "something new")],
)
def test_a_hypervisor_is_named_as_systemd_names_it(hypervisor: str, word: str) -> None:
    assert past(MachineWords(hypervisor=hypervisor)).virtualisation == word


def test_for_the_same_product_it_is_what_it_is_today() -> None:
    """TCG tells the kernel of no hypervisor, and VirtualBox of KVM's interface."""
    today = BootClass(
        virtualisation="oracle", hardware=Hardware(product="LENOVO 20N588101/20N588101")
    )
    assert past(WORDS, today=today).virtualisation == "oracle"
    words = MachineWords(hypervisor="KVM", product="innotek GmbH VirtualBox, BIOS VirtualBox 1")
    assert past(words, today=today).virtualisation == "kvm"
    assert past(MachineWords(), today=today).virtualisation == "oracle"  # no such words on ARM


def test_the_kernel_s_words_come_before_what_sys_shows_and_leave_the_rest() -> None:
    shown = BootClass(
        virtualisation="none",
        hardware=Hardware(product="20N588101", microcode="0x1", boot_disk="A Disk, 1.0 GB"),
    )
    both = class_with_words(shown, MachineWords(product=PRODUCT))
    assert both.hardware == Hardware(
        product="LENOVO 20N588101/20N588101",
        firmware_version="N2IETA0W (1.78 ) 09/19/2023",
        microcode="0x1",
        boot_disk="A Disk, 1.0 GB",
    )
    assert class_with_words(shown, MachineWords()) == shown
