"""What a kernel says about its initramfs, recognised in the text of its messages.

The texts are those of ``init/initramfs.c``, ``init/main.c`` and ``mm/page_alloc.c`` of Linux 4 to
6; a built-in initramfs is unpacked before the first of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_STAMP = re.compile(r"^(?:<\d+>)?\[ *(?P<s>\d+)\.(?P<us>\d{6})\](?:\[ *[TC]\d+\])? ?")
UNPACKING_INITCALL = "populate_rootfs"
"""The initcall that unpacks, or since 5.13 begins to."""


class Event(StrEnum):
    """What a line tells of."""

    VERSION = "version"
    BEGIN = "begin"
    FREED = "freed"
    FAILED = "failed"
    RUN = "run"
    PANIC = "panic"
    CALLING = "calling"
    RETURNED = "returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A line that matters here.

    ``time_us``: the kernel's own stamp, None where it prints none; subtract stamps only from each
    other. ``subject``: the release, the reason, the program or the initcall. ``number``: KiB freed,
    the process that calls, or the microseconds that an initcall took.
    """

    event: Event
    time_us: int | None
    subject: str = ""
    number: int = 0


_PATTERNS = (
    (Event.BEGIN, re.compile(r"(?:Trying to unpack rootfs image as|Unpacking) initramfs\.\.\.")),
    (Event.CALLING, re.compile(r"calling +(?P<subject>[^\s+]+)\S* @ (?P<number>\d+)")),
    (
        Event.RETURNED,
        re.compile(r"initcall (?P<subject>[^\s+]+)\S* returned -?\d+ after (?P<number>\d+) usecs"),
    ),
    (Event.FREED, re.compile(r"Freeing initrd memory: (?P<number>\d+)[kK]")),
    (Event.FAILED, re.compile(r"rootfs image is not initramfs \((?P<subject>.*)\)")),
    (Event.FAILED, re.compile(r"Initramfs unpacking failed: (?P<subject>.*)")),
    (Event.RUN, re.compile(r"Run (?P<subject>\S+) as init process")),
    (Event.PANIC, re.compile(r"Kernel panic - not syncing: (?P<subject>.*)")),
    (Event.VERSION, re.compile(r"Linux version (?P<subject>\S+)")),
)


def read_line(line: str) -> KernelLine | None:
    """Return what a line of the kernel's log tells, None for one of no interest."""
    time_us = None
    if stamp := _STAMP.match(line):
        time_us = int(stamp["s"]) * 1_000_000 + int(stamp["us"])
        line = line[stamp.end() :]
    for event, pattern in _PATTERNS:
        if found := pattern.match(line):
            told = found.groupdict()
            return KernelLine(
                event=event,
                time_us=time_us,
                subject=(told.get("subject") or "").rstrip(),
                number=int(told.get("number") or 0),
            )
    return None
