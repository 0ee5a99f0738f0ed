"""Whether the init task waited: real boots whose logs somebody has read, and made-up edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.boots.record import rejections
from initadvisor.records.boot import RejectionReason
from initadvisor.records.kernel_log import KernelMessage, read_message
from initadvisor.records.marks import ShadowObservation, WaitEvidence, Waiting
from tests.fixtures.kernel_boots import read_boot

if TYPE_CHECKING:
    from initadvisor.records.marks import KernelBoot

PUBLISHED = Path(__file__).parents[2] / "fixtures/kernel_logs/published_boots.json"
BOOTS: list[dict[str, Any]] = json.loads(PUBLISHED.read_text(encoding="utf-8"))["boots"]
EXCERPTS: list[dict[str, Any]] = json.loads(
    PUBLISHED.with_name("published_excerpts.json").read_text(encoding="utf-8")
)["boots"]


BEGIN = "Trying to unpack rootfs image as initramfs..."


def replayed(boot: dict[str, Any]) -> KernelBoot:
    """Return what is made of a published boot's marks and the messages around the end."""
    said = [
        (0, f"Linux version {boot['release']} (someone@somewhere) (cc) #1 SMP"),
        (
            None if boot["last_us"] == boot["begin_us"] else boot["last_us"],
            boot["last"] or "something of no renown",
        ),
        (boot["end_us"], f"Freeing initrd memory: {boot['freed_kib']}K"),
        (boot["next_us"], boot["next"] or "something else"),
        (boot["init_us"], "Run /init as init process"),
    ]
    messages = [
        KernelMessage(text=text, time_us=time_us) for time_us, text in said if time_us is not None
    ]
    return read_boot(
        [messages[0], KernelMessage(text=BEGIN, time_us=boot["begin_us"]), *messages[1:]]
    )


def told(log: str) -> KernelBoot:
    """Return what is made of a log."""
    return read_boot(read_message(line) for line in log.strip().splitlines())


@pytest.mark.parametrize("boot", BOOTS, ids=lambda boot: boot["source_id"])
def test_a_published_boot_is_judged_as_its_reader_did(boot: dict[str, Any]) -> None:
    seen = replayed(boot).shadow
    expected = {None: Waiting.SYNCHRONOUS, True: Waiting.WAITED, False: Waiting.HIDDEN}
    assert seen.waiting is expected[boot["waited"]]


@pytest.mark.parametrize("boot", EXCERPTS, ids=lambda boot: boot["source_id"])
def test_an_excerpt_of_a_published_log_is_judged_as_its_reader_did(boot: dict[str, Any]) -> None:
    messages = [
        KernelMessage(text=words, time_us=time_us, caller=caller[0] if caller else None)
        for time_us, words, *caller in boot["lines"]
    ]
    if boot["release"]:
        text = f"Linux version {boot['release']} (someone@somewhere) (cc) #1 SMP"
        said = [KernelMessage(text=text, time_us=0)]
        if not any(message.text.endswith("initramfs...") for message in messages):
            said.append(KernelMessage(text=BEGIN, time_us=None))
        messages = said + messages
    kernel = read_boot(messages)
    seen = kernel.shadow
    assert seen.waiting == (boot["reader"] if kernel.timestamps.begun else Waiting.UNKNOWN)
    if seen.shadow_us is not None and seen.waiting is Waiting.WAITED:
        assert kernel.timestamps.begin_us is not None
        assert kernel.timestamps.begin_us + seen.shadow_us == boot["last_us"]


@pytest.mark.parametrize("release", ["5.12.0-rc4-next-20210325", "5.12.0-rc8+", "4.18.0-305.el8"])
def test_what_goes_on_beside_tells_more_than_the_release(release: str) -> None:
    kernel = told(f"""
[    0.000000] Linux version {release} (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.310000] Initialise system trusted keyrings
[    0.350000] NET: Registered protocol family 10
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.600000] Run /init as init process
""")
    assert kernel.timestamps.synchronous is False
    assert kernel.shadow.waiting is Waiting.WAITED
    assert kernel.shadow.shadow_us == 50_000


