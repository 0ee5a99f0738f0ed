"""The kernel's lines about its initramfs, as kernels and loggers write them."""

from __future__ import annotations

import pytest

from initadvisor.records.kernel_log import KernelEvent, KernelLine, read_line


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
