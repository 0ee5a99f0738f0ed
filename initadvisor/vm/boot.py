"""Boot an image once: what the kernel made of it, or a lost virtual machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import LostVMError
from initadvisor.core.plain_values import shown
from initadvisor.host.files import append_range, open_regular
from initadvisor.host.listen import Ending
from initadvisor.image.cpio import CpioWriter
from initadvisor.records.lab import BootKind
from initadvisor.vm.kernel import scratch_directory
from initadvisor.vm.listener import Listener
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