@pytest.mark.parametrize(
    "beside",
    [
        "tsc: Refined TSC clocksource calibration: 2100.000 MHz",
        "random: crng init done",
        "usb 1-1: new high-speed USB device number 2 using ehci-pci",
        "decompress cpio completed and skip redundant lzma",
        "Compressed data magic: 0x1f 0x8b",
        "INFO: rcu_sched self-detected stall on CPU",
        "do_idle\n[    0.360000] do_idle\n[    0.370000] do_idle",
    ],
)
def test_threads_and_the_unpacking_itself_are_nothing_beside_it(beside: str) -> None:
    kernel = told(f"""
[    0.000000] Linux version 4.19.0 (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] {beside}
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] workingset: timestamp_bits=40
[    0.600000] Run /init as init process
""")
    assert kernel.timestamps.synchronous is True
    assert kernel.shadow.waiting is Waiting.SYNCHRONOUS


def test_a_warning_of_who_unpacks_is_nothing_beside_it() -> None:
    kernel = told("""
[    3.000000] Linux version 4.9.38 (a@b) (cc) #1 SMP
[    3.487858] Trying to unpack rootfs image as initramfs...
[    3.780170] ------------[ cut here ]------------
[    3.785345] WARNING: CPU: 0 PID: 1 at arch/x86/mm/init.c:690 free_init_pages+0x4f/0x92
[    3.794189] Modules linked in:
[    3.797613] CPU: 0 PID: 1 Comm: swapper/0 Tainted: G          I     4.9.38 #0
[    3.806161]  ffffc9000000bdd0 ffffffff8121c1aa 0000000000000000 0000000000000000
[    3.831047] Call Trace:
[    3.833782]  [<ffffffff8121c1aa>] dump_stack+0x4d/0x63
[    3.902000] ---[ end trace e84ef6c1ea4a5e37 ]---
[    3.910000] Freeing initrd memory: 4216K
[    3.920000] workingset: timestamp_bits=40
""")
    assert kernel.timestamps.synchronous is True


OTHERS = """\
[    0.5{n}] hub 1-0:1.0: USB hub found
[    0.5{n}] ehci-pci 0000:00:1a.0: USB 2.0 started, EHCI 1.00
[    0.5{n}] ACPI: battery: Slot [BAT0] (battery present)
"""


def test_any_number_of_other_threads_lines_after_the_end_are_not_the_init_task() -> None:
    others = "".join(OTHERS.format(n=f"{n:05}") for n in range(1, 2000, 10))
    log = """
[    0.000000] Linux version 6.1.0 (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] {words}
[    0.500000] Freeing initrd memory: 42152K
{others}[    0.{resumed}] {then}
[    1.600000] Run /init as init process
"""
    busy = log.format(
        words="loop: module loaded", others=others, resumed="900000", then="tun: Universal TUN/TAP"
    )
    assert told(busy).shadow.waiting is Waiting.HIDDEN
    waited = log.format(
        words="NET: Registered PF_INET6 protocol family",
        others=others,
        resumed="525000",
        then="Segment Routing with IPv6",
    )
    seen = told(waited).shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.resumed == "Segment Routing with IPv6"


