"""Kernel logs that are text: a serial console's, dmesg(1)'s or a syslog daemon's, of any boots."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.boots.kernel_messages import KernelMessages
from initadvisor.records.kernel_log import LONGEST_TEXT, KernelEvent, read_text, recognise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from initadvisor.records.kernel_log import KernelMessage, TextLine
    from initadvisor.records.marks import KernelBoot

    class Lines(Protocol):
        """What is read: a file, or a part of one."""

        def readline(self, size: int, /) -> bytes: ...


_JITTER_US = 1_000_000
"""Processors' clocks may differ a little, and for a while by more: what goes back by more than this
and to less than half is another boot, unless it is a stray."""

_MOST_STRAYS = 3
"""Messages of a processor whose clock does not run right yet, before others go on: in guests of KVM
a second processor's first words are dated seconds too early."""

_WRAPS_AT_US = (1 << 32) * 1000
_BEFORE_WRAP_US = 300_000_000
"""Old kernels begin to count 300 s before their milliseconds overflow (INITIAL_JIFFIES)."""

_OF_JOURNALCTL = "-- "
_REBOOT = "-- Reboot --"
_BOOT = re.compile(r"-- Boot ([0-9a-f]{32}) --", re.ASCII)
"""How journalctl(1) separates boots, and what it says before all of them."""

_CLOCK_SET = re.compile(
    r"setting system clock to .{1,60} \((\d{9,10})\)|^(?:audit: )?type=2000 audit\((\d{9,10})\.",
    re.ASCII,
)
_LONGEST_TOLD = 200
_FIRST_S, _LAST_S = 1_000_000_000, 4_000_000_000
"""2001 to 2096: clocks that were never set say other things."""

_CLEARED = re.compile(r"\x1bc|\x1b\[\d?J", re.ASCII)
_TERMINAL = re.compile(r"\x1b(?:[c-z]|\[[\d;?]{0,20}[A-Za-z])", re.ASCII)
"""What firmware and GRUB send to a serial console before the kernel's first line, which follows on
the same one, and ``dmesg --color`` within lines (ECMA-48, CSI sequences)."""

_ESCAPES = ("^[", "#033")
"""How less(1) and rsyslogd write an escape character."""

_QUOTE = re.compile(r"(?:[ \t]{0,16}[>|]){1,16} ?")
"""What mail puts in front of each line of a text that it quotes."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a file begins that PowerShell has written."""

