"""Kernel logs that are text: a serial console's, dmesg(1)'s or a syslog daemon's, of any boots."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.boots.kernel_messages import KernelMessages
from initadvisor.records.kernel_log import LONGEST_TEXT, KernelEvent, read_message, recognise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from initadvisor.records.kernel_log import KernelMessage
    from initadvisor.records.marks import KernelBoot


_JITTER_US = 1_000_000
"""Processors' clocks may differ a little; what goes back further is another boot."""

_WRAPS_AT_US = (1 << 32) * 1000
_BEFORE_WRAP_US = 300_000_000
"""Old kernels begin to count 300 s before their milliseconds overflow (INITIAL_JIFFIES)."""

_LOST = re.compile(r"systemd-journald(?:\[\d{1,9}\])?: Missed (\d{1,9}) kernel messages")


def read_boots(file: BinaryIO) -> Iterator[KernelBoot]:
    """Yield what each boot of a log tells, in their order; lines of any length are bounded.

    A boot begins with "Linux version", or where the clock goes back. What is before the first of
    them may be the rest of a boot whose beginning has been overwritten.
    """
    boot: KernelMessages | None = None
    clock = _Clock()
    for text in _lines(file):
        if lost := _LOST.search(text):
            boot = boot or KernelMessages()
            boot.lost(int(lost[1]))
            continue
        message = read_message(text)
        if boot and clock.is_of_another_boot(message):
            yield boot.result()
            boot = None
        if boot is None:
            boot = KernelMessages()
            clock.restart(message)
        boot.note(clock.unwrapped(message))
    if boot:
        yield boot.result()


class _Clock:
    """Follows the stamps of a boot, to see where it ends."""

    def __init__(self) -> None:
        self._latest_us = 0
        self._wrapped = False
        self._has_version = False

    def restart(self, message: KernelMessage) -> None:
        """Begin a boot with this message."""
        self._latest_us = message.time_us or 0
        self._wrapped = False
        self._has_version = _is_version(message)

    def unwrapped(self, message: KernelMessage) -> KernelMessage:
        """Go on counting where the clock of an old kernel has overflowed."""
        if message.time_us is None or not self._wrapped:
            return message
        return replace(message, time_us=message.time_us + _WRAPS_AT_US)

    def is_of_another_boot(self, message: KernelMessage) -> bool:
        """Take note of a message; tell whether it cannot be of the boot so far."""
        if _is_version(message):
            if self._has_version or self._latest_us > 0:
                return True
            self._has_version = True
        if message.time_us is None:
            return False
        until_wrap_us = _WRAPS_AT_US - self._latest_us
        if 0 <= until_wrap_us <= _BEFORE_WRAP_US and message.time_us < _BEFORE_WRAP_US:
            self._wrapped = True
        time_us = message.time_us + (_WRAPS_AT_US if self._wrapped else 0)
        if time_us < self._latest_us - _JITTER_US:
            return True
        self._latest_us = max(self._latest_us, time_us)
        return False


def _is_version(message: KernelMessage) -> bool:
    line = recognise(message)
    return line is not None and line.event is KernelEvent.VERSION


def _lines(file: BinaryIO) -> Iterator[str]:
    """Yield the beginnings of all lines."""
    whole = True
    while piece := file.readline(LONGEST_TEXT):
        if whole:
            yield piece.rstrip(b"\r\n").decode(errors="replace")
        whole = piece.endswith(b"\n")
