"""Programs are run with a time limit, listened to within bounds, and accounted for."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.host.run import Priority, SystemRunner
from initadvisor.model.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = sys.executable
NAP = "import time; time.sleep(60)"


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(condition: object, *, seconds: float = 10.0) -> bool:
    """Wait for something to become true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_output_status_and_resources_are_returned() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    completed = SystemRunner().run([PYTHON, "-c", code], timeout_s=20, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (3, b"out\n", b"err\n")
    assert completed.wall_s > 0
    assert completed.cpu_s > 0


def test_a_failing_program_is_an_error_that_quotes_its_last_words() -> None:
    code = "import sys; print('first', file=sys.stderr); sys.exit('no space left')"
    with pytest.raises(ProgramError, match="exited with status 1: no space left"):
        SystemRunner().run([PYTHON, "-c", code], timeout_s=20)


def test_a_killed_program_is_an_error_that_names_the_signal() -> None:
    with pytest.raises(ProgramError, match="was killed by signal 9"):
        SystemRunner().run([PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"], timeout_s=20)


def test_a_program_that_is_not_installed_is_an_error() -> None:
    with pytest.raises(ProgramError, match="not installed"):
        SystemRunner().run(["initadvisor-no-such-program"], timeout_s=1)


def test_stdin_is_empty_unless_given() -> None:
    completed = SystemRunner().run(["cat"], timeout_s=10)
    assert completed.stdout == b""


def test_the_environment_is_minimal_and_the_locale_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XZ_OPT", "-9")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    text = SystemRunner().run(["env"], timeout_s=10, env={"EXTRA": "1"}).stdout.decode()
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert "LC_ALL=C.UTF-8" in text.splitlines()
    assert "EXTRA" in names
    assert not names & {"XZ_OPT", "LANG"}


def test_the_time_limit_kills_the_whole_session(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {pid_file}; wait"
    started = time.monotonic()
    with pytest.raises(ProgramError, match=r"did not end within 0\.5 s"):
        SystemRunner().run(["sh", "-c", script], timeout_s=0.5)
    assert time.monotonic() - started < 10
    grandchild = int(pid_file.read_text(encoding="ascii"))
    assert wait_until(lambda: not alive(grandchild))


def test_a_program_that_talks_without_end_is_stopped() -> None:
    started = time.monotonic()
    with pytest.raises(ProgramError, match="would not stop talking"):
        SystemRunner().run(["yes"], timeout_s=60)
    assert time.monotonic() - started < 30


def test_output_to_a_given_file_is_not_limited(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+b") as file:
        completed = SystemRunner().run(
            ["head", "-c", str(20 << 20), "/dev/zero"], timeout_s=30, stdout=file
        )
        assert completed.stdout == b""
        assert os.fstat(file.fileno()).st_size == 20 << 20


def test_peak_memory_is_that_of_the_program() -> None:
    # Where the caller has needed more than the program, that is watched, which takes a moment.
    fill = "import time; block = bytearray(b'x') * (200 << 20); time.sleep(0.5)"
    completed = SystemRunner().run([PYTHON, "-c", fill], timeout_s=30)
    assert 200 << 20 <= completed.peak_bytes < 300 << 20


def test_the_callers_own_memory_does_not_count() -> None:
    block = bytearray(b"x") * (300 << 20)
    peak = SystemRunner().run(["sleep", "0.2"], timeout_s=30).peak_bytes
    assert len(block) == 300 << 20
    assert 0 < peak < 50 << 20


def test_the_memory_of_a_short_program_is_seen() -> None:
    assert SystemRunner().run(["sleep", "0.2"], timeout_s=10).peak_bytes > 0


def test_idle_programs_yield_and_are_the_first_to_go_when_memory_runs_out() -> None:
    code = (
        "import os, time; time.sleep(0.3);"
        "print(os.sched_getscheduler(0), open('/proc/self/oom_score_adj').read().strip())"
    )
    completed = SystemRunner().run([PYTHON, "-c", code], timeout_s=20, priority=Priority.IDLE)
    assert completed.stdout.split() == [str(os.SCHED_IDLE).encode(), b"1000"]


def napping() -> Iterator[psutil.Process]:
    """Go through this process's children that have begun to nap."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if NAP in child.cmdline():
                yield child


def test_stop_all_kills_what_runs_and_lets_nothing_start() -> None:
    runner = SystemRunner()
    errors: list[str] = []

    def nap() -> None:
        try:
            runner.run([PYTHON, "-c", NAP], timeout_s=60)
        except ProgramError as err:
            errors.append(err.message)

    threads = [threading.Thread(target=nap) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: len(list(napping())) == 3)
    started = time.monotonic()
    runner.stop_all()
    for thread in threads:
        thread.join(timeout=20)
    assert time.monotonic() - started < 10
    assert len(errors) == 3
    assert all("killed by signal 9" in error for error in errors)
    with pytest.raises(ProgramError, match="stopped"):
        runner.run(["true"], timeout_s=1)


def test_programs_are_found_in_the_sbin_directories(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "own"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    assert SystemRunner().which("own") is None
    program.chmod(0o755)
    assert SystemRunner().which("own") == program


def test_no_descriptor_is_left_open() -> None:
    runner = SystemRunner()
    runner.run(["true"], timeout_s=10)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, not paths
    for _ in range(5):
        runner.run(["true"], timeout_s=10)
        with pytest.raises(ProgramError):
            runner.run([PYTHON, "-c", NAP], timeout_s=0.05)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count, not paths


def test_the_working_directory_can_be_given() -> None:
    with tempfile.TemporaryDirectory() as directory:
        completed = SystemRunner().run(["pwd"], timeout_s=10, cwd=Path(directory))
        assert completed.stdout.decode().strip() == os.path.realpath(directory)
