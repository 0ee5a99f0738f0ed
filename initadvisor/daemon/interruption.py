"""How a running job is cut short: by a signal, or because the machine needs its power."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        before = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    @contextlib.contextmanager
    def may_be_put_off(self) -> Iterator[None]:
        """Let a disturbance put off what the block does (``JobPreempted``)."""
        self._putting_off = True
        try:
            yield
        finally:
            self._putting_off = False

    def _terminate(self, signum: int, frame: object) -> NoReturn:
        del signum, frame
        # Once is enough: a second one would cut short what cleans up after the first.
        for again in (signal.SIGTERM, signal.SIGINT, DISTURB):
            signal.signal(again, signal.SIG_IGN)
        raise Terminated

    def _disturb(self, signum: int, frame: object) -> None:
        del signum, frame
        if self._putting_off:
            self._putting_off = False
            raise JobPreempted


def preempt() -> None:
    """Have the running job put off; to be called from any thread."""
    os.kill(os.getpid(), DISTURB)
