"""Work is spread over processes that end with the one that asked for it, and take nothing along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from initadvisor.model.errors import InitadvisorError
from initadvisor.workflow.processes import spread
from tests.fixtures.waiting import HANGS_S, wait_until

INTERRUPTED = """
import sys, time
from initadvisor.workflow.processes import spread

if __name__ == "__main__":
    try:
        for done in spread(time.sleep, [0.0, 3600.0, 3600.0], processes=2):
            print("started", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
"""


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def refuse(number: int) -> int:
    msg = f"{number} is refused"
    raise ValueError(msg)


def threads(_: int) -> str | None:
    return os.environ.get("OPENBLAS_NUM_THREADS")


def end(number: int) -> None:
    os.kill(os.getpid(), number)


def test_every_job_is_done_once_and_elsewhere() -> None:
    found = list(spread(square, range(20), processes=2))
    assert sorted(squared for squared, _ in found) == [number**2 for number in range(20)]
    workers = {process for _, process in found}
    assert os.getpid() not in workers
    assert 1 <= len(workers) <= 2
    for process in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_nothing_to_do_is_nothing_done() -> None:
    assert list(spread(square, [], processes=4)) == []


def test_what_a_job_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="3 is refused"):
        list(spread(refuse, [3], processes=1))


def test_each_process_computes_with_one_thread() -> None:
    assert list(spread(threads, [1], processes=1)) == ["1"]


def test_a_killed_process_is_an_error_with_advice() -> None:
    with pytest.raises(InitadvisorError, match="was killed") as caught:
        list(spread(end, [signal.SIGKILL], processes=1))
    assert caught.value.hint


def test_an_interrupt_ends_all_at_once_without_a_word() -> None:
    """What a terminal does: it sends the signal to the whole group."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=HANGS_S)
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)
    assert group_is_gone(process.pid)


def test_processes_do_not_outlive_one_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
    assert group_is_gone(process.pid)


def group_is_gone(group: int) -> bool:
    """Wait until no process of a group runs."""
    if wait_until(lambda: not any(runs_in(each, group) for each in Path("/proc").glob("[0-9]*"))):
        return True
    os.killpg(group, signal.SIGKILL)
    return False


def runs_in(process: Path, group: int) -> bool:
    """Tell whether a process is of a group, and not one that only waits for someone to look."""
    try:
        state, _, own, *_ = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False  # it just ended
    return int(own) == group and state != "Z"
