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
from collections import deque
from typing import TYPE_CHECKING

from initadvisor.records.kernel_log import KernelEvent
from initadvisor.records.marks import ShadowObservation, WaitEvidence, Waiting

if TYPE_CHECKING:
    from initadvisor.records.kernel_log import KernelLine, KernelMessage
    from initadvisor.records.marks import KernelTimestamps


_INIT_TASK = "T1"
_FIRST_PROCESS = 1

_OF_THE_UNPACK = frozenset({KernelEvent.BEGIN, KernelEvent.FREED, KernelEvent.FAILED})
"""Printed by whoever unpacks."""

_BY_OTHERS = re.compile(
    r"usb \d|ata\d|scsi \d|s[dr] \d|mmc\d| (?:sd[a-z]|nvme\dn\d|mmcblk\d):"
    r"|input: |hid-generic |psmouse |random: crng"
    r"|tsc: Refined|clocksource: (?:tsc: mask|Switched|Watchdog)"
)
"""How messages begin that work queues, interrupts and threads print while the init task is busy or
waits."""

_KNOWN_WAITERS = (
    "NET: Registered PF_INET6",
    "NET: Registered protocol family 10",
    "Asymmetric key parser",
    "Loading compiled-in X.509",
)
"""The last words before most silences: what follows them in the kernel loads a module or runs a
self-test that does (30 of 34 real boots that waited)."""

_PROMPT = 0.15
_PROMPT_AFTER_KNOWN_WAITER = 0.3
"""Which part of a silence may lie after the end of the unpack so that it counts as ended by it.

Were silence and unpack unrelated, the end would fall anywhere in it, and so early only with this
probability. In the logs of 42 real boots, the 34 that waited have 0.004 to 0.136, the others 0.16
to 0.98. What a known waiter does next may take longer on a slow processor before it is heard of: in
guests without KVM, whose self-tests take half a second, 0.25 to 0.6. So where it is the last to be
heard of, a late answer tells nothing.
"""

_SHORTEST_SILENCE_US = {
    WaitEvidence.INITCALLS: 1000,
    WaitEvidence.CALLER_IDS: 1000,
    WaitEvidence.LINES: 5000,
}
"""Anything shorter is an ordinary pause, and B1 then is the time to unpack but for that."""

_STRAY_LINES = 2
"""So many messages of others may break a silence unrecognised where nobody says who prints."""

_LONGEST_WORDS = 80


class _Track:
    """The signs of life of the init task by one kind of evidence, around the end of the unpack."""

    def __init__(self) -> None:
        self.before: deque[tuple[int, str]] = deque(maxlen=1 + _STRAY_LINES)
        self.after: tuple[int, str] | None = None

    def add(self, time_us: int, words: str, *, ended: bool) -> None:
        if not ended:
            self.before.append((time_us, words))
        elif self.after is None:
            self.after = (time_us, words)


