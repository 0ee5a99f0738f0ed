"""The kernel's lines about its initramfs, as kernels and loggers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.records.kernel_log import (
    LONGEST_TEXT,
    KernelEvent,
    KernelLine,
    read_line,
    read_message,
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[    1.314817] Trying to unpack rootfs image as initramfs...",
            KernelLine(event=KernelEvent.BEGIN, time_us=1_314_817),
        ),
        ("Unpacking initramfs...", KernelLine(event=KernelEvent.BEGIN, time_us=None)),
        (
            "[    0.7][    T1] no stamp of a kernel",
            None,
        ),
        (
            "[    1.930417][    T1] Freeing initrd memory: 22716K",
            KernelLine(event=KernelEvent.FREED, time_us=1_930_417, number=22716),
        ),
        (
            "<6>[    1.930417] Freeing initrd memory: 394k freed",
            KernelLine(event=KernelEvent.FREED, time_us=1_930_417, number=394),
        ),
        (
            "[    1.3] rootfs image is not initramfs (no cpio magic); looks like an initrd",
            None,
        ),
        (
            "[    1.300000] rootfs image is not initramfs (broken (padding)); looks like an initrd",
            KernelLine(event=KernelEvent.FAILED, time_us=1_300_000, subject="broken (padding)"),
        ),
        (
            "Initramfs unpacking failed: write error",
            KernelLine(event=KernelEvent.FAILED, time_us=None, subject="write error"),
        ),
        (
            "[12345.000001] initcall populate_rootfs+0x0/0x60 returned 0 after 437768 usecs",
            KernelLine(
                event=KernelEvent.RETURNED,
                time_us=12_345_000_001,
                subject="populate_rootfs",
                number=437_768,
            ),
        ),
        (
            "calling  crypto_kdf108_init+0x0/0x12c @ 1",
            KernelLine(
                event=KernelEvent.CALLING, time_us=None, subject="crypto_kdf108_init", number=1
            ),
        ),
        (
            "calling  fuse_init+0x0/0x12c [fuse] @ 145",
            None,
        ),
        (
            "[    2.500000] Run /init as init process",
            KernelLine(event=KernelEvent.RUN, time_us=2_500_000, subject="/init"),
        ),
        (
            "[    2.500000] Kernel panic - not syncing: VFS: Unable to mount root fs",
            KernelLine(
                event=KernelEvent.PANIC, time_us=2_500_000, subject="VFS: Unable to mount root fs"
            ),
        ),
        (
            "[    0.000000] Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org)",
            KernelLine(event=KernelEvent.VERSION, time_us=0, subject="6.1.0-50-amd64"),
        ),
        ('printk(KERN_INFO "Trying to unpack rootfs image as initramfs...");', None),
        ("", None),
        ("[" * 4096, None),
    ],
)
def test_a_line_is_recognised_for_what_it_is(line: str, expected: KernelLine | None) -> None:
    assert read_line(line) == expected


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "<6>",
        "Nov 20 23:21:55 host kernel: ",
        "Nov  7 03:21:55 host kernel: ",
        "2026-11-20T23:21:55.123456+01:00 host kernel: ",
        "2026-11-20 23:21:55.123 host kernel: ",
        "kern  :info  : ",
        "kern  :notice: ",
    ],
)
def test_what_carriers_put_in_front_is_taken_off(prefix: str) -> None:
    line = f"{prefix}[    0.500000] Freeing initrd memory: 42152K"
    expected = KernelLine(event=KernelEvent.FREED, time_us=500_000, number=42152)
    assert read_line(line) == expected


@pytest.mark.parametrize(
    ("stamp", "time_us", "caller"),
    [
        ("[    0.300000][   T12] ", 300_000, "T12"),
        ("[    0.300000] [    T1] ", 300_000, "T1"),
        ("[0.300000] ", 300_000, None),
        ("[    0.300] ", 300_000, None),
        ("[12345.300000] ", 12_345_300_000, None),
        ("[4294967.200] ", 4_294_967_200_000, None),
    ],
)
def test_every_stamp_of_a_kernel_s_clock(stamp: str, time_us: int, caller: str | None) -> None:
    message = read_message(f"{stamp}Unpacking initramfs... done")
    assert (message.text, message.time_us) == ("Unpacking initramfs... done", time_us)
    assert message.caller == caller


@pytest.mark.parametrize(
    "stamp",
    ["[  +0.014341] ", "[<    0.014341>] ", "[Nov 7 10:11] ", "[Fri Nov 20 23:21:55 2026] ", ""],
)
def test_other_stamps_are_taken_off_and_give_no_time(stamp: str) -> None:
    expected = KernelLine(event=KernelEvent.FREED, time_us=None, number=394)
    assert read_line(f"{stamp}Freeing initrd memory: 394K") == expected


@pytest.mark.parametrize(
    "line",
    [
        "> [    0.300000] Trying to unpack rootfs image as initramfs...",
        'printk("[    0.300000] Trying to unpack rootfs image as initramfs...");',
        "Nov 20 23:21:55 host cat[99]: [    0.300000] Unpacking initramfs...",
        "[    0.300000] systemd[1]: Trying to unpack rootfs image as initramfs...",
        "[    0.3] Trying to unpack rootfs image as initramfs...",
    ],
)
def test_text_that_quotes_a_mark_is_none(line: str) -> None:
    assert read_line(line) is None


def test_a_line_of_any_length_is_looked_at_no_further_than_needed() -> None:
    assert len(read_message("x" * 10_000_000).text) == LONGEST_TEXT


@given(st.one_of(st.text(), st.text(alphabet="[]<>0123456789.TC +:k\n ")))
def test_no_text_whatever_makes_an_exception(text: str) -> None:
    read_line(text)