_LOST = re.compile(r"systemd-journald(?:\[\d{1,9}\])?: Missed (\d{1,9}) kernel messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBoot:
    """One boot of a log.

    ``boot_id``: as journalctl names it, None where it does not. ``started_us``: when the kernel
    started, in microseconds since 1970, by what it said of its clock; None where it said nothing.
    """

    kernel: KernelBoot
    boot_id: str | None = None
    started_us: int | None = None

    @property
    def tells_something(self) -> bool:
        """Whether a mark of an initramfs is in it."""
        return self.kernel.timestamps.begun or self.kernel.timestamps.freed


def read_boots(file: Lines) -> Iterator[KernelBoot]:
    """Yield what each boot of a log tells; see ``read_log``."""
    return (boot.kernel for boot in read_log(file))


def read_log(file: Lines) -> Iterator[TextBoot]:
    """Yield what each boot of a log tells, in their order; lines of any length are bounded.

    A boot begins with "Linux version", or where the clock goes back, or where journalctl says so.
    What is before the first of them may be the rest of a boot whose beginning has been overwritten.
    A quoted log is a text of its own, whatever is said of it in between.
    """
    reading = _Reading()
    for text in _lines(file):
        if text.startswith(_OF_JOURNALCTL):
            named = _BOOT.match(text)
            if named or text.startswith(_REBOOT):
                yield from reading.end()
                reading = _Reading(boot_id=named[1] if named else None)
            continue
        if lost := _LOST.search(text):
            reading.messages.lost(int(lost[1]))
            reading.has_any = True
            continue
        quote, line_of_log = _unquoted(text)
        lines = [read_text(line_of_log)]
        if quote != reading.quote:
            message = lines[0].message
            if message.time_us is None and not _is_version(message):
                continue
            yield from reading.end()
            reading = _Reading(quote=quote)
        while lines:
            line = lines.pop(0)
            if not (reading.has_any and reading.clock.is_of_another_boot(line.message)):
                reading.take(line)
            elif not reading.sets_aside(line):
                yield from reading.end()
                lines = [*reading.strays, line, *lines]
                reading = _Reading(quote=quote)
    yield from reading.end()


class _Reading:
    """A boot that is being read.

    ``quote``: the marks of the quotation that its lines are in. ``strays``: messages that seem to
    be of another boot, until others of this one follow.
    """

    def __init__(self, *, boot_id: str | None = None, quote: str = "") -> None:
        self.quote = quote
        self.messages = KernelMessages()
        self.clock = _Clock()
        self.has_any = False
        self.strays: list[TextLine] = []
        self._has_message = False
        self._boot_id = boot_id
        self._started_us: int | None = None
        self._untimed = False

    def take(self, line: TextLine) -> None:
        """Take a line of the boot.

        journalctl gives some messages the time at which it received them: then the kernel's first
        words, which it prints before its clock runs, have one, too.
        """
        if not self._has_message:
            self.clock.restart(line.message)
            self._has_message = True
        self.has_any = True
        if line.message.time_us is not None:
            for stray in self.strays:
                self.messages.note(replace(stray.message, time_us=None))
            self.strays.clear()
        message = self.clock.unwrapped(line.message)
        if line.by_journal and message.time_us and _is_version(message):
            self._untimed = True
        if self._untimed:
            message = replace(message, time_us=None)
        elif self._started_us is None:
            self._started_us = _started_us(message)
        self.messages.note(message)

    def sets_aside(self, line: TextLine) -> bool:
        """Set a line aside that goes back in time; return False where it begins another boot.

        Marks are made by processors whose clocks run.
        """
        if len(self.strays) >= _MOST_STRAYS or recognise(line.message) is not None:
            return False
        self.strays.append(line)
        return True

    def end(self) -> Iterator[TextBoot]:
        """Yield the boot, nothing where there was no line."""
        if self.has_any:
            kernel = self.messages.result()
            yield TextBoot(kernel=kernel, boot_id=self._boot_id, started_us=self._started_us)


def _started_us(message: KernelMessage) -> int | None:
    """Return when the kernel started, by a message that gives the time of day."""
    if message.time_us is None:
        return None
    told = _CLOCK_SET.search(message.text[:_LONGEST_TOLD])
    if told is None:
        return None
    seconds = int(told[1] or told[2])
    return seconds * 1_000_000 - message.time_us if _FIRST_S <= seconds <= _LAST_S else None


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
        if time_us < min(self._latest_us - _JITTER_US, self._latest_us // 2):
            return True
        self._latest_us = max(self._latest_us, time_us)
        return False


def _is_version(message: KernelMessage) -> bool:
    line = recognise(message)
    return line is not None and line.event is KernelEvent.VERSION


def _lines(file: Lines) -> Iterator[str]:
    """Yield the beginnings of all lines.

    Where a machine lost its power, file systems leave NUL bytes in place of a log's last lines. Of
    UTF-16 only what is ASCII is wanted.
    """
    whole, wide = True, False
    for number, read in enumerate(_pieces(file)):
        piece = read
        if number == 0:
            wide = piece.startswith(_UTF16)
            piece = piece[2:] if wide else piece.removeprefix(codecs.BOM_UTF8)
        if wide:
            piece = piece.replace(b"\0", b"")
        elif whole:
            piece = piece.lstrip(b"\0")
        if piece:
            if whole:
                yield _printed(piece.strip(b"\r\n").decode(errors="replace"))
            whole = piece.endswith(b"\n")


def _pieces(file: Lines) -> Iterator[bytes]:
    """Yield lines, or parts of long ones; where no newline ends a line a carriage return does."""
    rest = b""
    while piece := rest + file.readline(LONGEST_TEXT - len(rest)):
        rest = b""
        if not piece.endswith(b"\n") and b"\r" in piece:
            *lines, rest = piece.split(b"\r")
            yield from (line + b"\n" for line in lines)
        else:
            yield piece


def _unquoted(line: str) -> tuple[str, str]:
    """Return the marks of a quotation before a line, without spaces, and the rest of it."""
    quote = _QUOTE.match(line)
    return ("".join(quote[0].split()), line[quote.end() :]) if quote else ("", line)


def _printed(line: str) -> str:
    """Return what a terminal would show of a line."""
    for escape in _ESCAPES:
        line = line.replace(f"{escape}[", "\x1b[")
    if "\x1b" not in line:
        return line
    return _TERMINAL.sub("", _CLEARED.split(line)[-1])
