"""The marks of one boot, taken from the kernel's messages as they come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.boots.initramfs_wait import InitramfsWait
from initadvisor.image.kernel import ASYNCHRONOUS_SINCE, kernel_version
from initadvisor.records.boot_class import asked_to_wait, command_line_words, for_kernel
from initadvisor.records.kernel_log import UNPACKING_INITCALL, KernelEvent, recognise
from initadvisor.records.marks import (
    BootStep,
    DebugAid,
    KernelBoot,
    KernelTimestamps,
    MachineWords,
    longest,
)

if TYPE_CHECKING:
    from initadvisor.records.kernel_log import KernelLine, KernelMessage


_INIT_TASK = "T1"
_MOST_FAILURES = 4
_MOST_INITCALLS = 50
_LONGEST_WORDS = 200
_LONGEST_COMMAND_LINE = 65536
_SURELY_WHOLE = 980
"""Characters of "Kernel command line: ..." up to which no kernel has cut it off: a message has 1024
bytes at most, less 32 or 48 for its prefix (LOG_LINE_MAX, kernel/printk/printk.c)."""

_CONTINUED = " \\"
"""Ends each line but the last of a command line that is printed in several (since 6.19)."""

_RUN_TOLD_SINCE = (4, 19)
"""The first Linux that says "Run /init as init process"."""

_AIDS = {
    "kasan": DebugAid.KASAN,
    "KernelMemorySanitizer": DebugAid.KMSAN,
    "kcsan": DebugAid.KCSAN,
    "Lock dependency validator": DebugAid.LOCKDEP,
    "kmemleak": DebugAid.KMEMLEAK,
}

_OF_MACHINE = {
    KernelEvent.HYPERVISOR: "hypervisor",
    KernelEvent.PRODUCT: "product",
    KernelEvent.PROCESSOR: "processor",
    KernelEvent.MICROCODE: "microcode",
}
"""Which field of ``MachineWords`` each is."""


class KernelMessages:
    """Takes the messages of ONE boot, in the kernel's order, and keeps what matters of them.

    Its memory is bounded, whatever the messages are. What comes after /init ran changes nothing:
    kernels that do not say when they run it free their own initial memory just before.
    """

    def __init__(self) -> None:
        self._waiter = InitramfsWait()
        self._first: dict[KernelEvent, KernelLine] = {}  # of several alike, the first counts
        self._command_line: str | None = None
        self._command_line_whole = True
        self._command_line_goes_on = False
        self._freed_kib = 0
        self._initcall_us: int | None = None
        self._initcalls: list[BootStep] = []
        self._synchronous: bool | None = None
        self._failures: list[str] = []
        self._aids: set[DebugAid] = set()
        self._machine = MachineWords()
        self._missed = 0
        self._messages = 0
        self._contradictory = False
        self._before_init: KernelBoot | None = None

    def note(self, message: KernelMessage) -> bool:
        """Take note of a message; return whether nothing that follows matters any more."""
        if KernelEvent.RUN in self._first:
            return True
        self._messages += 1
        line = recognise(message)
        if line is not None:
            self._note_line(line, message)
        self._waiter.note(message, line)
        if line is not None and line.event is KernelEvent.FREED_INIT and not self._before_init:
            self._before_init = self._so_far()
        return KernelEvent.RUN in self._first

    def lost(self, messages: int) -> None:
        """Take note that messages, at least one, were lost at this point."""
        if KernelEvent.RUN not in self._first:
            self._missed += max(messages, 1)

    def result(self) -> KernelBoot:
        """Return what the messages so far tell."""
        if self._before_init and not self._says_when_it_runs_init():
            return self._before_init
        return self._so_far()

    def _says_when_it_runs_init(self) -> bool:
        if KernelEvent.RUN in self._first:
            return True
        version = self._version()
        return version is not None and version >= _RUN_TOLD_SINCE

    def _version(self) -> tuple[int, int] | None:
        line = self._first.get(KernelEvent.VERSION)
        return kernel_version(line.subject) if line else None

    def _so_far(self) -> KernelBoot:
        timestamps = self._marks()
        return KernelBoot(
            timestamps=timestamps,
            shadow=self._waiter.observation(timestamps),
            initcalls=longest(self._initcalls, most=_MOST_INITCALLS),
        )

    def _note_line(self, line: KernelLine, message: KernelMessage) -> None:
        first = self._first.setdefault(line.event, line)
        match line.event:
            case KernelEvent.BEGIN:
                self._contradictory |= line.time_us != first.time_us
                if first is line and message.caller is not None:
                    self._synchronous = message.caller == _INIT_TASK
            case KernelEvent.FREED:
                self._freed_kib += line.number
            case KernelEvent.FAILED if len(self._failures) < _MOST_FAILURES:
                self._failures.append(line.subject[:_LONGEST_WORDS])
            case KernelEvent.RETURNED:
                self._note_returned(line)
            case KernelEvent.VERSION:
                self._contradictory |= first is not line and KernelEvent.BEGIN in self._first
            case KernelEvent.COMMAND_LINE:
                self._add_command_line(message.text, line.subject)
            case KernelEvent.DEBUG_AID:
                self._aids.add(_AIDS[line.subject])
            case _ if line.event in _OF_MACHINE:
                words = line.subject[:_LONGEST_WORDS]
                self._machine = replace(self._machine, **{_OF_MACHINE[line.event]: words})
            case _:
                pass  # the first is all that matters, or it is of interest to the waiter only

    def _note_returned(self, line: KernelLine) -> None:
        """An initcall that returns before all is unpacked has only begun it.

        It is printed when it has returned, with what it took by its own clock (init/main.c,
        trace_initcall_finish_cb). Where nothing is freed, the order of the two tells nothing.
        """
        if line.time_us is not None and line.number <= line.time_us:
            self._initcalls.append(
                BootStep(
                    name=line.subject[:_LONGEST_WORDS],
                    start_us=line.time_us - line.number,
                    duration_us=line.number,
                )
            )
            if len(self._initcalls) > 2 * _MOST_INITCALLS:
                self._initcalls = list(longest(self._initcalls, most=_MOST_INITCALLS))
        if line.subject != UNPACKING_INITCALL or self._initcall_us is not None:
            return
        self._initcall_us = line.number
        if KernelEvent.BEGIN in self._first and not _retained(self._command_line or ""):
            self._synchronous = KernelEvent.FREED in self._first

    def _add_command_line(self, text: str, words: str) -> None:
        """Long ones are cut off, or since 6.19 go on in further lines that begin the same way."""
        if self._command_line is None:
            self._command_line = ""
        elif not self._command_line_goes_on:
            return
        self._command_line_goes_on = words.endswith(_CONTINUED)
        words = words.removesuffix(_CONTINUED)
        if not self._command_line_goes_on and len(text) > _SURELY_WHOLE:
            self._command_line_whole = False
        whole = f"{self._command_line} {words}".strip()
        self._command_line_whole &= len(whole) <= _LONGEST_COMMAND_LINE
        self._command_line = whole[:_LONGEST_COMMAND_LINE]

    def _marks(self) -> KernelTimestamps:
        first = self._first.get
        begin, freed, run = map(first, (KernelEvent.BEGIN, KernelEvent.FREED, KernelEvent.RUN))
        version, panic = first(KernelEvent.VERSION), first(KernelEvent.PANIC)
        oops = first(KernelEvent.OOPS)
        begin_us, end_us, run_us = (line.time_us if line else None for line in (begin, freed, run))
        told = [time_us for time_us in (begin_us, end_us, run_us) if time_us is not None]
        words = self._command_line or ""
        return KernelTimestamps(
            release=version.subject[:_LONGEST_WORDS] if version else None,
            version=(version.detail[:_LONGEST_WORDS] or None) if version else None,
            command_line=self._command_line,
            command_line_whole=self._command_line_whole and not self._command_line_goes_on,
            begun=begin is not None,
            freed=freed is not None,
            begin_us=begin_us,
            end_us=end_us,
            run_init_us=run_us,
            run_program=run.subject[:_LONGEST_WORDS] if run else None,
            loaded_kib=self._freed_kib if freed else None,
            initcall_us=self._initcall_us,
            synchronous=self._is_synchronous(words),
            retained=_retained(words),
            missed_messages=self._missed,
            failures=tuple(self._failures),
            panic=panic.subject[:_LONGEST_WORDS] if panic else None,
            oops=oops.subject[:_LONGEST_WORDS] if oops else None,
            debug_aids=tuple(sorted(self._aids | _aids_asked_for(words))),
            contradictory=self._contradictory or told != sorted(told),
            messages=self._messages,
            machine=self._machine,
        )

    def _is_synchronous(self, command_line: str) -> bool | None:
        """Who printed what tells best, then what was asked for, then the version.

        A version is what somebody has written: vendors take changes over early.
        """
        if self._synchronous is not None:
            return self._synchronous
        version = self._version()
        if self._waiter.anything_beside(version):
            return False
        if asked_to_wait(command_line):
            return True
        return None if version is None else version < ASYNCHRONOUS_SINCE


def _retained(command_line: str) -> bool:
    """With a value they mean nothing (init/initramfs.c, retain_initrd_param)."""
    words = command_line_words(for_kernel(command_line))
    return not {"retain_initrd", "keepinitrd"}.isdisjoint(words)


def _aids_asked_for(command_line: str) -> set[DebugAid]:
    """What is switched on by a parameter says nothing of itself in the log, or not for certain."""
    found = set()
    for word in command_line_words(for_kernel(command_line)):
        name, _, value = word.partition("=")
        match name:
            case "slub_debug" | "slab_debug" if value not in {"-", "O"}:
                found.add(DebugAid.SLAB_DEBUG)
            case "debug_pagealloc" | "page_owner" if value[:2] == "on" or value[:1] in {"1", "y"}:
                found.add(DebugAid.PAGE_DEBUG)
            case "ftrace" if value.startswith("function"):
                found.add(DebugAid.FUNCTION_TRACER)
    return found
