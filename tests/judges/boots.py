"""Showing an image to a kernel."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host.run import SystemRunner
from initadvisor.records.kernel_log import KernelEvent, read_line
from tests.judges.kernels import qemu
from tests.judges.unified import firmware_options

if TYPE_CHECKING:
    from tests.judges.kernels import StartedKernel

_TIMEOUT_S = 900  # a guard against hanging: seconds on a machine that has nothing else to do
_LAST = "/last"
PARAMETERS = f"panic=-1 oops=panic loglevel=8 initramfs_async=0 no_timer_check rdinit={_LAST}"
"""For a kernel that is to tell what it makes of its initramfs, and then to stop.

Where its lz4 decompressor reads beyond the end of the image and of the memory, it would otherwise
wait for ever for the thread that died of it (Linux 6.12, observed). On a busy machine an emulated
one would take its timer for broken, and panic.
"""

_NOT_THERE = "VFS: Unable to mount root fs"
"""What a kernel panics with that goes on without the first process it was told to run."""
CRASH = "Kernel panic: "
"""What begins the words of a kernel that did not survive the image."""

_SAID_AT_MOST = 20
_LEVEL = re.compile(r"^<\d>")
"""What a crashing UML puts before its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a kernel said: its release, why it gave up (empty where it did not complain), and
    whether it found the file that was to be the first process.
    """

    release: str
    words: str
    last: bool


def ask(kernel: StartedKernel, handed: bytes) -> Heard:
    """Boot a kernel with an image.

    The program to be the first process is the last file of the archive, so that the kernel itself
    tells whether it is there. It is stopped as soon as it does.
    """
    with tempfile.TemporaryDirectory(prefix="judge-") as directory:
        image = Path(directory, "image")
        image.write_bytes(handed)
        return _hear(kernel.command(image, PARAMETERS, Path(directory)), Path(directory))


def ask_unified(image: bytes) -> Heard:
    """Boot a unified kernel image; ``PARAMETERS`` must be in it."""
    with tempfile.TemporaryDirectory(prefix="judge-") as directory:
        path = Path(directory, "image")
        path.write_bytes(image)
        return _hear(qemu(*firmware_options(path, Path(directory))), Path(directory))


def _hear(command: list[str | Path], scratch: Path) -> Heard:
    listener = _Listener()
    ending = SystemRunner().watch(
        command, timeout_s=_TIMEOUT_S, on_line=listener, env={"TMPDIR": str(scratch)}
    )
    assert listener.last is not None, f"no answer, {ending}: {' | '.join(listener.tail)}"
    words = "; ".join(listener.words)
    return Heard(release=listener.release, words=words, last=listener.last)


class _Listener:
    """Hears a kernel out; ``last`` is None until it has said whether that file is there."""

    def __init__(self) -> None:
        self.release = ""
        self.words: list[str] = []
        self.last: bool | None = None
        self.tail: list[str] = []

    def __call__(self, line: bytes) -> bool:
        text = _LEVEL.sub("", line.decode(errors="replace"))
        self.tail = [*self.tail[-_SAID_AT_MOST:], text]
        said = read_line(text)
        if said and said.event is KernelEvent.VERSION:
            self.release = said.subject
        elif said and said.event is KernelEvent.FAILED:
            self.words.append(said.subject)
        elif said and said.event is KernelEvent.RUN:
            self.last = said.subject == _LAST
        elif said and said.event is KernelEvent.PANIC:
            if not said.subject.startswith(_NOT_THERE):
                self.words.append(CRASH + said.subject)
            self.last = False
        return self.last is not None
