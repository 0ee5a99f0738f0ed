"""How a running job is watched, and cut short: by a signal, or because the machine needs its power.

A thread beside the jobs answers for them to systemd, and sees when the power goes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING, Self

from initadvisor.core.errors import LOADING_FAILURES
from initadvisor.daemon.changes import image_disk
from initadvisor.daemon.manager import tell, watchdog_s
from initadvisor.host.power import on_battery
from initadvisor.host.signals import is_put_off

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    import pyudev

    from initadvisor.host import Host


_log = logging.getLogger(__name__)

DISTURB = signal.SIGUSR1
"""What a thread sends to its own process to have the running job put off."""


class Terminated(BaseException):
    """The daemon is to end. No ``Exception``: nothing that a job does may take it for a failure."""


class JobPreempted(BaseException):
    """The job is to be put off; the daemon goes on."""


class Interruption:
    """Turns signals into exceptions in the main thread, so that jobs unwind as they do on errors.

    A disturbance counts only where ``may_be_put_off``; elsewhere it is forgotten.
    """

    def __init__(self) -> None:
        self._putting_off = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals as long as the context is."""
        handlers = {
            signal.SIGTERM: self._terminate,
            signal.SIGINT: self._terminate,
            DISTURB: self._disturb,
        }
        with contextlib.ExitStack() as restored:
            for signum, handler in handlers.items():
                restored.callback(signal.signal, signum, signal.signal(signum, handler))
            yield

    @contextlib.contextmanager
    def may_be_put_off(self) -> Iterator[None]:
        """Let a disturbance put off what the block does (``JobPreempted``)."""
        self._putting_off = True
        try:
            yield
        finally:
            self._putting_off = False

    def _terminate(self, signum: int, frame: FrameType | None) -> None:
        if is_put_off(signum, frame):
            return
        # Once is enough: a second one would cut short what cleans up after the first.
        for again in (signal.SIGTERM, signal.SIGINT, DISTURB):
            signal.signal(again, signal.SIG_IGN)
        raise Terminated

    def _disturb(self, signum: int, frame: FrameType | None) -> None:
        if self._putting_off and not is_put_off(signum, frame):
            self._putting_off = False
            raise JobPreempted


def preempt() -> None:
    """Have the running job put off; to be called from any thread."""
    os.kill(os.getpid(), DISTURB)


_SUBSYSTEMS = ("power_supply", "block")


class WatchdogThread:
    """Pings systemd's watchdog as long as a job is within its time, and listens to the kernel.

    A job that needs power is put off when the machine begins to run on its battery, and when the
    image is found on another disk: what was measured until then is not worth going on with.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._until = float("inf")
        self._needs_power = False
        self._disk: str | None = None
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._attend, name="attendant", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._stopped)
        self._thread.join()
        os.close(self._stop)

    @contextlib.contextmanager
    def watching(self, *, limit_s: float, needs_power: bool) -> Iterator[None]:
        """Attend to a job: after ``limit_s`` systemd hears nothing more, and ends the daemon."""
        self._disk = image_disk(self._host) if needs_power else None
        self._until, self._needs_power = time.monotonic() + limit_s, needs_power
        try:
            yield
        finally:
            self._until, self._needs_power = float("inf"), False

    def _attend(self) -> None:
        interval_s = watchdog_s()
        every_ms = None if interval_s is None else interval_s * 1000 / 3
        poller = select.poll()
        poller.register(self._stop, select.POLLHUP)
        monitor = _monitor()
        if monitor is not None:
            poller.register(monitor.fileno(), select.POLLIN)
        while True:
            events = dict(poller.poll(every_ms))
            if self._stop in events:
                return
            if events and monitor is not None:
                self._heard(monitor)
            if interval_s is not None and time.monotonic() < self._until:
                tell(WATCHDOG="1")

    def _heard(self, monitor: pyudev.Monitor) -> None:
        while (device := monitor.poll(timeout=0)) is not None:
            if not self._needs_power:
                continue
            if device.subsystem == "power_supply" and on_battery(self._host):
                _log.info("the machine runs on its battery now")
                preempt()
            elif device.subsystem == "block" and image_disk(self._host) != self._disk:
                _log.info("the image is on another disk now")
                preempt()


def _monitor() -> pyudev.Monitor | None:
    """Return what listens to the kernel; where it cannot, conditions are looked at between jobs."""
    try:
        import pyudev

        # What the kernel itself says comes through a sandbox's network namespace, too.
        monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        for subsystem in _SUBSYSTEMS:
            monitor.filter_by(subsystem)
        monitor.start()
    except LOADING_FAILURES as err:
        _log.info("not told of power and disks: %s", err)
        return None
    return monitor
