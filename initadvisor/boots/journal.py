"""Boots in a journal, read with python-systemd: the project's only reader of journals.

Of a boot only the kernel's messages up to /init are read, and a few more, each by an exact match:
a boot in the middle of a large journal costs as little as one of a small one.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

from initadvisor.boots.journal_files import open_journal
from initadvisor.boots.kernel_messages import KernelMessages
from initadvisor.boots.loader_times import StartupTimes, startup_times
from initadvisor.records.kernel_log import LONGEST_TEXT, KernelMessage
from initadvisor.records.marks import BootStep, longest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from initadvisor.boots.journal_files import JournalReader, JournalSource
    from initadvisor.host import Host
    from initadvisor.records.marks import KernelBoot


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When the journal received an entry, in microseconds.

    ``realtime_us``: since 1970, by a clock that may be set at any time, so early in a boot it is
    the real-time clock's. ``monotonic_us``: of CLOCK_MONOTONIC, which stands still while suspended
    and is not the clock of the kernel's own stamps (observed: milliseconds apart).
    """

    realtime_us: int
    monotonic_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSpan:
    """A boot in a journal, and its first and last entries there."""

    boot_id: str
    machine_id: str | None
    first: Moment
    last: Moment


class BootEnding(StrEnum):
    """How a boot ended."""

    REBOOT = "reboot"
    KEXEC = "kexec"
    POWER_OFF = "power-off"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEnd:
    """How a boot ended, and what its clocks were like.

    ``ending``: None where the journal does not say, as after a crash. ``synchronised``: the wall
    clock was set by NTP at some time, so that its last entries have the right time. ``slept``: the
    machine was suspended or hibernated, which CLOCK_MONOTONIC does not count.
    """

    ending: BootEnding | None = None
    synchronised: bool = False
    slept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBoot:
    """All that a journal tells of one boot.

    ``initrd_units``: the longest that were started before the root file system was switched to.
    ``emergency``: emergency.target was reached. ``hibernations`` and ``soft_reboots``: how often
    the kernel came back from hibernation and user space was restarted, all in this boot.
    ``on_battery``: the kernel found the mains adapter unplugged; None where it says nothing of one.
    ``damaged``: so many of its entries could not be read.
    """

    span: BootSpan
    kernel: KernelBoot
    startup: StartupTimes | None = None
    initrd_units: tuple[BootStep, ...] = ()
    emergency: bool = False
    hibernations: int = 0
    soft_reboots: int = 0
    on_battery: bool | None = None
    damaged: int = 0


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


_STARTUP_FINISHED = "MESSAGE_ID=b07a249cd024414a82dd00cd181378ff"
_EMERGENCY = ("UNIT=emergency.target", "JOB_RESULT=done", MANAGER)
_MISSED = ("_TRANSPORT=driver", "MESSAGE_ID=e9bf28e6e834481bb6f48f548ad13606")
_MISSED_COUNT = re.compile(rb"Missed (\d{1,9}) kernel messages")
_ADAPTER = re.compile(rb"ACPI: (?:AC: )?AC Adapter \[[^\]]{1,64}\] \((on|off)-line\)")
_MOST_AFTER_INIT = 600
"""Messages after /init among which a mains adapter is looked for: its driver is often a module."""

_LATEST_US = 3_600_000_000
"""No boot takes an hour to run /init; where that message is missing, later ones are no help."""

_PHASES = ("KERNEL_USEC", "INITRD_USEC", "USERSPACE_USEC")
_BOOT_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)

_MOST_UNITS = 30
_STARTING = "MESSAGE_ID=7d4958e842da4a758f6c1cdc7b36dcc5"
_STARTED = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
_UNIT = rb"[A-Za-z0-9:_.@\\-]{1,255}"  # VALID_CHARS and UNIT_NAME_MAX, src/basic/unit-name.[ch]
_UNIT_NAME = re.compile(_UNIT)
_UNIT_WORDS = re.compile(
    rb"(?P<verb>Starting|Mounting|Activating|Started|Finished|Mounted|Activated) "
    rb"(?P<unit>" + _UNIT + rb") - "
)
"""What systemd says of a unit to the kernel's log while there is no journald (since 249)."""

