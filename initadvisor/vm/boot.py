"""Boot an image once: what the kernel said and made of it, or a lost virtual machine."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import LostVMError
from initadvisor.core.text import shown
from initadvisor.host.files import append_range, open_regular
from initadvisor.host.process import Ending
from initadvisor.image.cpio import CpioWriter
from initadvisor.records.kernel_log import UNPACKING_INITCALL, KernelEvent, KernelLine, read_line
from initadvisor.records.lab import BootKind
from initadvisor.vm.kernel import scratch_directory
from initadvisor.vm.machine import DIES_WITH_US, END_PROGRAM, memory_mb, time_limit_s

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.vm.machine import VirtualMachine


_NO_MEMORY = ("write error", "ut of memory", "deadlocked on memory")
"""What the kernel says when its memory is full, which here has the size we gave it."""

_STOP = b"#!/does-not-exist\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """What the kernel ``release`` said of an image.

    ``refusal``: its words where it complained, and then the times mean nothing. ``unpack_us``,
    ``init_us`` and ``waiter`` as in ``LabSample``.
    """

    release: str
    refusal: str | None
    unpack_us: int
    init_us: int | None = None
    waiter: str | None = None


def boot(
    host: Host,
    machine: VirtualMachine,
    image: Path,
    *,
    unpacked_bytes: int,
    kind: BootKind = BootKind.UNPACK,
) -> Boot:
    """Boot ``image`` once, read what the kernel says, and leave nothing behind.

    ``unpacked_bytes`` is how much the machine must have room for. Raises ``LostVMError`` where
    the machine said nothing, hung or ended too soon, which says nothing of the image.
    """
    image_bytes = image.stat().st_size
    room = image_bytes if kind is BootKind.INIT else 0
    with scratch_directory(room) as scratch:
        if kind is BootKind.INIT:
            image = _with_end_program(image, scratch)
        listener = Listener(kind)
        limit_s = time_limit_s(machine.engine, unpacked_bytes=unpacked_bytes)
        size_mb = memory_mb(image_bytes=image_bytes, unpacked_bytes=unpacked_bytes)
        command = machine.command(image, kind, memory_mb=size_mb, scratch=scratch)
        ending = host.runner.watch([*DIES_WITH_US, *command], timeout_s=limit_s, on_line=listener)
    return _result(listener, ending, machine, limit_s)


def _result(listener: Listener, ending: Ending, machine: VirtualMachine, limit_s: float) -> Boot:
    if reason := _refusal(listener):
        if any(words in reason for words in _NO_MEMORY):
            msg = f"the {machine.engine} machine had too little memory for the image"
            raise LostVMError(msg)
        return Boot(release=listener.release or "", refusal=reason, unpack_us=0)
    if listener.unpack_us is None:
        raise LostVMError(_why_lost(listener, ending, machine, limit_s))
    return Boot(
        release=listener.release or "",
        refusal=None,
        unpack_us=listener.unpack_us,
        init_us=listener.init_us,
        waiter=listener.waiter,
    )


def _refusal(listener: Listener) -> str | None:
    if listener.failures:
        return shown("; ".join(listener.failures))
    if listener.crashed_on is not None:
        return f"the kernel crashed on it: {shown(listener.crashed_on)}"
    return None


def _why_lost(listener: Listener, ending: Ending, machine: VirtualMachine, limit_s: float) -> str:
    lost = f"lost a {machine.engine} machine with {machine.kernel.path}:"
    if listener.panic:
        return f"{lost} the kernel panicked: {shown(listener.panic)}"
    said = next((line.strip() for line in reversed(listener.tail) if line.strip()), None)
    if said is None and ending is Ending.TIME_OUT:
        return f"{lost} no word within {limit_s:.0f} s (has the kernel a serial console?)"
    if said is None:
        return f"{lost} it ended without a word"
    last = f"last words: {shown(said[:200])}"
    match ending:
        case Ending.TIME_OUT:
            return f"{lost} it did not unpack the image within {limit_s:.0f} s, {last}"
        case Ending.FLOOD:
            return f"{lost} it would not stop talking, {last}"
        case Ending.EXITED | Ending.STOPPED:
            return f"{lost} it ended before it had unpacked the image, {last}"


def _with_end_program(image: Path, scratch: Path) -> Path:
    """Return a copy of ``image`` behind an archive with the program that ends the boot."""
    made = scratch / "initrd"
    with made.open("wb") as target, open_regular(image) as source:
        with CpioWriter(target) as archive:
            archive.file(END_PROGRAM, _STOP, mode=0o755)
        target.write(bytes(-target.tell() % 512))
        append_range(target, source, offset=0, size_bytes=image.stat().st_size)
    return made


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
