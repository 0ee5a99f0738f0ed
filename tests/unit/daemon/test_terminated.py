"""A real process that is told to end, or killed, at many moments: every job is done in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]

DAEMON = """
import sys, time
from pathlib import Path
from initadvisor.daemon import attendant
from initadvisor.daemon.loop import Daemon
from initadvisor.host import Host
from initadvisor.model.daemon import Needs
from initadvisor.model.queue import Job, Task

attendant._monitor = lambda: None
done = Path(sys.argv[1])


class Worker:
    def do(self, job):
        work = done / f".{job}"
        try:
            with work.open("w") as file:
                for _ in range(10):
                    file.write(".")
                    time.sleep(0.003)
            work.rename(done / str(job))
        finally:
            work.unlink(missing_ok=True)
        return (Job(task=Task.APPLY),) if job.task is Task.ADVISE else ()


look = lambda host, needs: Needs.NOTHING
print("runs", flush=True)
Daemon(host=Host(root=Path(sys.argv[2])), worker=Worker(), look=look).run()
"""
JOBS = {"settle", "build@6.1.0", "lab@6.1.0", "advance", "advise", "apply"}
MOMENTS = 12


def start(work: Path) -> subprocess.Popen[bytes]:
    """Start the daemon on a machine of its own, and return it when it begins."""
    for name in ("done", "root"):
        (work / name).mkdir(exist_ok=True)
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(work / "done"), str(work / "root")],
        cwd=REPOSITORY,
        env={**os.environ, "STATE_DIRECTORY": str(work / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert daemon.stdout
    assert daemon.stdout.readline() == b"runs\n"
    return daemon


def ended(daemon: subprocess.Popen[bytes]) -> int:
    """Wait for its end and return the status."""
    _, said = daemon.communicate(timeout=60)
    assert b"Traceback" not in said, said.decode()
    return daemon.returncode


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_whenever_it_ends_every_job_is_done_in_the_end(
    tmp_path: Path, signum: signal.Signals
) -> None:
    queue = tmp_path / "state/queue"
    queue.mkdir(parents=True)
    (queue / "kernel-added@6.1.0").touch()
    statuses = []
    for moment in range(MOMENTS):
        daemon = start(tmp_path)
        time.sleep(moment * 0.02)
        daemon.send_signal(signum)
        statuses.append(ended(daemon))
        waiting = {path.name for path in (tmp_path / "state").glob("tasks/*")}
        finished = {path.name for path in (tmp_path / "done").iterdir() if path.name in JOBS}
        noted = any(queue.iterdir())
        assert noted or JOBS - {"apply"} <= waiting | finished, "a job is lost"
        if signum is signal.SIGTERM:
            left = [path for path in (tmp_path / "done").iterdir() if path.name[0] == "."]
            assert left == [], "it did not clear up"
    allowed = {0, -signum} if signum is signal.SIGKILL else {0, -signal.SIGTERM}
    assert set(statuses) <= allowed
    assert ended(start(tmp_path)) == 0
    assert {path.name for path in (tmp_path / "done").iterdir()} >= JOBS
    assert not (tmp_path / "state/tasks").exists()
