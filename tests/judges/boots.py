"""Showing an image to a kernel."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host.run import Ending, SystemRunner
from initadvisor.model.kernel_log import Event, read_line
from tests.judges.answers import Answer, digest

if TYPE_CHECKING:
    from tests.judges.kernels import StartedKernel

_TIMEOUT_S = 90
_LAST = "/last"
_NOT_THERE = "VFS: Unable to mount root fs"
"""What a kernel panics with that goes on without the first process it was told to run."""
_SAID_AT_MOST = 20
_LEVEL = re.compile(r"^<\d>")
"""What a crashing UML puts before its lines."""


def ask(kernel: StartedKernel, handed: bytes) -> tuple[Answer, str]:
    """Boot with an image; return the answer and the kernel's release.

    The program to be the first process is the last file of the archive, so that the kernel itself
    tells whether it is there. It is stopped as soon as it does.
    """
    with tempfile.TemporaryDirectory(prefix="judge-") as directory:
        image = Path(directory, "image")
        image.write_bytes(handed)
        command = kernel.command(image, f"rdinit={_LAST}", Path(directory))
        listener = _Listener()
        ending = SystemRunner().watch(
            command,
            timeout_s=_TIMEOUT_S,
            on_line=listener,
            env={"TMPDIR": directory},
        )
    assert listener.last is not None, f"{ending}: {' | '.join(listener.tail)}"
    assert ending is Ending.STOPPED
    words = "; ".join(listener.words)
    return Answer(sha256=digest(handed), words=words, last=listener.last), listener.release


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
        if said and said.event is Event.VERSION:
            self.release = said.subject
        elif said and said.event is Event.FAILED:
            self.words.append(said.subject)
        elif said and said.event is Event.RUN:
            self.last = said.subject == _LAST
        elif said and said.event is Event.PANIC:
            if not said.subject.startswith(_NOT_THERE):
                self.words.append(f"Kernel panic: {said.subject}")
            self.last = False
        return self.last is not None
