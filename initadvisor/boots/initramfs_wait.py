"""Whether the init task waited for the unpack, and what it had to do before: B1 and B2.

Since Linux 5.13 the unpack runs beside the initcalls. The first of them that needs the file system
(a usermode helper, a firmware file), and at the latest the step before /init, waits for it
(``init/initramfs.c``, wait_for_initramfs). A log shows that as a silence of the init task that ends
with the unpack:

    t(init) = max(t(end), t(begin) + B1) + B2

with B1 the time to that first waiter and B2 what runs after it. What lies between "Freeing initrd
memory" and "Run /init" (the slack) says nothing of either: B2 is in it whether or not it waited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.boots.speakers import Speaker, Traces, speaker
from initadvisor.records.kernel_log import KernelEvent
from initadvisor.records.marks import ShadowObservation, WaitEvidence, Waiting

if TYPE_CHECKING:
    from initadvisor.records.kernel_log import KernelLine, KernelMessage
    from initadvisor.records.marks import KernelTimestamps


FIRST_SEEN_ASYNCHRONOUS = (5, 12)
"""Release candidates of 5.12 and what was built of linux-next in between call themselves so."""

_INIT_TASK = "T1"
_FIRST_PROCESS = 1

_OF_THE_UNPACK = frozenset({KernelEvent.BEGIN, KernelEvent.FREED, KernelEvent.FAILED})
"""Printed by whoever unpacks."""

_KNOWN_WAITERS = {
    "NET: Registered PF_INET6": re.compile(
        r"(?:RPL )?Segment Routing|In-situ OAM|mip6: |sit: |NET: |IPv6: |mpls_gso"
    ),
    "NET: Registered protocol family 10": re.compile(r"Segment Routing|mip6: |sit: |NET: |IPv6: "),
    "Asymmetric key parser": re.compile(
        r"alg: self-tests |Block layer SCSI|Asymmetric key|Key type |Running certificate|bounce: "
        r"|jitterentropy: "
    ),
    "Loading compiled-in X.509": re.compile(r"Loaded X\.509|zswap: |Key type |blacklist: "),
}
"""The last words before most silences: what follows them in the kernel loads a module or runs a
self-test that does (30 of 34 real boots that waited). And what the init task says next."""

_AFTER_ALGORITHMS = re.compile(r"xor: |async_tx: |Key type asymmetric |Asymmetric key parser ")
"""Who speaks first after the algorithms of crypto/, which are linked before (crypto/Makefile) and
silent. The init task waits for the self-test of each, and some of these load modules: a silence
that ends so may have been spent waiting, testing, or both (four real boots)."""

_PROMPT = 0.15
_PROMPT_AFTER_KNOWN_WAITER = 0.3
"""Which part of a silence may lie after the end of the unpack so that it counts as ended by it.

Were silence and unpack unrelated, the end would fall anywhere in it, and so early only with this
probability. In the logs of 42 real boots, the 34 that waited have 0.004 to 0.136, the others 0.16
to 0.98. What a known waiter does next may take longer on a slow processor before it is heard of: in
guests without KVM, whose self-tests take half a second, 0.25 to 0.6. So where it is the last to be
heard of, a late answer tells nothing.
"""

_MOST_OF_UNPACK = 0.6
_SLOW_US = 1_000_000
"""Who is silent for so much of it, and for so long, and then takes a while to answer, may be slow
and have waited: processors that are emulated, or made of programmable logic."""

_ORDINARY_PAUSE_US = 5000
_SHORTEST_SILENCE_US = {
    WaitEvidence.INITCALLS: 1000,
    WaitEvidence.CALLER_IDS: 1000,
    WaitEvidence.LINES: _ORDINARY_PAUSE_US,
}
"""Anything shorter is an ordinary pause, and B1 then is the time to unpack but for that."""

_STRAY_LINES = 2
"""So many messages of nobody knows whom may break a silence where nobody says who prints."""

_LONGEST_WORDS = 80


class _Track:
    """The last and the first sign of life of the init task around the end of the unpack."""

    def __init__(self) -> None:
        self.before: tuple[int, str] | None = None
        self.after: tuple[int, str] | None = None

    def add(self, time_us: int, words: str, *, ended: bool) -> None:
        if not ended:
            self.before = (time_us, words)
        elif self.after is None:
            self.after = (time_us, words)


@dataclass(frozen=True, slots=True)
class _Line:
    """A message that may be the init task's, with a time."""

    time_us: int
    words: str


