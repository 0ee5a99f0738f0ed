"""Whether the init task waited: real boots whose logs somebody has read, and made-up edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.records.kernel_log import KernelMessage, read_message
from initadvisor.records.marks import WaitEvidence, Waiting
from tests.fixtures.kernel_boots import read_boot

if TYPE_CHECKING:
    from initadvisor.records.marks import KernelBoot

PUBLISHED = Path(__file__).parents[2] / "fixtures/kernel_logs/published_boots.json"
BOOTS: list[dict[str, Any]] = json.loads(PUBLISHED.read_text(encoding="utf-8"))["boots"]


def replayed(boot: dict[str, Any]) -> KernelBoot:
    """Return what is made of a published boot's marks and the messages around the end."""
    said = [
        (0, f"Linux version {boot['release']} (someone@somewhere) (cc) #1 SMP"),
        (boot["begin_us"], "Trying to unpack rootfs image as initramfs..."),
        (boot["last_us"], boot["last"] or "something of no renown"),
        (boot["end_us"], f"Freeing initrd memory: {boot['freed_kib']}K"),
        (boot["next_us"], boot["next"] or "something else"),
        (boot["init_us"], "Run /init as init process"),
    ]
    return read_boot(
        KernelMessage(text=text, time_us=time_us) for time_us, text in said if time_us is not None
    )


def told(log: str) -> KernelBoot:
    """Return what is made of a log."""
    return read_boot(read_message(line) for line in log.strip().splitlines())


@pytest.mark.parametrize("boot", BOOTS, ids=lambda boot: boot["source_id"])
def test_a_published_boot_is_judged_as_its_reader_did(boot: dict[str, Any]) -> None:
    seen = replayed(boot).shadow
    expected = {None: Waiting.SYNCHRONOUS, True: Waiting.WAITED, False: Waiting.HIDDEN}
    assert seen.waiting is expected[boot["waited"]]


@pytest.mark.parametrize(
    "boot", [b for b in BOOTS if b["begin_us"] and b["init_us"]], ids=lambda boot: boot["source_id"]
)
def test_what_is_seen_of_a_published_boot_obeys_the_model(boot: dict[str, Any]) -> None:
    kernel = replayed(boot)
    marks, seen = kernel.timestamps, kernel.shadow
    unpack_us = boot["end_us"] - boot["begin_us"]
    to_init_us = boot["init_us"] - boot["begin_us"]
    assert marks.unpack_us == unpack_us
    assert marks.begin_to_init_us == to_init_us
    assert seen.slack_us == boot["init_us"] - boot["end_us"]
    if seen.waiting is Waiting.HIDDEN:
        assert (seen.shadow_us, seen.rest_us) == (None, None)
        assert (seen.shadow_min_us, seen.shadow_max_us) == (unpack_us, to_init_us)
        return
    assert seen.shadow_us is not None
    assert seen.rest_us is not None
    assert max(seen.shadow_us, unpack_us) + seen.rest_us == to_init_us
    waited_us = boot["last_us"] - boot["begin_us"]
    assert seen.shadow_us == (waited_us if seen.waiting is Waiting.WAITED else 0)


