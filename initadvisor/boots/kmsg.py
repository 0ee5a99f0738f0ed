"""The kernel's messages of the running boot, from /dev/kmsg.

Each read(2) gives one record: ``priority,sequence,microseconds,flags[,caller=T1];text`` and lines
`` KEY=value`` (Documentation/ABI/testing/dev-kmsg).
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.boots.kernel_messages import KernelMessages
from initadvisor.host.files import os_failure
from initadvisor.records.kernel_log import KernelMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.host import Host
    from initadvisor.records.marks import KernelBoot


_DEVICE = "/dev/kmsg"
_LONGEST_RECORD = 8192
"""CONSOLE_EXT_LOG_MAX and its successors; a smaller buffer would get EINVAL."""

_LATEST_US = 3_600_000_000
"""No boot takes an hour to run /init; so reading ends even where the ring fills all the time."""

_RECORD = re.compile(
    rb"(?P<priority>\d{1,9}),(?P<sequence>\d{1,20}),(?P<us>\d{1,18})(?:,(?P<more>[^;\n]*))?;"
    rb"(?P<text>[^\n]*)",
    re.ASCII,
)
_CALLER = re.compile(rb"(?:^|,)caller=([TC]\d{1,10})(?:,|$)", re.ASCII)
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record; ``by_kernel``: it has the kernel's facility, which user space cannot write."""

    sequence: int
    by_kernel: bool
    message: KernelMessage


def running_boot(host: Host) -> KernelBoot:
    """Return what the kernel said of this boot, as far as its ring still has it.

    Raises ``NeedsRootError`` where the messages are for root only (kernel.dmesg_restrict),
    ``InitadvisorError`` where they cannot be read at all.
    """
    path = host.path(_DEVICE)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0):
            return read_ring(lambda: os.read(descriptor, _LONGEST_RECORD))
    except OSError as err:
        what = f"cannot read the kernel's messages: {path}"
        raise os_failure(err, what, only_root=True) from err


def read_ring(read: Callable[[], bytes]) -> KernelBoot:
    """Read records up to /init, or to the end of the ring, where ``read`` raises EAGAIN.

    EPIPE says that records were overwritten before they could be read, and reading goes on behind
    the gap; the sequence numbers tell how many. That a ring begins later than the boot is no loss:
    the marks are there or they are not.
    """
    messages = KernelMessages()
    expected: int | None = None
    while True:
        try:
            data = read()
        except BlockingIOError:
            break
        except OSError as err:
            if err.errno != errno.EPIPE:
                raise
            continue
        if not data:
            break
        record = parse_record(data)
        if record is None:
            messages.lost(1)
            continue
        if expected is not None and record.sequence > expected:
            messages.lost(record.sequence - expected)
        expected = record.sequence + 1
        if record.by_kernel and (_is_late(record) or messages.note(record.message)):
            break
    return messages.result()


def parse_record(data: bytes) -> Record | None:
    """Take a record apart, None for what is none."""
    found = _RECORD.match(data)
    if found is None:
        return None
    caller = _CALLER.search(found["more"] or b"")
    text = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), found["text"])
    return Record(
        sequence=int(found["sequence"]),
        by_kernel=int(found["priority"]) >> 3 == 0,
        message=KernelMessage(
            text=text.decode(errors="replace"),
            time_us=int(found["us"]),
            caller=caller[1].decode() if caller else None,
        ),
    )


def _is_late(record: Record) -> bool:
    return record.message.time_us is not None and record.message.time_us > _LATEST_US
