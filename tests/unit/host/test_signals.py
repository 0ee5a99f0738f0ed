"""Exceptions that signals' handlers raise, wherever the program is."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from initadvisor.cli import enable
from initadvisor.daemon.watchdog import Interruption, JobPreempted, Terminated
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


class _Interrupted:
    """A signal comes while it is destroyed."""

    def __init__(self, signum: signal.Signals) -> None:
        self._signum = signum

    def __del__(self) -> None:
        signal.raise_signal(self._signum)


@contextlib.contextmanager
def _putting_off() -> Iterator[None]:
    interruption = Interruption()
    with interruption.listening(), interruption.may_be_put_off():
        yield


@pytest.mark.parametrize(
    ("signum", "handling", "raised"),
    [
        (signal.SIGALRM, lambda: enable._limited(3600), enable._OutOfTimeError),
        (signal.SIGTERM, lambda: Interruption().listening(), Terminated),
        (signal.SIGUSR1, _putting_off, JobPreempted),
    ],
)
def test_what_comes_inside_a_destructor_is_raised_behind_it(
    signum: signal.Signals,
    handling: Callable[[], AbstractContextManager[None]],
    raised: type[BaseException],
) -> None:
    """Or pytest tells of an exception that was lost."""
    with pytest.raises(raised), handling():
        _destroy(signum)


def _destroy(signum: signal.Signals) -> None:
    interrupted = _Interrupted(signum)
    del interrupted
    threading.Event().wait(HANGS_S)
