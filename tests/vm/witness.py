"""What a serial console says of each kernel that ran in a boot, for comparison with what is read.

It is told here in other words than those of the package: a mark that both misread in the same way
would go unnoticed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.vm.boot import Boot

SHOW_MARKS = "dmesg | grep -E 'Trying to unpack|Freeing initrd|Run /|Linux version'"
"""For the script of a boot with ``quiet``: dmesg(1) prints stamps as the console does."""

_STAMP = r"(?:^|guest: > )\[ *(\d+)\.(\d{6})\] "
_BEGIN = re.compile(_STAMP + r"Trying to unpack rootfs image as initramfs\.\.\.$")
_END = re.compile(_STAMP + r"Freeing initrd memory: (\d+)K$")
_RUN = re.compile(_STAMP + r"Run (?:/init|/bin/sh) as init process$")
_VERSION = re.compile(r"^\[ *\d+\.\d{6}\] Linux version ")
_BOOT_ID = re.compile(r"guest: ready boot=([0-9a-f]{32}) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """What was said of one kernel: its boot ID, and its own stamps in microseconds.

    None for what was not said; ``freed_kib``: how much of the image was freed.
    """

    boot_id: str | None
    begin_us: int | None
    end_us: int | None
    run_init_us: int | None
    freed_kib: int | None

    @property
    def unpack_us(self) -> int:
        """How long it unpacked; both marks are needed."""
        assert self.begin_us is not None
        assert self.end_us is not None
        return self.end_us - self.begin_us

    @property
    def begin_to_init_us(self) -> int:
        """From the beginning of unpacking until /init ran; both marks are needed."""
        assert self.begin_us is not None
        assert self.run_init_us is not None
        return self.run_init_us - self.begin_us


def witnessed(boot: Boot) -> list[Witnessed]:
    """Return what the console said of each kernel; there is one unless kexec started another."""
    kernels: list[list[str]] = [[]]
    seen = False
    for line in boot.lines:
        if _VERSION.match(line.text):
            if seen:
                kernels.append([])
            seen = True
        kernels[-1].append(line.text)
    return [_of_kernel(lines) for lines in kernels]


def freed_kib(boot: Boot) -> int | None:
    """Return how much of its image the last kernel of a boot has freed."""
    return witnessed(boot)[-1].freed_kib


def kib_in_pages(size_bytes: int) -> int:
    """Return how much a kernel says that it frees of so many bytes: whole pages, in KiB."""
    return -(-size_bytes // 4096) * 4


def _of_kernel(lines: list[str]) -> Witnessed:
    begin, end, run, boot_id = (_first(p, lines) for p in (_BEGIN, _END, _RUN, _BOOT_ID))
    return Witnessed(
        boot_id=boot_id[1] if boot_id else None,
        begin_us=_us(begin),
        end_us=_us(end),
        run_init_us=_us(run),
        freed_kib=int(end[3]) if end else None,
    )


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := pattern.search(line))), None)


def _us(match: re.Match[str] | None) -> int | None:
    return int(match[1]) * 1_000_000 + int(match[2]) if match else None