def test_caller_ids_tell_whose_silence_it_is() -> None:
    seen = told("""
[    0.000000][    T0] Linux version 6.14.0 (a@b) (cc) #1 SMP
[    0.300000][   T12] Trying to unpack rootfs image as initramfs...
[    0.310000][    T1] workingset: timestamp_bits=40
[    0.400000][   T45] tun: something of another task
[    0.499000][    C0] an interrupt
[    0.500000][   T12] Freeing initrd memory: 42152K
[    0.501000][   T77] yet another task
[    0.510000][    T1] Key type asymmetric registered
[    0.600000][    T1] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.evidence is WaitEvidence.CALLER_IDS
    assert seen.shadow_us == 10_000
    assert seen.rest_us == 100_000
    assert seen.waiter == "workingset: timestamp_bits=40"
    assert seen.resumed == "Key type asymmetric registered"


def test_an_init_task_that_speaks_until_the_end_has_not_waited() -> None:
    seen = told("""
[    0.000000][    T0] Linux version 6.14.0 (a@b) (cc) #1 SMP
[    0.300000][   T12] Trying to unpack rootfs image as initramfs...
[    0.480000][    T1] pci 0000:00:1f.0: quirk
[    0.499900][    T1] pci 0000:00:1f.2: quirk
[    0.500000][   T12] Freeing initrd memory: 42152K
[    0.500100][    T1] pci 0000:00:1f.3: quirk
[    0.600000][    T1] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.HIDDEN
    assert seen.shadow_us is None
    assert (seen.shadow_min_us, seen.shadow_max_us) == (200_000, 300_000)


def test_a_caller_id_of_the_init_task_shows_an_unpack_that_nothing_runs_beside() -> None:
    kernel = told("""
[    0.300000][    T1] Trying to unpack rootfs image as initramfs...
[    0.500000][    T1] Freeing initrd memory: 42152K
[    0.600000][    T1] Run /init as init process
""")
    assert kernel.timestamps.synchronous is True
    assert kernel.shadow.waiting is Waiting.SYNCHRONOUS
    assert (kernel.shadow.shadow_us, kernel.shadow.rest_us) == (0, 100_000)


def test_initcalls_name_who_waited() -> None:
    seen = told("""
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.299000] calling  populate_rootfs+0x0/0x60 @ 1
[    0.299100] initcall populate_rootfs+0x0/0x60 returned 0 after 5 usecs
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] calling  crypto_kdf108_init+0x0/0x12c @ 1
[    0.480000] a line of somebody
[    0.490000] calling  fuse_init+0x0/0x12c [fuse] @ 145
[    0.500000] Freeing initrd memory: 42152K
[    0.500200] initcall fuse_init+0x0/0x12c [fuse] returned 0 after 10000 usecs
[    0.501000] initcall crypto_kdf108_init+0x0/0x12c returned 0 after 151000 usecs
[    0.501100] calling  next_init+0x0/0x12c @ 1
[    0.600000] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.evidence is WaitEvidence.INITCALLS
    assert seen.waiter == "crypto_kdf108_init"
    assert seen.shadow_us == 50_000


def test_initcalls_show_that_nobody_waited() -> None:
    seen = told("""
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] calling  tpm_init+0x0/0x12c @ 1
[    0.500000] Freeing initrd memory: 42152K
[    1.501000] initcall tpm_init+0x0/0x12c returned 0 after 1151000 usecs
[    1.600000] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.HIDDEN
    assert seen.evidence is WaitEvidence.INITCALLS
    assert (seen.shadow_min_us, seen.shadow_max_us) == (200_000, 1_300_000)


def test_lines_of_others_do_not_break_a_silence() -> None:
    seen = told("""
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] NET: Registered PF_INET6 protocol family
[    0.400000] usb 1-1: new high-speed USB device number 2 using xhci_hcd
[    0.450000] tsc: Refined TSC clocksource calibration: 2100.000 MHz
[    0.470000] clocksource: Switched to clocksource tsc
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.600000] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.evidence is WaitEvidence.LINES
    assert seen.shadow_us == 50_000


def test_a_silence_broken_by_a_line_of_unknown_origin_is_not_judged() -> None:
    seen = told("""
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] NET: Registered PF_INET6 protocol family
[    0.499000] wlan0: a line of somebody
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.600000] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.UNKNOWN
    assert seen.shadow_us is None
    assert seen.rest_us is None
    assert (seen.shadow_min_us, seen.shadow_max_us) == (0, 300_000)
    assert seen.slack_us == 100_000


def test_a_slow_processor_may_take_longer_after_a_known_waiter() -> None:
    """From a boot of Linux 6.12 in QEMU without KVM, whose first waiter is a crypto self-test."""
    log = """
[    0.000000] Linux version 6.12.107 (a@b) (cc) #1 SMP
[    1.989115] Trying to unpack rootfs image as initramfs...
[    2.584647] Key type asymmetric registered
[    2.602410] {words}
[    2.994840] tsc: Refined TSC clocksource calibration: 2100.000 MHz
[    7.523164] Freeing initrd memory: 20288K
[    8.626600] Block layer SCSI generic (bsg) driver version 0.4 loaded (major 247)
[   15.758698] Run /init as init process
"""
    known = told(log.format(words="Asymmetric key parser 'x509' registered")).shadow
    assert known.waiting is Waiting.WAITED
    assert known.shadow_us == 613_295
    assert told(log.format(words="ACPI: thermal zone")).shadow.waiting is Waiting.HIDDEN


def test_a_known_waiter_that_is_heard_of_late_may_have_waited_or_worked() -> None:
    """From a boot of Linux 7.2 in QEMU without KVM: initcall_debug shows that it waits there."""
    seen = told("""
[    0.000000] Linux version 7.2.13 (a@b) (cc) #1 SMP
[    1.343264] Trying to unpack rootfs image as initramfs...
[    2.024241] Loading compiled-in X.509 certificates
[    2.030726] clocksource: Watchdog remote CPU 1 read timed out
[    2.346593] tsc: Refined TSC clocksource calibration: 2100.000 MHz
[    2.834669] Freeing initrd memory: 17500K
[    3.449656] Loaded X.509 cert 'Build time autogenerated kernel key: cdc248013ad4'
[    5.622450] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.UNKNOWN
    assert (seen.shadow_us, seen.shadow_min_us, seen.shadow_max_us) == (None, 0, 4_279_186)


def test_a_task_that_was_silent_before_unpacking_began_had_nothing_else_to_do() -> None:
    seen = told("""
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.290000] PCI: CLS 64 bytes, default 64
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.600000] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.shadow_us == 0


def test_without_a_beginning_b2_is_known_and_b1_is_not() -> None:
    seen = told("""
[    0.350000] NET: Registered PF_INET6 protocol family
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.600000] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.rest_us == 100_000
    assert (seen.shadow_us, seen.shadow_min_us, seen.shadow_max_us) == (None, None, None)


def test_nothing_is_told_of_nothing() -> None:
    seen = read_boot([]).shadow
    assert seen.waiting is Waiting.UNKNOWN
    assert seen.slack_us is None
