"""What the daemon and systemd tell each other: status, that it lives, when to start it again."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.core.text import shown
from initadvisor.daemon.planning import Wake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.apply.plan_values import StagedImage
    from initadvisor.candidates.decompression import Stream
    from initadvisor.core.settings import Setting
    from initadvisor.daemon.planning import Leave
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage, SkippedSetting
    from initadvisor.records.lab import LabSample, LabSubject, LostBoot


_log = logging.getLogger(__name__)

RETRY_TIMER = "initadvisord-retry.timer"

_PRIORITIES = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 5,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}
"""A warning is what was done to the machine, or advised: a notice, in the journal's words."""

_TIMEOUT_S = 10.0
_BOOTED = "/run/systemd/system"
_STATUS_LENGTH = 200


class _WithPriority(logging.Formatter):
    """Puts the priority before each line, as the journal reads it (sd-daemon(3))."""

    def format(self, record: logging.LogRecord) -> str:
        return f"<{_PRIORITIES.get(record.levelno, 6)}>{super().format(record)}"


def set_up_logging(*, verbose: bool) -> None:
    """Log to standard error; with priorities, where that is the journal."""
    handler = logging.StreamHandler(sys.stderr)
    form = _WithPriority if "JOURNAL_STREAM" in os.environ else logging.Formatter
    handler.setFormatter(form("%(message)s"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])


def tell(**words: str) -> None:
    """Tell systemd (sd_notify(3)); where it is not listening, nobody is told."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    text = "\n".join(f"{name}={value}" for name, value in words.items())
    abstract = address.startswith("@")
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(text.encode(), f"\0{address[1:]}" if abstract else address)


def tell_status(text: str) -> None:
    """Have ``systemctl status`` show what goes on, and log it."""
    line = shown(text)[:_STATUS_LENGTH]
    _log.info("%s", line)
    tell(STATUS=line)


def watchdog_s() -> float | None:
    """Return how often systemd wants to hear of this process, None where it does not.

    ``WATCHDOG_PID`` names whom it watches (sd_watchdog_enabled(3)).
    """
    limit = os.environ.get("WATCHDOG_USEC", "")
    if not limit.isdecimal() or os.environ.get("WATCHDOG_PID") not in {None, str(os.getpid())}:
        return None
    return int(limit) / 1e6 or None


def arrange_waking(host: Host, leave: Leave) -> None:
    """Have the daemon started again for what it leaves, if a timer has to do that.

    Without systemd that is up to whoever started it.
    """
    if leave.wake is not Wake.RETRY or not host.path(_BOOTED).is_dir():
        return
    try:
        # Not to wait for it: the service that the timer starts is this one.
        host.runner.run(["systemctl", "--no-block", "restart", RETRY_TIMER], timeout_s=_TIMEOUT_S)
    except ProgramError as err:
        _log.warning("what is left waits for the next boot: %s", err.message)


class StatusReporter:
    """Passes progress events on to systemd, but those that come too often."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Tell what begins."""
        del of
        if not done:
            tell_status(what)

    def started(self, setting: Setting) -> None:
        """Tell what is being built."""
        tell_status(f"building {setting}")

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """Say nothing: the next one is told when it begins."""

    def skipped(self, skipped: SkippedSetting) -> None:
        """Tell what cannot be built."""
        tell_status(f"{skipped.setting} cannot be built: {skipped.reason}")

    def timed(self, stream: Stream, elapsed_ms: float) -> None:
        """Say nothing: there are many."""

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Tell which image a virtual machine has unpacked."""
        took = f"{sample.unpack_us / 1000:.0f} ms"
        tell_status(f"lab, round {sample.round}: {subject.setting} was unpacked in {took}")

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Tell which virtual machine was lost."""
        tell_status(f"lab, round {lost.round}: {subject.setting} gave no sample: {lost.reason}")

    def built(self, staged: Sequence[StagedImage]) -> None:
        """Tell what was built to be installed."""
        tell_status(f"built {len(staged)} images")
