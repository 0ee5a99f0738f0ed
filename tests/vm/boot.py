"""One boot: QEMU is started, listened to, and gone afterwards whatever happens."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from tests.fixtures.cache import cache_dir
from tests.vm.console import Console, Line
from tests.vm.machine import Machine, qemu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.guest import Guest

HANG_S = 3600.0
"""How long a machine may say nothing that is waited for: ten times what the longest boot takes.

A safety net, not what a test waits.
"""

_TAIL_LINES = 40
_POLL_S = 0.1
_READY = re.compile(r"guest: ready boot=(\w+) entry=(\S+) state=(\S+)")
_OUTPUT = re.compile(r"guest: ([>+]) ?(.*)$")
_DONE = re.compile(r"guest: done status=(\d+)")


class Then(StrEnum):
    """What the guest does when the boot is complete and the script is done."""

    STAY = "stay"
    POWER_OFF = "poweroff"
    REBOOT = "reboot"


class End(StrEnum):
    """How a boot ended, in the kernel's own words."""

    POWER_OFF = "reboot: Power down"
    RESTART = "reboot: Restarting system"
    PANIC = "Kernel panic - not syncing"
    KILLED = "killed by the test"


class LostGuestError(Exception):
    """A machine that hung, died or did not say what was waited for; with the end of its log."""

    def __init__(self, what: str, lines: tuple[Line, ...], errors: str = "") -> None:
        tail = "\n".join(f"[{line.at_s:8.2f}] {line.text}" for line in lines[-_TAIL_LINES:])
        super().__init__("\n".join((f"the guest {what}", tail, errors)))


class ScriptFailedError(Exception):
    """The script of a boot failed in the guest; the message is what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A boot that is over.

    ``started_s``: when the machine was started, by the host's monotonic clock.
    ``boot_id`` (as the journal has it) and ``entry`` (LoaderEntrySelected) are None where the boot
    was not completed, or there was no loader that says it; ``output`` is what the script said.
    """

    end: End
    started_s: float
    lines: tuple[Line, ...]
    boot_id: str | None
    entry: str | None
    output: tuple[str, ...]

    def find(self, pattern: str) -> re.Match[str] | None:
        """Return the first place on the console that matches, None where there is none."""
        found = (re.search(pattern, line.text) for line in self.lines)
        return next((match for match in found if match), None)


class Running:
    """A machine that runs; made by ``running``."""

    def __init__(self, process: subprocess.Popen[bytes], console: Console, errors: Path) -> None:
        self._process = process
        self._console = console
        self._errors = errors
        self._seen = 0
        self._killed = False

    def wait_for(self, pattern: str, *, within_s: float = HANG_S) -> re.Match[str]:
        """Return the next place on the console that matches, after the one returned before.

        Raises ``LostGuestError`` when the machine ends, or ``within_s`` passes, without it.
        """
        compiled = re.compile(pattern)
        number = self._console.wait_for(compiled, self._seen, within_s)
        if number is None:
            self._fail(f"never said {pattern!r}")
        self._seen = number + 1
        match = compiled.search(self._console.lines[number].text)
        assert match
        return match

    @property
    def output(self) -> tuple[str, ...]:
        """What the script has said so far."""
        return _output(self._console.lines)

    def kill(self) -> None:
        """Cut the power, if it is still on."""
        if self._process.poll() is None:
            self._killed = True
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait_for_end(self, *, within_s: float = HANG_S) -> Boot:
        """Wait until the machine stops by itself, or was killed, and return what happened.

        Raises ``LostGuestError`` when it does not, or QEMU failed, or the guest did not say why.
        """
        if not self._console.wait_for_end(within_s):
            self._fail("did not stop")
        status = self._process.wait(timeout=60)
        if status != 0 and not self._killed:
            self._fail(f"stopped: QEMU exited with status {status}")
        return self._boot()

    def _boot(self) -> Boot:
        lines = self._console.lines
        ready = next((m for line in lines if (m := _READY.search(line.text))), None)
        return Boot(
            end=self._end(lines),
            started_s=self._console.started_s,
            lines=lines,
            boot_id=ready[1] if ready else None,
            entry=ready[2] if ready and ready[2] != "-" else None,
            output=_output(lines),
        )

    def _end(self, lines: tuple[Line, ...]) -> End:
        if self._killed:
            return End.KILLED
        said = [line.text for line in reversed(lines) if not _OUTPUT.search(line.text)]
        end = next((end for text in said for end in End if end.value in text), None)
        return end or self._fail("stopped without a word")

    def _fail(self, what: str) -> NoReturn:
        errors = self._errors.read_text(errors="replace")
        raise LostGuestError(what, self._console.lines, errors)


@contextlib.contextmanager
def running(
    guest: Guest,
    machine: Machine | None = None,
    *,
    direct: bool = False,
    script: str = "",
    then: Then = Then.STAY,
    log: Path | None = None,
) -> Iterator[Running]:
    """Start a machine; when the block is left it is no more.

    ``script`` is run by bash in the guest when the boot is complete. ``log`` is where the lines
    of the console go as they come, by default beside the guest's disk. One more machine runs
    than there are processors at most, whichever tests they are of: without KVM each takes one.
    """
    credentials = {"guest.then": then.value}
    if script:
        credentials["guest.script"] = script
    with tempfile.TemporaryDirectory(prefix="vm-") as directory, _turn():
        scratch = Path(directory)
        argv = qemu(guest, machine or Machine(), credentials, direct=direct, scratch=scratch)
        with (scratch / "errors").open("wb") as errors:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert process.stdout
        with process.stdout:
            console = Console(process.stdout, log or guest.directory / "console.log")
            machine_running = Running(process, console, scratch / "errors")
            try:
                yield machine_running
            finally:
                machine_running.kill()
                process.wait()
                console.close()


def boot(
    guest: Guest,
    machine: Machine | None = None,
    *,
    direct: bool = False,
    script: str = "",
    then: Then = Then.POWER_OFF,
    log: Path | None = None,
) -> Boot:
    """Boot once, until the guest stops by itself; see ``running``.

    Raises ``LostGuestError``, and ``ScriptFailedError`` when the script ends with another status
    than 0 (it runs with ``bash -eu``).
    """
    with running(guest, machine, direct=direct, script=script, then=then, log=log) as started:
        result = started.wait_for_end()
    done = result.find(_DONE.pattern)
    if script and done and done[1] != "0":
        said = "\n".join(result.output)
        msg = f"status {done[1]} of\n{script}\n{said}"
        raise ScriptFailedError(msg)
    return result


def _output(lines: tuple[Line, ...]) -> tuple[str, ...]:
    """Put the script's lines together again where the agent had to split them."""
    said: list[str] = []
    unfinished = ""
    for line in lines:
        match = _OUTPUT.search(line.text)
        if match and match[1] == "+":
            unfinished += match[2]
        elif match:
            said.append(unfinished + match[2])
            unfinished = ""
    return tuple(said)


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Wait until a machine may run."""
    with contextlib.ExitStack() as stack:
        names = [cache_dir() / f"vm-{number}.lock" for number in range((os.cpu_count() or 1) + 1)]
        files = [stack.enter_context(name.open("w")) for name in names]
        while not any(_is_free(file) for file in files):
            time.sleep(_POLL_S)
        yield


def _is_free(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
