"""The daemon's loop: takes notes in, looks whether the machine is idle, does jobs, and ends."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.daemon.changes import notice
from initadvisor.daemon.manager import arrange_waking, tell, tell_status
from initadvisor.daemon.planning import TERMS, Do, Leave, Needs, Wait, decide, needed
from initadvisor.daemon.queue import Queue
from initadvisor.daemon.watchdog import Interruption, JobPreempted, Terminated, WatchdogThread
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.host.power import on_battery

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.daemon.notes import Job
    from initadvisor.host import Host


_log = logging.getLogger(__name__)

_MOST_ATTEMPTS = 3


def lacking(host: Host, needs: Needs) -> Needs:
    """Return what of ``needs`` does not hold; only that is looked at, the cheapest first.

    Where a machine does not tell what it runs on, it is no laptop.
    """
    found = Needs.NOTHING
    if Needs.POWER in needs and on_battery(host):
        found |= Needs.POWER
    if Needs.MANAGERS in needs and busy_package_managers(host):
        found |= Needs.MANAGERS
    # Looking at processors takes time; whatever needs them idle needs the others, too.
    if Needs.PROCESSORS in needs and not found and _busy():
        found |= Needs.PROCESSORS
    return found


@dataclass(slots=True, kw_only=True)
class Daemon:
    """One run of the daemon. ``look`` tells what is lacking; ``sleep`` waits some seconds.

    ``work`` does a job, and returns what is to be done because of it. It raises
    ``InitadvisorError`` where it fails; all it does may be cut short at any moment by any other
    exception, and done again.
    """

    host: Host
    work: Callable[[Job], tuple[Job, ...]]
    look: Callable[[Host, Needs], Needs] = lacking
    sleep: Callable[[float], None] = time.sleep
    interruption: Interruption = field(default_factory=Interruption)
    _failed: set[Job] = field(default_factory=set)
    _waited_s: float = 0.0
    _waits_for: str = ""

    def run(self) -> Leave | None:
        """Work until nothing is left or nothing can be done, and arrange to be woken for the rest.

        Returns why it ended, None where it was told to (SIGTERM): then nothing is lost, and what is
        left waits for the next start. Raises ``InitadvisorError`` where the queue cannot be used.
        """
        try:
            with self.interruption.listening(), WatchdogThread(self.host) as watchdog:
                tell(READY="1")
                leave = self._work_off(Queue(self.host), watchdog)
                arrange_waking(self.host, leave)
        except Terminated:
            tell_status("was told to end; what is left waits for the next start")
            return None
        finally:
            tell(STOPPING="1")
        tell_status(leave.why)
        return leave

    def _work_off(self, queue: Queue, watchdog: WatchdogThread) -> Leave:
        while True:
            notes = queue.take_in()
            if not self._waited_s:  # to look for images every few seconds is not worth it
                notes += notice(self.host, queue)
            for note in notes:
                _log.info("noted: %s", note)
                self._failed.clear()  # something has changed, so that it may work now
            jobs = [job for job in queue.jobs() if job not in self._failed]
            missing = self.look(self.host, needed(jobs))
            match decide(jobs, missing, failed=len(self._failed), waited_s=self._waited_s):
                case Do(job=job):
                    self._waited_s, self._waits_for = 0.0, ""
                    self._do(queue, watchdog, job)
                case Wait(seconds=seconds, why=why):
                    if why != self._waits_for:  # not a line in the journal every few seconds
                        tell_status(f"waits: {why}")
                    self._waits_for = why
                    self.sleep(seconds)
                    self._waited_s += seconds
                case Leave() as leave:
                    return leave

    def _do(self, queue: Queue, watchdog: WatchdogThread, job: Job) -> None:
        terms = TERMS[job.task]
        needs_power = Needs.POWER in terms.needs
        tell_status(f"{job.task}: begins" + (f", Linux {job.release}" if job.release else ""))
        try:
            with (
                watchdog.watching(limit_s=terms.limit_s, needs_power=needs_power),
                queue.attempt(job) as attempt,
                self.interruption.may_be_put_off() if needs_power else contextlib.nullcontext(),
            ):
                self._attempt(queue, job, attempt)
        except JobPreempted:
            tell_status(f"{job}: put off")

    def _attempt(self, queue: Queue, job: Job, attempt: int) -> None:
        if attempt > _MOST_ATTEMPTS:  # it has never come back, be it with an error
            _log.error("%s is given up: it ended the daemon %d times", job, _MOST_ATTEMPTS)
            queue.done(job)
            return
        try:
            following = self._done(job)
        except InitadvisorError as err:
            # To try again would end the same; but a configuration may be mended meanwhile.
            final = isinstance(err, UnsafeError | NeedsRootError)
            if final or attempt >= _MOST_ATTEMPTS:
                _log.error("%s failed: %s", job, err.with_hint)
                queue.done(job)
            else:
                _log.warning("%s failed, and is tried again later: %s", job, err.with_hint)
                self._failed.add(job)
            return
        queue.put(*following)
        queue.done(job)

    def _done(self, job: Job) -> tuple[Job, ...]:
        try:
            return self.work(job)
        except OSError as err:  # whatever no layer below had a better word for
            where = f" {err.filename}" if err.filename else ""
            msg = f"cannot use{where}: {err.strerror or err}"
            raise InitadvisorError(msg) from err


_LOOK_S = 2.0
_BUSY_PERCENT = 50.0
"""Of all processors together. Work here is idle anyway and yields to everything; but a machine that
is being used is not to be made hot, and times taken on it are worth less."""


def _busy() -> bool:
    import psutil

    return float(psutil.cpu_percent(interval=_LOOK_S)) > _BUSY_PERCENT