class InitramfsWait:
    """Takes the messages of one boot as they come; see ``KernelMessages``."""

    def __init__(self) -> None:
        self._tracks = {
            evidence: _Track()
            for evidence in (WaitEvidence.INITCALLS, WaitEvidence.CALLER_IDS, WaitEvidence.LINES)
        }
        self._ended = False
        self._running = ""
        self._at_end = ""

    def note(self, message: KernelMessage, line: KernelLine | None) -> None:
        """Take note of a message, and of what it tells, if anything."""
        event = line.event if line else None
        if line and event is KernelEvent.FREED and not self._ended:
            self._ended = True
            self._at_end = self._running
        if message.time_us is None or event in _OF_THE_UNPACK:
            return
        if line and self._is_initcall(line):
            self._add(WaitEvidence.INITCALLS, message)
        if message.caller == _INIT_TASK:
            self._add(WaitEvidence.CALLER_IDS, message)
        if message.caller in {None, _INIT_TASK} and not _BY_OTHERS.match(message.text):
            self._add(WaitEvidence.LINES, message)

    def observation(self, timestamps: KernelTimestamps) -> ShadowObservation:
        """Return what was seen of B1 and B2."""
        if timestamps.synchronous:
            return ShadowObservation(
                waiting=Waiting.SYNCHRONOUS,
                evidence=WaitEvidence.KERNEL,
                shadow_us=0,
                shadow_min_us=0,
                shadow_max_us=0,
                rest_us=timestamps.slack_us,
                slack_us=timestamps.slack_us,
            )
        evidence = self._best_evidence()
        if evidence is None or timestamps.end_us is None:
            return _unknown(timestamps)
        track = self._tracks[evidence]
        waited = _has_waited(track, evidence, timestamps)
        if waited is None:
            return _unknown(timestamps)
        if not waited:
            return ShadowObservation(
                waiting=Waiting.HIDDEN,
                evidence=evidence,
                shadow_min_us=timestamps.unpack_us,
                shadow_max_us=timestamps.begin_to_init_us,
                slack_us=timestamps.slack_us,
            )
        return self._waited(track, evidence, timestamps)

    def _waited(
        self, track: _Track, evidence: WaitEvidence, timestamps: KernelTimestamps
    ) -> ShadowObservation:
        last_us, words = track.before[-1]
        shadow_us = None if timestamps.begin_us is None else max(last_us - timestamps.begin_us, 0)
        return ShadowObservation(
            waiting=Waiting.WAITED,
            evidence=evidence,
            shadow_us=shadow_us,
            shadow_min_us=shadow_us,
            shadow_max_us=timestamps.unpack_us,
            rest_us=timestamps.slack_us,
            slack_us=timestamps.slack_us,
            waiter=self._at_end or words,
            resumed=track.after[1] if track.after else "",
        )

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

    def _best_evidence(self) -> WaitEvidence | None:
        """The kinds are in the order of their worth; each needs a sign on both sides."""
        for evidence, track in self._tracks.items():
            if track.before and track.after:
                return evidence
        return None


def _has_waited(track: _Track, evidence: WaitEvidence, timestamps: KernelTimestamps) -> bool | None:
    """Tell whether the silence around the end of the unpack ended with it, None if unclear.

    It is unclear where one would have, but for a line or two just before the end that nobody says
    the origin of, and where a known waiter is heard of too late after it.
    """
    if timestamps.end_us is None or track.after is None:
        return None
    resumed_us = track.after[0] - timestamps.end_us
    silences = [(timestamps.end_us - time_us, words) for time_us, words in reversed(track.before)]
    if _ended_by_unpack(*silences[0], resumed_us, evidence):
        return True
    if silences[0][1].startswith(_KNOWN_WAITERS):
        return None
    unpack_us = timestamps.unpack_us
    if evidence is not WaitEvidence.LINES or not unpack_us or 4 * silences[0][0] > unpack_us:
        return False
    broken = any(
        2 * silence_us > unpack_us
        and _ended_by_unpack(min(silence_us, unpack_us), words, resumed_us, evidence)
        for silence_us, words in silences[1:]
    )
    return None if broken else False


def _ended_by_unpack(silence_us: int, words: str, resumed_us: int, evidence: WaitEvidence) -> bool:
    if silence_us < _SHORTEST_SILENCE_US[evidence]:
        return False
    prompt = _PROMPT_AFTER_KNOWN_WAITER if words.startswith(_KNOWN_WAITERS) else _PROMPT
    return resumed_us <= prompt * (silence_us + resumed_us)


def _unknown(timestamps: KernelTimestamps) -> ShadowObservation:
    return ShadowObservation(
        waiting=Waiting.UNKNOWN,
        shadow_min_us=None if timestamps.begin_us is None else 0,
        shadow_max_us=timestamps.begin_to_init_us,
        slack_us=timestamps.slack_us,
    )