_MOST_STARTS = 10_000
"""Messages of starts that are read: an initramfs has some hundred."""


class Journal:
    """The boots of the files that could be read; ``warnings`` says which could not.

    Damaged entries are left out and counted. A file that is damaged further inside ends where the
    damage is, without a word from libsystemd.
    """

    def __init__(self, reader: JournalReader | None, warnings: Collection[str]) -> None:
        self._reader = reader
        self.warnings = list(warnings)
        if reader is not None:
            reader.data_threshold = LONGEST_TEXT

    def spans(self) -> list[BootSpan]:
        """Return all boots, in the order in which they began by the journal's wall clock."""
        if self._reader is None:
            return []
        boot_ids = {_hex(value) for value in self._reader.query_unique("_BOOT_ID")}
        spans = [self._span(self._reader, boot_id) for boot_id in boot_ids]
        found = [span for span in spans if span is not None]
        return sorted(found, key=lambda span: span.first.realtime_us)

    def span(self, boot_id: str) -> BootSpan | None:
        """Return one boot, None where the journal has nothing of it."""
        return None if self._reader is None else self._span(self._reader, boot_id)

    def before(self, span: BootSpan) -> BootSpan | None:
        """Return the boot before another one, by the journal's wall clock; None for the first."""
        if self._reader is None:
            return None
        self._reader.flush_matches()
        self._reader.seek_realtime(span.first.realtime_us)
        while step(self._reader, back=True):
            boot_id = field(self._reader, "_BOOT_ID").decode(errors="replace")
            if boot_id != span.boot_id:
                return self._span(self._reader, boot_id)
        return None

    def read(self, span: BootSpan) -> JournalBoot:
        """Return all that is told of one of these boots."""
        return _BootReader(self._needed(), span).read()

    def end(self, span: BootSpan) -> BootEnd:
        """Return how one of these boots ended."""
        return boot_end(self._needed(), span)

    def _needed(self) -> JournalReader:
        if self._reader is None:
            msg = "no journal, no span"
            raise ValueError(msg)
        return self._reader

    def _span(self, reader: JournalReader, boot_id: str) -> BootSpan | None:
        if not _BOOT_ID.fullmatch(boot_id):
            return None
        select(reader, boot_id)
        first = moment(reader) if step(reader) else None
        reader.seek_tail()
        last = moment(reader) if step(reader, back=True) else None
        if first is None or last is None:
            return None
        machine_id = field(reader, "_MACHINE_ID")
        return BootSpan(
            boot_id=boot_id,
            machine_id=machine_id.decode(errors="replace") if machine_id else None,
            first=first,
            last=last,
        )


@contextlib.contextmanager
def opened_journal(host: Host, source: JournalSource) -> Iterator[Journal]:
    """Open a journal; see ``open_journal`` for what is raised."""
    reader, warnings = open_journal(host, source)
    try:
        yield Journal(reader, warnings)
    finally:
        if reader is not None:
            reader.close()


