"""Goes through the points of a run at which something can go wrong, and collects what is bad."""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from tests.faults.calls import ERRORS, WRITING, Calls, Fault, KilledError, Moment
from tests.faults.runs import (
    Run,
    calls_about,
    perform,
    prepare,
    start_again,
    wrong_after_recovery,
    wrong_now,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.faults.machine import Machine

    _Way = Callable[[Machine, Run, Calls], None]

KILLED = (Fault(), Fault(moment=Moment.HALF))
"""That after a call nothing comes is the same as that the next call is never made."""

FAILED = tuple(Fault(error=error) for error in ERRORS)
FAILED_LATE = (
    Fault(error=errno.ENOSPC, moment=Moment.HALF),
    Fault(error=errno.EIO, moment=Moment.AFTER),
)
FAILED_FOR_GOOD = (
    Fault(error=errno.EIO, lasting=True),
    Fault(error=errno.EROFS, lasting=True),
)
FAULTS = (*KILLED, *FAILED, *FAILED_LATE, *FAILED_FOR_GOOD)


@dataclass(frozen=True, slots=True)
class Tried:
    """How many points were tried, by the name of the call, and what was bad at which of them."""

    points: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    def add(self, other: Tried) -> None:
        """Add what was tried elsewhere."""
        self.points.update(other.points)
        self.bad.extend(other.bad)

    def add_check(self, name: str, wrong: str) -> None:
        """Add something else that was looked at; ``wrong`` is empty where all was right."""
        self.points[name] += 1
        if wrong:
            self.bad.append(f"{name}: {wrong}")


def calls_of(machine: Machine, run: Run) -> Sequence[str]:
    """Return the calls that the run makes when nothing goes wrong, from where it begins."""
    start_again(machine, run)
    calls = calls_about(machine)
    with calls.installed():
        perform(machine.host, run)
    wrong = wrong_now(machine) or wrong_after_recovery(machine, run)
    assert not wrong, wrong
    return calls.calls


def try_each(
    machine: Machine, run: Run, faults: Sequence[Fault], chooser: random.Random, share: float = 1
) -> Tried:
    """Have a fault at each call, and look at what is there; of the calls, take a ``share``.

    Of several ``faults``, each call has all that can happen to it. Raises what is no error of the
    program's own.
    """
    prepare(machine, run)
    return _try_all(machine, run, [(_failed, faults)], lambda: chooser.random() < share)


def try_share(machine: Machine, run: Run, chooser: random.Random, share: float) -> Tried:
    """Have a share of all faults, and as large a share of all kills by a real SIGKILL."""
    prepare(machine, run)
    ways = [(_failed, FAULTS), (_killed_child, KILLED)]
    return _try_all(machine, run, ways, lambda: chooser.random() < share)


def try_one_of(
    machine: Machine, run: Run, faults: Sequence[Fault], chooser: random.Random
) -> Tried:
    """Have one of the faults at each call, chosen for each of those that can happen to it."""
    prepare(machine, run)
    tried = Tried()
    for at, name in enumerate(calls_of(machine, run)):
        possible = [fault for fault in faults if _can_happen(fault, name)]
        _try(machine, run, at, name, chooser.choice(possible), _failed, tried)
    return tried


def kill_really(machine: Machine, run: Run, chooser: random.Random, share: float) -> Tried:
    """Have a child process killed by SIGKILL before calls, or in the middle of writing."""
    prepare(machine, run)
    return _try_all(machine, run, [(_killed_child, KILLED)], lambda: chooser.random() < share)


def _try_all(
    machine: Machine,
    run: Run,
    ways: Sequence[tuple[_Way, Sequence[Fault]]],
    is_taken: Callable[[], bool],
) -> Tried:
    tried = Tried()
    for at, name in enumerate(calls_of(machine, run)):
        for do, faults in ways:
            for fault in faults:
                if _can_happen(fault, name) and is_taken():
                    _try(machine, run, at, name, fault, do, tried)
    return tried


def _can_happen(fault: Fault, name: str) -> bool:
    match fault.moment:
        case Moment.BEFORE:
            return True
        case Moment.HALF:
            return name in {"write", "sendfile"}
        case Moment.AFTER:
            return name in WRITING


def _try(
    machine: Machine,
    run: Run,
    at: int,
    name: str,
    fault: Fault,
    do: _Way,
    tried: Tried,
) -> None:
    start_again(machine, run)
    do(machine, run, calls_about(machine, at=at, fault=fault))
    tried.points[name] += 1
    if wrong := wrong_now(machine) or wrong_after_recovery(machine, run):
        tried.bad.append(f"{run}, call {at} ({name}), {fault}: {wrong}")


def _failed(machine: Machine, run: Run, calls: Calls) -> None:
    try:
        with calls.installed():
            perform(machine.host, run)
    except KilledError:
        assert calls.fault.error is None
    except InitadvisorError:
        assert calls.fault.error is not None
    assert calls.killed is (calls.fault.error is None)


def _killed_child(machine: Machine, run: Run, calls: Calls) -> None:
    calls.die = lambda: os.kill(os.getpid(), signal.SIGKILL)
    child = os.fork()
    if child == 0:
        try:
            with calls.installed():
                perform(machine.host, run)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