def test_other_threads_lines_before_the_end_are_not_who_waited() -> None:
    """From a laptop that booted Linux 5.15."""
    seen = told("""
[    0.000000] Linux version 5.15.75-gentoo-x86_64 (a@b) (cc) #1 SMP
[    0.560326] Trying to unpack rootfs image as initramfs...
[    0.600501] NET: Registered PF_INET6 protocol family
[    0.602148] input: AT Translated Set 2 keyboard as /devices/platform/i8042/serio0/input/input2
[    0.670508] ACPI: battery: Slot [BAT0] (battery present)
[    1.586906] tsc: Refined TSC clocksource calibration: 2303.999 MHz
[    1.587105] clocksource: Switched to clocksource tsc
[    1.890324] Freeing initrd memory: 10692K
[    1.892656] Segment Routing with IPv6
[    2.209360] Run /init as init process
""").shadow
    assert seen.waiting is Waiting.WAITED
    assert seen.shadow_us == 40_175
    assert seen.waiter == "NET: Registered PF_INET6 protocol family"


def test_an_unpack_that_nothing_shows_beside_is_not_judged_without_a_version() -> None:
    seen = told("""
[    1.282408] PCI: CLS 0 bytes, default 64
[    1.282661] Trying to unpack rootfs image as initramfs...
[    1.726261] Freeing initrd memory: 9840K
[    1.727155] hw perfevents: enabled with armv8_cortex_a53 PMU driver, 7 counters available
""").shadow
    assert seen.waiting is Waiting.UNKNOWN


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
[    0.350000] loop: module loaded
[    0.499000] nobody knows: a line of somebody
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
    other = told(log.format(words="ACPI: thermal: Thermal Zone [TZ00] (28 C)")).shadow
    assert other.waiting is Waiting.UNKNOWN


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


@pytest.mark.parametrize("then", ["Key type asymmetric registered", "xor: measuring software"])
def test_algorithms_that_are_tested_for_longer_may_have_waited_before(then: str) -> None:
    """From a tablet with a Cortex-A9 that booted Linux 5.13."""
    log = f"""
[    0.000000] Linux version 5.13.0-rc7 (a@b) (cc) #1 SMP
[    0.310761] Unpacking initramfs...
[    0.317313] fuse: init (API version 7.34)
[    0.317823] {{last}}
[    0.375090] Freeing initrd memory: 1408K
[    0.398721] {then}
[    3.937386] Run /init as init process
"""
    silent = told(log.format(last="SGI XFS with security attributes, no debug enabled")).shadow
    assert silent.waiting is Waiting.UNKNOWN
    done = told(log.format(last="xor: using function: arm4regs (1613 MB/sec)")).shadow
    assert done.waiting is Waiting.HIDDEN


@pytest.mark.parametrize(
    ("resumed", "waiting"), [("1.672174", Waiting.UNKNOWN), ("1.682174", Waiting.HIDDEN)]
)
def test_who_answers_within_an_ordinary_pause_may_have_waited(
    resumed: str, waiting: Waiting
) -> None:
    """From a machine of a cloud with Linux 6.8, each of whose messages takes 5 ms to print."""
    seen = told(f"""
[    0.000000] Linux version 6.8.0 (a@b) (cc) #1 SMP
[    1.643252] PCI: CLS 0 bytes, default 64
[    1.647375] Trying to unpack rootfs image as initramfs...
[    1.653098] clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x22984a75d98
[    1.667379] Freeing initrd memory: 7832K
[    {resumed}] Initialise system trusted keyrings
[    1.696768] Run /init as init process
""").shadow
    assert seen.waiting is waiting


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


@pytest.mark.parametrize("release", ["6.1.0", "4.19.0"])
def test_without_a_beginning_nothing_is_said_of_who_waited(release: str) -> None:
    kernel = told(f"""
[    0.000000] Linux version {release} (a@b) (cc) #1 SMP
[    0.350000] NET: Registered PF_INET6 protocol family
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.600000] Run /init as init process
""")
    assert rejections(kernel.timestamps) == (RejectionReason.NO_BEGIN,)
    assert kernel.shadow == ShadowObservation(waiting=Waiting.UNKNOWN, slack_us=100_000)


def test_nothing_is_told_of_nothing() -> None:
    seen = read_boot([]).shadow
    assert seen.waiting is Waiting.UNKNOWN
    assert seen.slack_us is None
