"""A program runs as long as a context, is ready before its block begins, and dies with us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import ProgramError
from initadvisor.host import process, run
from initadvisor.host.run import SystemRunner
from tests.fixtures.waiting import HANGS_S, alive, time_is_up_once, wait_until

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = sys.executable
ECHO = """
import os, sys, time
print("noise", flush=True)
sys.stdout.write(sys.stdin.readline()); sys.stdout.flush()
open(sys.argv[1], "w").write(str(os.getpid()))
"""
UNTIL_EOF = f"{ECHO}\nsys.stdin.read(); open(sys.argv[1], 'w').write('ended by itself')"
NEVER_ENDS = "import time; time.sleep(3600)"
STUBBORN = f"{ECHO}\nwhile True: time.sleep(60)"


@pytest.fixture(autouse=True)
def has_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be killed that would end by itself."""
    monkeypatch.setattr(run, "_END_S", HANGS_S)


def pid_in(path: Path) -> int:
    """Return the process that the file names, as soon as it does."""
    assert wait_until(lambda: path.exists() and path.read_text().isdecimal())
    return int(path.read_text())


def test_the_block_begins_when_the_word_was_said_and_its_end_is_an_end_of_file(
    tmp_path: Path,
) -> None:
    said = tmp_path / "said"
    with SystemRunner().hold([PYTHON, "-c", UNTIL_EOF, said], word="ready", timeout_s=HANGS_S):
        assert alive(pid_in(said))
    assert said.read_text() == "ended by itself"


def test_cat_is_such_a_program() -> None:
    with SystemRunner().hold(["cat"], word="ready", timeout_s=HANGS_S):
        pass


def test_one_that_does_not_end_by_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_END_S", 0.2)
    said = tmp_path / "said"
    with SystemRunner().hold([PYTHON, "-c", STUBBORN, said], word="ready", timeout_s=HANGS_S):
        pid = pid_in(said)
        assert alive(pid)
    assert wait_until(lambda: not alive(pid))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; sys.exit('refused: not today')", "ended: refused: not today"),
        ("print('x' * (17 << 20))", "x"),
    ],
)
def test_one_that_does_not_say_the_word_is_an_error(code: str, error: str) -> None:
    hold = SystemRunner().hold([PYTHON, "-uc", code], word="ready", timeout_s=HANGS_S)
    with pytest.raises(ProgramError, match=error), hold:
        pytest.fail("the block ran")


def test_one_that_says_nothing_is_an_error_when_its_time_is_up() -> None:
    hold = SystemRunner().hold([PYTHON, "-c", NEVER_ENDS], word="ready", timeout_s=0.1)
    with pytest.raises(ProgramError, match=r"was not ready within 0\.1 s$"), hold:
        pytest.fail("the block ran")


def test_the_last_that_it_has_said_is_quoted_when_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time_is_up_once(monkeypatch, process, (tmp_path / "said").exists)
    code = f"print('another word'); open({str(tmp_path / 'said')!r}, 'w'); print(); {NEVER_ENDS}"
    hold = SystemRunner().hold([PYTHON, "-uc", code], word="ready", timeout_s=HANGS_S)
    with pytest.raises(ProgramError, match="not ready within 1800 s: another word"), hold:
        pytest.fail("the block ran")


def test_a_missing_program_is_an_error() -> None:
    with (
        pytest.raises(ProgramError, match="not installed"),
        SystemRunner().hold(["no-such-program"], word="ready", timeout_s=HANGS_S),
    ):
        pytest.fail("the block ran")


def test_it_ends_when_the_block_raises(tmp_path: Path) -> None:
    said = tmp_path / "said"
    hold = SystemRunner().hold([PYTHON, "-c", UNTIL_EOF, said], word="ready", timeout_s=HANGS_S)
    with pytest.raises(KeyboardInterrupt), hold:
        raise KeyboardInterrupt
    assert said.read_text() == "ended by itself"


def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    """Also where another program that we have started is still there: it inherits no pipe."""
    said, other = tmp_path / "said", tmp_path / "other"
    code = f"""
import sys, threading
from initadvisor.host import process as listen, run
from initadvisor.host.run import SystemRunner
runner = SystemRunner()
with runner.hold([sys.executable, "-c", {UNTIL_EOF!r}, {str(said)!r}], word="ready", timeout_s=180):
    print("held", flush=True)
    runner.run(["sh", "-c", "echo -n $$ >$0; exec sleep 3600", {str(other)!r}], timeout_s=3600)
"""
    with subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == "held\n"
        assert alive(pid_in(said))
        left = pid_in(other)
        ours.send_signal(signal.SIGKILL)
    assert wait_until(lambda: said.read_text() == "ended by itself")
    os.kill(left, signal.SIGKILL)


def test_stopping_everything_ends_it(tmp_path: Path) -> None:
    runner, said = SystemRunner(), tmp_path / "said"
    with runner.hold([PYTHON, "-c", STUBBORN, said], word="ready", timeout_s=HANGS_S):
        pid = pid_in(said)
        threading.Thread(target=runner.stop_all).start()
        assert wait_until(lambda: not alive(pid))
