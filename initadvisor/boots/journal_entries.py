"""A journal's entries, one at a time, and what they tell of how a boot ended."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from initadvisor.records.journal import BootEnd, BootEnding, Moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.boots.journal_files import JournalReader
    from initadvisor.records.journal import BootSpan


_log = logging.getLogger(__name__)

KERNEL = ("_TRANSPORT=kernel", "SYSLOG_FACILITY=0")
"""User space can write to /dev/kmsg, but never with the kernel's facility (kernel/printk/printk.c,
devkmsg_write); systemd does so in the initramfs."""

MANAGER = "_PID=1"
"""Anybody can send a message with any MESSAGE_ID; fields with an underscore are journald's own."""

HIBERNATED = (
    "MESSAGE=PM: hibernation: hibernation exit",
    "MESSAGE=PM: hibernation exit",  # until 5.6
)
SUSPENDED = "MESSAGE=PM: suspend exit"
"""What the kernel says when it is back."""

_MOST_DIGITS = 18


class BootEntries:
    """The entries of one boot; counts those that are damaged."""

    def __init__(self, reader: JournalReader, boot_id: str) -> None:
        self.reader = reader
        self.damaged = 0
        self._boot_id = boot_id

    def texts(self, *matches: str) -> Iterator[bytes]:
        """Yield the texts of the entries that match; the reader stands at each meanwhile."""
        select(self.reader, self._boot_id, *matches)
        while step(self.reader):
            try:
                yield self.reader._get("MESSAGE")
            except KeyError:
                yield b""
            except OSError:
                self.damaged += 1

    def count(self, *matches: str) -> int:
        """Return how many entries match."""
        return sum(1 for _ in self.texts(*matches))

    def any(self, *matches: str) -> bool:
        """Tell whether an entry matches."""
        return next(self.texts(*matches), None) is not None

    def number(self, name: str) -> int | None:
        """Return a field that is a number."""
        value = field(self.reader, name)
        return int(value) if value.isdigit() and len(value) <= _MOST_DIGITS else None


def select(reader: JournalReader, boot_id: str, *matches: str) -> None:
    """Begin with a boot's first entry that matches.

    Matches of different fields must all hold, of one field any (sd_journal_add_match(3)).
    """
    reader.flush_matches()
    for match in (f"_BOOT_ID={boot_id}", *matches):
        reader.add_match(match)
    reader.seek_head()


def step(reader: JournalReader, *, back: bool = False) -> bool:
    """Go on to the next entry; tell whether there is one."""
    try:
        return reader._previous() if back else reader._next()
    except OSError as err:
        _log.warning("the journal could not be read further: %s", err.strerror)
        return False


def field(reader: JournalReader, name: str) -> bytes:
    """Return a field of the entry, empty where it has none or is damaged."""
    try:
        return reader._get(name)
    except (KeyError, OSError):
        return b""


def moment(reader: JournalReader) -> Moment:
    """Return when the entry was received."""
    return Moment(realtime_us=reader._get_realtime(), monotonic_us=int(reader._get_monotonic()[0]))


_ENDINGS = {
    b"reboot.target": BootEnding.REBOOT,
    b"kexec.target": BootEnding.KEXEC,
    b"poweroff.target": BootEnding.POWER_OFF,
    b"halt.target": BootEnding.POWER_OFF,
}
_CLOCK_UNITS = ("systemd-timesyncd.service", "chronyd.service", "chrony.service")
_SYNCHRONISED = re.compile(
    rb"Initial (?:clock )?synchronization to |Synchronized to time server |Selected source "
)
"""What systemd-timesyncd (in its old and new words) and chronyd say when they have set the clock
or begin to."""


def boot_end(reader: JournalReader, span: BootSpan) -> BootEnd:
    """Return how a boot ended, as far as systemd, the kernel and what sets the clock say."""
    entries = BootEntries(reader, span.boot_id)
    return BootEnd(
        ending=_ending(entries),
        synchronised=_synchronised(entries),
        slept=entries.any(*KERNEL, SUSPENDED, *HIBERNATED),
    )


def _ending(entries: BootEntries) -> BootEnding | None:
    """A shutdown target that was reached is among the last things that reach a journal."""
    units = (f"UNIT={name.decode()}" for name in _ENDINGS)
    ending = None
    for _ in entries.texts(MANAGER, "JOB_RESULT=done", *units):
        ending = _ENDINGS.get(field(entries.reader, "UNIT"), ending)
    return ending


def _synchronised(entries: BootEntries) -> bool:
    units = (f"_SYSTEMD_UNIT={unit}" for unit in _CLOCK_UNITS)
    return any(_SYNCHRONISED.match(text) for text in entries.texts(*units))
