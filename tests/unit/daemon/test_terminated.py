"""A real process that is told to end, or killed, at many moments: every job is done in the end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[3]

DAEMONS = """
import os, sys
from pathlib import Path
from initadvisor.daemon import watchdog as attendant
from initadvisor.daemon.loop import Daemon
from initadvisor.host import Host
from initadvisor.daemon.planning import Needs
from initadvisor.daemon.notes import Job, Task

attendant._monitor = lambda: None


class Worker:
    def do(self, job):
        work = done / f".{job}"
        try:
            with work.open("w") as file:
                for _ in range(10):
                    file.write(".")
            work.rename(done / str(job))
        finally:
            work.unlink(missing_ok=True)
        return (Job(task=Task.APPLY),) if job.task is Task.ADVISE else ()


def send_to_myself_at_call(moment, signum):
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"
        if calls == moment and event == "call":
            os.kill(os.getpid(), signum)

    sys.setprofile(count)
    return lambda: calls


look = lambda host, needs: Needs.NOTHING
for line in sys.stdin:
    directory, moment, signum = line.rsplit(maxsplit=2)
    if not (pid := os.fork()):
        done = Path(directory, "done")
        os.environ["STATE_DIRECTORY"] = f"{directory}/state"
        calls = send_to_myself_at_call(int(moment), int(signum))
        Daemon(host=Host(root=Path(directory, "root")), work=Worker().do, look=look).run()
        sys.setprofile(None)
        Path(directory, "calls").write_text(str(calls()))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Starts a daemon a line: its directory, and the call of a function at which a signal comes."""

JOBS = {"settle", "build@6.1.0", "lab@6.1.0", "advance", "advise", "apply"}
MOMENTS = 24
NEVER = 0


class Daemons:
    """Starts daemons on machines of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, work: Path, moment: int, signum: int = signal.SIGTERM) -> int:
        """Run one to its end, and return its status."""
        assert self._process.stdin
        assert self._process.stdout
        print(work, moment, int(signum), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    """What starts daemons; none of them may have an error that nobody foresaw."""
    said = tmp_path / "said"
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", DAEMONS],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        yield Daemons(process)
    assert "Traceback" not in said.read_text()


def machine(work: Path) -> Path:
    """Make a machine with a new kernel."""
    for name in ("done", "root", "state/queue"):
        (work / name).mkdir(parents=True)
    (work / "state/queue/kernel-added@6.1.0").touch()
    return work


@pytest.mark.exhaustive
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_whenever_it_ends_every_job_is_done_in_the_end(
    tmp_path: Path, daemons: Daemons, signum: signal.Signals
) -> None:
    assert daemons.run(machine(tmp_path / "whole"), NEVER) == 0
    calls = int((tmp_path / "whole/calls").read_text())
    statuses = []
    for number in range(MOMENTS):
        moment = 1 + calls * number // MOMENTS
        work = machine(tmp_path / str(moment))
        statuses.append(daemons.run(work, moment, signum))
        waiting = {path.name for path in (work / "state").glob("tasks/*")}
        finished = {path.name for path in (work / "done").iterdir() if path.name in JOBS}
        noted = any((work / "state/queue").iterdir())
        assert noted or JOBS - {"apply"} <= waiting | finished, f"a job is lost at call {moment}"
        if signum is signal.SIGTERM:
            left = [path for path in (work / "done").iterdir() if path.name[0] == "."]
            assert left == [], f"it did not clear up at call {moment}"
        assert daemons.run(work, NEVER) == 0
        assert {path.name for path in (work / "done").iterdir()} >= JOBS
        assert not (work / "state/tasks").exists()
    allowed = {-signum} if signum is signal.SIGKILL else {0, -signal.SIGTERM}
    assert set(statuses) <= allowed


@pytest.mark.exhaustive
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_ended_again_and_again_it_gets_on(
    tmp_path: Path, daemons: Daemons, signum: signal.Signals
) -> None:
    work = machine(tmp_path / "machine")
    assert daemons.run(machine(tmp_path / "whole"), NEVER) == 0
    calls = int((tmp_path / "whole/calls").read_text())
    for number in range(MOMENTS):
        daemons.run(work, 1 + calls * number // MOMENTS, signum)
    assert daemons.run(work, NEVER) == 0
    assert {path.name for path in (work / "done").iterdir()} >= JOBS
