"""A whole run of the daemon: jobs, conditions, failures, and how it ends."""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.daemon import loop, watchdog
from initadvisor.daemon.loop import Daemon
from initadvisor.daemon.notes import Job, Note, NoteReason, Task
from initadvisor.daemon.planning import MOST_WAITING_S, Needs, Wake
from initadvisor.daemon.queue import Queue
from initadvisor.daemon.watchdog import preempt
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ADDED = Note(reason=NoteReason.KERNEL_ADDED, release="6.1.0")
ALL = ["settle", "build@6.1.0", "lab@6.1.0", "advance", "advise"]


@dataclass(slots=True)
class Machine:
    """A machine, its queue, and a worker that notes what it did; ``on`` is what a job does.

    ``lacking`` has what is lacking at each look, the last one for good.
    """

    host: Host
    runner: FakeRunner
    did: list[str] = field(default_factory=list)
    on: dict[str, Callable[[], object]] = field(default_factory=dict)
    lacking: list[Needs] = field(default_factory=lambda: [Needs.NOTHING])
    slept: list[float] = field(default_factory=list)
    at_sleep: Callable[[], object] = lambda: None

    def do(self, job: Job) -> tuple[Job, ...]:
        """Note it."""
        self.did.append(str(job))
        following = self.on.get(str(job), tuple)()
        return following if isinstance(following, tuple) else ()

    def look(self, _host: Host, needs: Needs) -> Needs:
        """Return what is lacking now."""
        return needs & (self.lacking.pop(0) if len(self.lacking) > 1 else self.lacking[0])

    def sleep(self, seconds: float) -> None:
        """Note it."""
        self.slept.append(seconds)
        self.at_sleep()

    @property
    def daemon(self) -> Daemon:
        """A run."""
        return Daemon(host=self.host, work=self.do, look=self.look, sleep=self.sleep)

    @property
    def queue(self) -> Queue:
        """The queue."""
        return Queue(self.host)

    def note(self, note: Note) -> None:
        """Note something as a hook does."""
        directory = self.host.state_dir() / "queue"
        directory.mkdir(exist_ok=True, parents=True)
        (directory / str(note)).touch()

    def left(self) -> set[str]:
        """Return the jobs that are still to be done."""
        return {str(job) for job in self.queue.jobs()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine run by systemd, which tells nobody that it booted."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(watchdog, "_monitor", lambda: None)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    runner = FakeRunner(programs=["systemctl"])
    runner.answer("systemctl --no-block restart initadvisord-retry.timer")
    return Machine(host=Host(root=tmp_path, runner=runner), runner=runner)


def failing(error: Exception) -> Callable[[], None]:
    """Return what fails."""

    def fail() -> None:
        raise error

    return fail


def test_what_was_noted_is_worked_off_and_it_ends(machine: Machine) -> None:
    machine.note(ADDED)
    leave = machine.daemon.run()
    assert machine.did == ALL
    assert machine.left() == set()
    assert leave is not None
    assert leave.wake is Wake.NEVER
    assert machine.runner.calls == []


def test_nothing_noted_is_nothing_done(machine: Machine) -> None:
    machine.daemon.run()
    assert machine.did == []
    assert machine.slept == []


def test_what_follows_is_done_in_the_same_run(machine: Machine) -> None:
    machine.note(ADDED)
    machine.on["advise"] = lambda: (Job(task=Task.APPLY),)
    machine.daemon.run()
    assert machine.did == [*ALL, "apply"]


def test_what_is_noted_meanwhile_is_done_again(machine: Machine) -> None:
    """Also what was done already, and what is being done: it may be about a newer image."""
    machine.note(ADDED)
    machine.on["build@6.1.0"] = lambda: machine.note(ADDED) if len(machine.did) == 2 else None
    machine.daemon.run()
    assert machine.did == ["settle", "build@6.1.0", "settle", *ALL[1:]]


def test_on_battery_it_leaves_at_once_and_needs_no_timer(machine: Machine) -> None:
    machine.note(ADDED)
    machine.lacking = [Needs.POWER]
    leave = machine.daemon.run()
    assert leave is not None
    assert leave.wake is Wake.POWER
    assert machine.did == ["settle"]
    assert machine.slept == []
    assert machine.left() == set(ALL[1:])
    assert machine.runner.calls == []
    assert (machine.host.state_dir() / "tasks").is_dir(), "udev's rule goes by it"
    assert not any((machine.host.state_dir() / "queue").iterdir()), "systemd's path goes by it"


def test_it_waits_for_a_package_manager(machine: Machine) -> None:
    machine.note(ADDED)
    machine.lacking = [Needs.MANAGERS] * 3 + [Needs.NOTHING]
    machine.daemon.run()
    assert machine.slept == [5.0] * 3
    assert machine.did == ALL


def test_it_tells_once_what_it_waits_for(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    machine.note(ADDED)
    machine.lacking = [Needs.MANAGERS] * 3 + [Needs.PROCESSORS] * 2 + [Needs.NOTHING]
    machine.daemon.run()
    waits = [message for message in caplog.messages if message.startswith("waits")]
    assert waits == ["waits: a package manager is at work", "waits: the processors are busy"]


@pytest.mark.parametrize("need", [Needs.MANAGERS, Needs.PROCESSORS])
def test_it_waits_a_while_and_then_has_a_timer_start_it(machine: Machine, need: Needs) -> None:
    machine.note(ADDED)
    machine.lacking = [need]
    leave = machine.daemon.run()
    assert leave is not None
    assert leave.wake is Wake.RETRY
    assert MOST_WAITING_S <= sum(machine.slept) < MOST_WAITING_S + 60
    assert machine.runner.argvs == [
        ("systemctl", "--no-block", "restart", "initadvisord-retry.timer")
    ]


def test_what_is_done_meanwhile_begins_the_wait_anew(machine: Machine) -> None:
    """One that waits for idle processors does not give up because it was busy itself."""
    machine.note(ADDED)
    machine.lacking = [Needs.PROCESSORS]
    notes = [Note(reason=NoteReason.KERNEL_REMOVED)]
    machine.at_sleep = lambda: machine.note(notes.pop()) if len(machine.slept) == 20 else None
    machine.daemon.run()
    assert sum(machine.slept) == 20 * 60 + MOST_WAITING_S


def test_a_failure_is_tried_again_by_a_later_run_and_given_up_in_the_end(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.note(ADDED)
    machine.on["build@6.1.0"] = failing(InitadvisorError("no room", hint="make some"))
    for _ in range(2):
        leave = machine.daemon.run()
        assert leave is not None
        assert leave.wake is Wake.RETRY
        assert machine.left() == {"build@6.1.0"}
    leave = machine.daemon.run()
    assert leave is not None
    assert leave.wake is Wake.NEVER
    assert machine.left() == set()
    assert machine.did == [*ALL, "build@6.1.0", "build@6.1.0"]
    levels = [r.levelno for r in caplog.records if "no room (make some)" in r.getMessage()]
    assert levels == [logging.WARNING, logging.WARNING, logging.ERROR]


@pytest.mark.parametrize("error", [UnsafeError("in a container")])
def test_a_refusal_is_final(machine: Machine, error: InitadvisorError) -> None:
    machine.note(ADDED)
    machine.on["settle"] = failing(error)
    machine.daemon.run()
    assert machine.did == ALL
    assert machine.left() == set()


def test_an_error_of_the_system_is_a_failure(machine: Machine) -> None:
    machine.note(ADDED)
    machine.on["build@6.1.0"] = failing(OSError(28, "No space left on device", "/var"))
    machine.daemon.run()
    assert machine.left() == {"build@6.1.0"}


def test_what_takes_the_daemon_with_it_is_given_up(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.note(ADDED)
    machine.on["build@6.1.0"] = failing(ZeroDivisionError())
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            machine.daemon.run()
    machine.daemon.run()
    assert machine.did.count("build@6.1.0") == 3
    assert machine.did[-3:] == ALL[2:]
    assert "given up" in caplog.text


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_loses_nothing(machine: Machine, signum: signal.Signals) -> None:
    machine.note(ADDED)
    machine.on["lab@6.1.0"] = lambda: os.kill(os.getpid(), signum)
    assert machine.daemon.run() is None
    assert machine.left() == {"lab@6.1.0", "advance", "advise"}
    machine.on.clear()
    machine.daemon.run()
    assert machine.did == [*ALL[:3], *ALL[2:]]


def test_told_to_end_while_it_waits_it_ends(machine: Machine) -> None:
    machine.note(ADDED)
    machine.lacking = [Needs.MANAGERS]
    machine.at_sleep = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert machine.daemon.run() is None
    assert machine.left() == set(ALL)


def test_told_to_end_while_it_says_that_it_ends_it_ends(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends the signal then ends it by that; nothing in it may take it for an error."""
    handlers = []

    def told(**words: str) -> None:
        if "STOPPING" in words:
            handlers.append(signal.getsignal(signal.SIGTERM))

    monkeypatch.setattr(loop, "tell", told)
    before = signal.getsignal(signal.SIGTERM)
    machine.daemon.run()
    assert handlers == [before]


def test_signals_are_as_before_afterwards(machine: Machine) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    machine.note(ADDED)
    machine.on["settle"] = lambda: os.kill(os.getpid(), signal.SIGTERM)
    machine.daemon.run()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_job_is_put_off_when_the_power_goes(machine: Machine) -> None:
    machine.note(ADDED)

    def unplugged() -> None:
        machine.lacking = [Needs.POWER]
        preempt()

    machine.on["build@6.1.0"] = unplugged
    leave = machine.daemon.run()
    assert leave is not None
    assert leave.wake is Wake.POWER
    assert machine.left() == set(ALL[1:])
    machine.on.clear()
    machine.lacking = [Needs.NOTHING]
    with machine.queue.attempt(Job(task=Task.BUILD, release="6.1.0")) as attempt:
        assert attempt == 1, "being put off was counted as a failure"


def test_what_needs_no_power_is_not_put_off(machine: Machine) -> None:
    machine.note(ADDED)
    machine.on["settle"] = preempt
    machine.daemon.run()
    assert machine.did == ALL


def test_a_timer_that_cannot_be_started_is_told(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.runner.answer("systemctl", returncode=1)
    machine.note(ADDED)
    machine.lacking = [Needs.MANAGERS]
    machine.daemon.run()
    assert "waits for the next boot" in caplog.text


def test_a_queue_that_cannot_be_used_is_an_error(machine: Machine) -> None:
    machine.note(ADDED)
    (machine.host.state_dir() / "tasks").touch()
    with pytest.raises(InitadvisorError):
        machine.daemon.run()
