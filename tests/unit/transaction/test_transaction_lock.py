"""Two runs never interleave: the second one, a process of its own, waits and then refuses."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.transaction.transactions import transactions
from tests.faults.machine import NEW, OLD, Machine
from tests.faults.runs import Run, perform
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOLD = """
import sys
from pathlib import Path
from initadvisor.host import Host
from initadvisor.transaction.transactions import transactions
with transactions(Host(root=Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""
_APPLY = """
import sys
from pathlib import Path
from initadvisor.host import lock
from tests.faults.machine import Machine
from tests.faults.runs import Run, perform
nap = lock.time.sleep


def say_so(seconds):
    print("it waits", flush=True)
    nap(seconds)


lock.time.sleep = say_so
print("begun", flush=True)
perform(Machine(root=Path(sys.argv[1]), esp=False).host, Run.APPLY)
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine; processes that are started have its state directory, too."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    made = Machine(root=tmp_path, esp=False)
    made.install()
    return made


@contextlib.contextmanager
def other_run(machine: Machine, program: str) -> Iterator[subprocess.Popen[str]]:
    """Start another process, which has said its first word."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(machine.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


def test_a_run_that_waits_in_vain_says_for_whom_and_changes_nothing(machine: Machine) -> None:
    with other_run(machine, _HOLD) as holder:
        words = f"process {holder.pid} holds .*/state/locks/transactions"
        with (
            pytest.raises(InitadvisorError, match=words) as raised,
            transactions(machine.host, wait_s=0.2),
        ):
            pass
    assert raised.value.hint == "wait for it to end"
    assert {path: machine.host.path(path).read_bytes() for path in OLD} == OLD


def test_a_run_waits_for_one_that_ends(machine: Machine) -> None:
    with contextlib.ExitStack() as first:
        first.enter_context(transactions(machine.host))
        with other_run(machine, _APPLY) as waiting:
            assert waiting.stdout
            assert waiting.stdout.readline() == "it waits\n"
            assert waiting.poll() is None
            assert {path: machine.host.path(path).read_bytes() for path in OLD} == OLD
            first.close()
            assert waiting.wait(timeout=HANGS_S) == 0
    assert {path: machine.host.path(path).read_bytes() for path in NEW} == NEW


def test_a_run_that_was_killed_keeps_nobody_waiting(machine: Machine) -> None:
    with other_run(machine, _HOLD) as holder:
        holder.kill()
        holder.wait()
        perform(machine.host, Run.APPLY)
    assert {path: machine.host.path(path).read_bytes() for path in NEW} == NEW
