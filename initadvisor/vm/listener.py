"""Follows what a kernel says while it boots, up to the word that is waited for."""

from __future__ import annotations

from collections import deque

from initadvisor.records.kernel_log import UNPACKING_INITCALL, KernelEvent, KernelLine, read_line
from initadvisor.records.lab import BootKind

_TAIL_LINES = 8
_FIRST_PROCESS = 1
_WORTH_NAMING_US = 1000


class Listener:
    """Called with each line of the console; true once nothing that follows matters.

    ``release`` and ``panic`` are the kernel's words, ``failures`` those about the image, ``tail``
    the last lines of all. What the kernel has not said is None.
    """

    def __init__(self, kind: BootKind) -> None:
        self._kind = kind
        self._began: KernelLine | None = None
        self._freed: KernelLine | None = None
        self._running: KernelLine | None = None
        self._at_end: str | None = None
        self._initcall_us: int | None = None
        self._run: KernelLine | None = None
        self.release: str | None = None
        self.panic: str | None = None
        self.waiter: str | None = None
        self.failures: list[str] = []
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def __call__(self, raw: bytes) -> bool:
        """Take note of a line; return whether it was the last of interest."""
        text = raw.decode(errors="replace")
        self.tail.append(text)
        line = read_line(text)
        return line is not None and self._note(line)

    @property
    def unpack_us(self) -> int | None:
        """How long unpacking took: the initcall's own figure where nothing else ran beside it."""
        if self._kind is BootKind.UNPACK:
            return self._initcall_us if self._began else None
        return _between_us(self._began, self._freed)

    @property
    def init_us(self) -> int | None:
        """How long it took from the beginning of unpacking until /init would run."""
        return _between_us(self._began, self._run)

    @property
    def crashed_on(self) -> str | None:
        """The kernel's last words where it panicked while it unpacked the image."""
        unpacking = self._began is not None and self._freed is None
        return self.panic if unpacking else None

    def _note(self, line: KernelLine) -> bool:
        match line.event:
            case KernelEvent.VERSION:
                self.release = line.subject
            case KernelEvent.BEGIN:
                self._began = line
            case KernelEvent.FAILED:
                self.failures.append(line.subject)
            case KernelEvent.FREED:
                self._freed = line
                self._at_end = self._running.subject if self._running else None
            case KernelEvent.CALLING | KernelEvent.RETURNED:
                return self._note_initcall(line)
            case KernelEvent.RUN:
                self._run = line
                return True
            case KernelEvent.PANIC:
                self.panic = line.subject
                return True
            case _:
                pass  # of the machine and the command line, which the lab chose
        return False

    def _note_initcall(self, line: KernelLine) -> bool:
        """An initcall that was under way when unpacking ended, and ends with it, has waited."""
        if line.event is KernelEvent.CALLING:
            if line.number == _FIRST_PROCESS:
                self._running = line
            return False
        if self._running and self._running.subject == line.subject:
            self._running = None
        if line.subject == UNPACKING_INITCALL:
            self._initcall_us = line.number
            return self._kind is BootKind.UNPACK
        if line.subject == self._at_end:
            self._at_end = None
            if line.number >= _WORTH_NAMING_US:
                self.waiter = line.subject
        return False


def _between_us(begin: KernelLine | None, end: KernelLine | None) -> int | None:
    if begin is None or end is None or begin.time_us is None or end.time_us is None:
        return None
    return end.time_us - begin.time_us