class _Lines:
    """Takes messages whose printers are told by their words alone; keeps what may be signs of life.

    ``first`` and ``last``: of those that are sure to be the init task's. ``first_of_all`` and
    ``last_of_all``: with those of nobody knows whom; ``strays``: how many of the latter came since
    ``last``. ``unknown``: how many of them there were, one that is repeated counting once.
    """

    def __init__(self) -> None:
        self.first: _Line | None = None
        self.last: _Line | None = None
        self.first_of_all: _Line | None = None
        self.last_of_all: _Line | None = None
        self.strays = 0
        self.init = 0
        self.unknown = 0
        self._text = ""
        self._traces = Traces()

    def add(self, message: KernelMessage) -> None:
        """Take a message; whoever causes a warning, its lines are no sign of life."""
        who = self._speaker(message)
        self.init += who is Speaker.INIT
        self.unknown += who is Speaker.UNKNOWN and message.text != self._text
        self._text = message.text
        if message.time_us is None or who in {Speaker.OTHER, Speaker.UNPACKER}:
            return
        line = _Line(message.time_us, message.text[:_LONGEST_WORDS])
        self.last_of_all = line
        self.first_of_all = self.first_of_all or line
        if who is Speaker.INIT:
            self.first = self.first or line
            self.last = line
            self.strays = 0
        else:
            self.strays += 1

    def _speaker(self, message: KernelMessage) -> Speaker:
        if self._traces.covers(message.text):
            return Speaker.OTHER
        if message.caller is not None:
            return Speaker.INIT if message.caller == _INIT_TASK else Speaker.OTHER
        return speaker(message.text)


class InitramfsWait:
    """Takes the messages of one boot as they come; see ``KernelMessages``."""

    def __init__(self) -> None:
        self._tracks = {
            evidence: _Track() for evidence in (WaitEvidence.INITCALLS, WaitEvidence.CALLER_IDS)
        }
        self._text = ""
        self._before = _Lines()
        self._after = _Lines()
        self._begin: KernelMessage | None = None
        self._ended = False
        self._running = ""
        self._at_end = ""

    def note(self, message: KernelMessage, line: KernelLine | None) -> None:
        """Take note of a message, and of what it tells, if anything."""
        event = line.event if line else None
        if event is KernelEvent.BEGIN and self._begin is None and not self._ended:
            self._begin = replace(message, text=self._text)
        if event is KernelEvent.FREED and not self._ended:
            self._ended = True
            self._at_end = self._running
        if event in _OF_THE_UNPACK:
            return
        if line and self._is_initcall(line):
            self._add(WaitEvidence.INITCALLS, message)
        if message.caller == _INIT_TASK:
            self._add(WaitEvidence.CALLER_IDS, message)
        if self._ended:
            if self._after.first is None:
                self._after.add(message)
        elif self._begin is None:
            self._text = message.text
        else:
            self._before.add(message)

    def anything_beside(self, version: tuple[int, int] | None) -> bool:
        """Tell whether anything but the unpacking went on between its beginning and its end.

        Of a kernel whose version says that it unpacks first, only messages that are sure to be the
        init task's count, or several: interrupts and threads go on in any case.
        """
        if self._begin is None or not self._ended:
            return False
        least = 1 if version is None or version >= FIRST_SEEN_ASYNCHRONOUS else 1 + _STRAY_LINES
        return self._before.init > 0 or self._before.unknown >= least

    def observation(self, timestamps: KernelTimestamps) -> ShadowObservation:
        """Return what was seen of B1 and B2: nothing where the beginning has been overwritten."""
        if timestamps.begun and timestamps.synchronous:
            return ShadowObservation(
                waiting=Waiting.SYNCHRONOUS,
                evidence=WaitEvidence.KERNEL,
                shadow_us=0,
                shadow_min_us=0,
                shadow_max_us=0,
                rest_us=timestamps.slack_us,
                slack_us=timestamps.slack_us,
            )
        if not timestamps.begun or timestamps.end_us is None:
            return _unknown(timestamps)
        for evidence, track in self._tracks.items():
            if track.before and track.after:
                silence = _Silence(*track.before, *track.after, timestamps.end_us)
                waited = silence.ended_by_unpack(evidence)
                return self._seen(timestamps, evidence, silence, waited=waited)
        if timestamps.synchronous is None:
            return _unknown(timestamps)  # it may have been the init task that unpacked
        found = self._by_lines(timestamps, timestamps.end_us)
        if found is None:
            return _unknown(timestamps)
        waited, silence = found
        return self._seen(timestamps, WaitEvidence.LINES, silence, waited=waited)

    def _seen(
        self,
        timestamps: KernelTimestamps,
        evidence: WaitEvidence,
        silence: _Silence,
        *,
        waited: bool,
    ) -> ShadowObservation:
        if not waited:
            return ShadowObservation(
                waiting=Waiting.HIDDEN,
                evidence=evidence,
                shadow_min_us=timestamps.unpack_us,
                shadow_max_us=timestamps.begin_to_init_us,
                slack_us=timestamps.slack_us,
            )
        begin_us = timestamps.begin_us
        shadow_us = None if begin_us is None else max(silence.last_us - begin_us, 0)
        return ShadowObservation(
            waiting=Waiting.WAITED,
            evidence=evidence,
            shadow_us=shadow_us,
            shadow_min_us=shadow_us,
            shadow_max_us=timestamps.unpack_us,
            rest_us=timestamps.slack_us,
            slack_us=timestamps.slack_us,
            waiter=self._at_end or silence.last,
            resumed=silence.next,
        )

    def _by_lines(self, timestamps: KernelTimestamps, end_us: int) -> tuple[bool, _Silence] | None:
        """Tell whether the init task waited, and its silence, by messages alone; None if unclear.

        Those of others do not break a silence, and those of nobody knows whom may or may not. It
        is clear where that does not matter.
        """
        before, after = self._before, self._after
        last_of_all, first_of_all = before.last_of_all, after.first_of_all
        if last_of_all is None and self._begin is not None and self._begin.time_us is not None:
            last_of_all = _Line(self._begin.time_us, self._begin.text[:_LONGEST_WORDS])
        if last_of_all is None or first_of_all is None:
            return None
        silences = [
            _Silence(last.time_us, last.words, first.time_us, first.words, end_us)
            for last in (before.last or last_of_all, last_of_all)
            for first in (after.first or first_of_all, first_of_all)
        ]
        certain, widest = silences[0], silences[-1]
        verdicts = {silence.ended_by_unpack(WaitEvidence.LINES) for silence in silences}
        if (waiter := certain.known_waiter) and not certain.is_short:
            follows = bool(_KNOWN_WAITERS[waiter].match(certain.next))
            if follows and certain.ended_by_unpack(WaitEvidence.LINES):
                return True, certain
        if verdicts == {True}:
            return True, widest
        unpack_us = timestamps.unpack_us
        may_wait = waiter is not None or certain.is_of_algorithms
        if may_wait and (not before.strays or not certain.is_short):
            busy = False
        elif verdicts == {False}:
            busy = not widest.may_be_slow(unpack_us)
        else:
            goes_on = 4 * (end_us - widest.last_us) <= (unpack_us or 0)
            busy = before.strays > _STRAY_LINES and goes_on
            busy &= not widest.ended_by_unpack(WaitEvidence.LINES)
        return (False, widest) if busy else None

    def _is_initcall(self, line: KernelLine) -> bool:
        """Follow the init task's initcalls; modules that are loaded meanwhile have their own."""
        if line.event is KernelEvent.CALLING and line.number == _FIRST_PROCESS:
            self._running = line.subject[:_LONGEST_WORDS]
            return True
        if line.event is KernelEvent.RETURNED and line.subject[:_LONGEST_WORDS] == self._running:
            self._running = ""
            return True
        return False

    def _add(self, evidence: WaitEvidence, message: KernelMessage) -> None:
        if message.time_us is not None:
            words = message.text[:_LONGEST_WORDS]
            self._tracks[evidence].add(message.time_us, words, ended=self._ended)


