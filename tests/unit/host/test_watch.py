"""A program is listened to until it has said what is waited for, and then ended with its kin."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import ProgramError
from initadvisor.host import process
from initadvisor.host.process import Ending
from initadvisor.host.run import SystemRunner
from tests.fixtures.waiting import HANGS_S, alive, time_is_up_once, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PYTHON = sys.executable
NEVER_ENDS = "while True: time.sleep(3600)"


def watch(code: str, on_line: Callable[[bytes], bool], *, timeout_s: float = HANGS_S) -> Ending:
    """Watch a program of Python."""
    code = f"import os, sys, time\n{code}"
    return SystemRunner().watch([PYTHON, "-u", "-c", code], timeout_s=timeout_s, on_line=on_line)


def collect(lines: list[bytes]) -> Callable[[bytes], bool]:
    """Return a listener that wants everything."""

    def on_line(line: bytes) -> bool:
        lines.append(line)
        return False

    return on_line


def test_it_ends_with_the_word_that_is_waited_for() -> None:
    heard: list[bytes] = []

    def on_line(line: bytes) -> bool:
        heard.append(line)
        return line == b"done"

    ending = watch(f"print('one'); print('done'); print('more')\n{NEVER_ENDS}", on_line)
    assert ending is Ending.STOPPED
    assert heard == [b"one", b"done"]


def test_both_outputs_are_heard_and_an_end_of_line_is_no_part_of_a_line() -> None:
    lines: list[bytes] = []
    code = "sys.stdout.write('a\\r\\n'); sys.stdout.flush(); sys.stderr.write('b\\nrest')"
    assert watch(code, collect(lines)) is Ending.EXITED
    assert lines == [b"a", b"b", b"rest"]


def test_one_that_hangs_is_ended_when_its_time_is_up() -> None:
    assert watch("time.sleep(3600)", collect([]), timeout_s=0.1) is Ending.TIME_OUT


def test_one_that_dribbles_is_ended_when_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends no line is no reason to begin the time anew."""
    dribbled = tmp_path / "dribbled"
    time_is_up_once(monkeypatch, process, dribbled.exists)
    code = (
        "for _ in range(9): sys.stdout.write('x'); sys.stdout.flush(); time.sleep(0.01)\n"
        f"open({str(dribbled)!r}, 'w')\n"
        "while True: sys.stdout.write('x'); sys.stdout.flush(); time.sleep(0.01)"
    )
    assert watch(code, collect([])) is Ending.TIME_OUT


def test_one_that_will_not_stop_talking_is_ended_and_takes_no_memory() -> None:
    lines: list[bytes] = []
    code = "while True: os.write(1, b'x' * 100000)"
    assert watch(code, collect(lines)) is Ending.FLOOD
    assert sum(map(len, lines)) <= 4096


def test_a_long_line_is_cut() -> None:
    lines: list[bytes] = []
    watch("print('y' * 100000); print('next')", collect(lines))
    assert lines == [b"y" * 4096, b"next"]


def test_what_it_has_started_ends_with_it() -> None:
    pids: list[int] = []

    def on_line(line: bytes) -> bool:
        pids.append(int(line))
        return len(pids) == 2

    code = f"os.fork()\nos.write(1, b'%d\\n' % os.getpid())\n{NEVER_ENDS}"
    assert watch(code, on_line) is Ending.STOPPED
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_what_it_leaves_behind_when_it_ends_is_ended() -> None:
    lines: list[bytes] = []
    code = (
        f"pid = os.fork()\nif pid == 0:\n    os.close(1); os.close(2)\n    {NEVER_ENDS}\nprint(pid)"
    )
    assert watch(code, collect(lines)) is Ending.EXITED
    assert wait_until(lambda: not alive(int(lines[0])))


def test_an_exception_of_the_listener_ends_it() -> None:
    pids: list[int] = []

    def on_line(line: bytes) -> bool:
        pids.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(f"print(os.getpid())\n{NEVER_ENDS}", on_line)
    assert wait_until(lambda: not alive(pids[0]))


def test_stop_all_ends_it_from_another_thread() -> None:
    runner = SystemRunner()
    stopper = threading.Thread(target=runner.stop_all)

    def on_line(line: bytes) -> bool:
        assert line == b"begun"
        stopper.start()
        return False

    code = "import time; print('begun', flush=True); time.sleep(3600)"
    ending = runner.watch([PYTHON, "-c", code], timeout_s=HANGS_S, on_line=on_line)
    stopper.join()
    assert ending is Ending.EXITED
    with pytest.raises(ProgramError, match="stopped"):
        runner.watch([PYTHON, "-c", ""], timeout_s=HANGS_S, on_line=collect([]))


def test_a_program_that_is_not_installed_is_an_error() -> None:
    with pytest.raises(ProgramError, match="not installed"):
        SystemRunner().watch(["no-such-program"], timeout_s=HANGS_S, on_line=collect([]))