class _BootReader(BootEntries):
    """Reads one boot."""

    def __init__(self, reader: JournalReader, span: BootSpan) -> None:
        super().__init__(reader, span.boot_id)
        self._span = span

    def read(self) -> JournalBoot:
        messages = KernelMessages()
        on_battery = self._kernel(messages, deque(self._missed()))
        startup, soft_reboots = self._startup()
        return JournalBoot(
            span=self._span,
            kernel=messages.result(),
            startup=startup,
            initrd_units=longest(self._initrd_units(startup), most=_MOST_UNITS),
            emergency=self.any(*_EMERGENCY),
            hibernations=self.count(*KERNEL, *HIBERNATED),
            soft_reboots=soft_reboots,
            on_battery=on_battery,
            damaged=self.damaged,
        )

    def _kernel(self, messages: KernelMessages, missed: deque[tuple[int, int]]) -> bool | None:
        """Hand on the kernel's messages up to /init; return whether the mains was unplugged."""
        adapters: set[bytes] = set()
        left = _MOST_AFTER_INIT
        running = False
        for text in self.texts(*KERNEL):
            if adapter := _ADAPTER.match(text):
                adapters.add(adapter[1])
            if running:
                left -= 1
                if not left:
                    break
                continue
            while missed and missed[0][0] <= self.reader._get_realtime():
                messages.lost(missed.popleft()[1])
            time_us = self.number("_SOURCE_MONOTONIC_TIMESTAMP")
            if time_us is not None and time_us > _LATEST_US:
                break
            words = text[:LONGEST_TEXT].decode(errors="replace")
            running = messages.note(KernelMessage(text=words, time_us=time_us))
        if not running:
            for _, count in missed:
                messages.lost(count)
            if self.damaged:
                messages.lost(self.damaged)
        return adapters == {b"off"} if adapters else None

    def _missed(self) -> list[tuple[int, int]]:
        """Return when journald noticed that kernel messages were overwritten, and how many."""
        found = []
        for text in self.texts(*_MISSED):
            count = _MISSED_COUNT.match(text)
            found.append((self.reader._get_realtime(), int(count[1]) if count else 1))
        return found

    def _initrd_units(self, startup: StartupTimes | None) -> Iterator[BootStep]:
        """Yield units of which it is known when systemd began to start them and when it had."""
        if startup is None or startup.kernel_us is None or startup.initrd_us is None:
            return
        since: dict[bytes, int] = {}
        starts = self._starts(startup.kernel_us + startup.initrd_us)
        for time_us, unit, done in islice(starts, _MOST_STARTS):
            begun_us = since.pop(unit, None) if done else since.setdefault(unit, time_us)
            if done and begun_us is not None and begun_us <= time_us:
                yield BootStep(
                    name=unit.decode(),
                    start_us=begun_us,
                    duration_us=time_us - begun_us,
                )

    def _starts(self, until_us: int) -> Iterator[tuple[int, bytes, bool]]:
        """Yield when a start of a unit began, or was done, first as the kernel's log tells."""
        for text in self.texts("_TRANSPORT=kernel", "SYSLOG_IDENTIFIER=systemd"):
            time_us = self.number("_SOURCE_MONOTONIC_TIMESTAMP")
            if time_us is None or time_us > until_us:
                break
            if said := _UNIT_WORDS.match(text):
                yield time_us, said["unit"], said["verb"].endswith(b"ed")
        for _ in self.texts(MANAGER, _STARTING, _STARTED):
            time_us = self._said_us()
            if time_us > until_us:
                break
            done = field(self.reader, "MESSAGE_ID") == _STARTED.partition("=")[2].encode()
            if _UNIT_NAME.fullmatch(unit := field(self.reader, "UNIT")):
                yield time_us, unit, done

    def _said_us(self) -> int:
        """Return when an entry was sent, which journald may have received late."""
        received = moment(self.reader)
        sent_us = self.number("_SOURCE_REALTIME_TIMESTAMP") or received.realtime_us
        late_us = received.realtime_us - sent_us
        plausible = 0 <= late_us <= received.monotonic_us  # else the wall clock was set meanwhile
        return received.monotonic_us - (late_us if plausible else 0)

    def _startup(self) -> tuple[StartupTimes | None, int]:
        """Return systemd's account, and how often user space was restarted after it.

        A restart's record says nothing of a kernel; neither does that of a container, whose journal
        may stand beside this one with the same boot ID.
        """
        startup = machine_id = None
        restarts = 0
        for text in self.texts(_STARTUP_FINISHED, MANAGER):
            fields = {name: field(self.reader, name) for name in _PHASES}
            if startup is None and fields["KERNEL_USEC"]:
                words = {name: value.decode(errors="replace") for name, value in fields.items()}
                startup = startup_times(text.decode(errors="replace"), words)
                machine_id = field(self.reader, "_MACHINE_ID")
            elif startup is not None and field(self.reader, "_MACHINE_ID") == machine_id:
                restarts += 1
        return startup, restarts


def _hex(boot_id: object) -> str:
    """python-systemd's converters make a UUID of it where it is one."""
    match boot_id:
        case UUID():
            return boot_id.hex
        case bytes():
            return boot_id.decode(errors="replace")
        case _:
            return str(boot_id)