@dataclass(frozen=True, slots=True)
class _Silence:
    """The init task says something last and something next, and the unpack ends in between."""

    last_us: int
    last: str
    next_us: int
    next: str
    end_us: int

    @property
    def known_waiter(self) -> str | None:
        """What is known to wait and was heard of last."""
        return next((words for words in _KNOWN_WAITERS if self.last.startswith(words)), None)

    @property
    def is_of_algorithms(self) -> bool:
        """Whether the algorithms of crypto/ were initialised in it."""
        return bool(_AFTER_ALGORITHMS.match(self.next) and not _AFTER_ALGORITHMS.match(self.last))

    @property
    def is_short(self) -> bool:
        """Whether it may be an ordinary pause between two messages."""
        return self.end_us - self.last_us < _SHORTEST_SILENCE_US[WaitEvidence.LINES]

    def ended_by_unpack(self, evidence: WaitEvidence) -> bool:
        """Tell whether it ended so soon after the unpack that this is why."""
        if self.end_us - self.last_us < _SHORTEST_SILENCE_US[evidence]:
            return False
        return self._is_within(_PROMPT_AFTER_KNOWN_WAITER if self.known_waiter else _PROMPT)

    def may_be_slow(self, unpack_us: int | None) -> bool:
        """Tell whether it may have ended by the unpack, but late.

        It lasted for most of the unpack, or the answer took no longer than an ordinary pause: on a
        serial console each message takes milliseconds.
        """
        if not self.is_short and self.next_us - self.end_us <= _ORDINARY_PAUSE_US:
            return True
        silence_us = self.end_us - self.last_us
        least_us = max(_SLOW_US, _MOST_OF_UNPACK * (unpack_us or 0))
        return silence_us >= least_us and self._is_within(_PROMPT_AFTER_KNOWN_WAITER)

    def _is_within(self, part: float) -> bool:
        return self.next_us - self.end_us <= part * (self.next_us - self.last_us)


def _unknown(timestamps: KernelTimestamps) -> ShadowObservation:
    return ShadowObservation(
        waiting=Waiting.UNKNOWN,
        shadow_min_us=None if timestamps.begin_us is None else 0,
        shadow_max_us=timestamps.begin_to_init_us,
        slack_us=timestamps.slack_us,
    )
