"""Programs are run with a time limit, listened to within bounds, and accounted for."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.core.errors import ProgramError
from initadvisor.host import run
from initadvisor.host.run import Priority, SystemRunner
from tests.fakes.scripts import programs_in
from tests.fixtures.idle_programs import run_when_idle
from tests.fixtures.waiting import HANGS_S, alive, time_is_up_once, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = sys.executable
NAP = "import time; time.sleep(3600)"


def test_output_status_and_resources_are_returned() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    completed = SystemRunner().run([PYTHON, "-c", code], timeout_s=HANGS_S, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (3, b"out\n", b"err\n")
    assert completed.wall_s > 0
    assert completed.cpu_s > 0


def test_a_failing_program_is_an_error_that_quotes_its_last_words() -> None:
    code = "import sys; print('first', file=sys.stderr); sys.exit('no space left')"
    with pytest.raises(ProgramError, match="exited with status 1: no space left"):
        SystemRunner().run([PYTHON, "-c", code], timeout_s=HANGS_S)


def test_a_killed_program_is_an_error_that_names_the_signal() -> None:
    with pytest.raises(ProgramError, match="was killed by signal 9"):
        SystemRunner().run([PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"], timeout_s=HANGS_S)


def test_a_program_that_is_not_installed_is_an_error() -> None:
    with pytest.raises(ProgramError, match="not installed"):
        SystemRunner().run(["initadvisor-no-such-program"], timeout_s=HANGS_S)


def test_stdin_is_empty_unless_given() -> None:
    completed = SystemRunner().run(["cat"], timeout_s=HANGS_S)
    assert completed.stdout == b""


def test_the_environment_is_minimal_and_the_locale_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XZ_OPT", "-9")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    text = SystemRunner().run(["env"], timeout_s=HANGS_S, env={"EXTRA": "1"}).stdout.decode()
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert "LC_ALL=C.UTF-8" in text.splitlines()
    assert "EXTRA" in names
    assert not names & {"XZ_OPT", "LANG"}


@pytest.mark.parametrize("priority", Priority)
def test_the_time_limit_kills_the_whole_session(
    priority: Priority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    time_is_up_once(monkeypatch, run, pid_file.exists)
    script = f"sleep 3600 & echo $! > {pid_file}.part; mv {pid_file}.part {pid_file}; wait"
    with pytest.raises(ProgramError, match=r"did not end within 1800 s and was killed"):
        SystemRunner().run(["sh", "-c", script], timeout_s=HANGS_S, priority=priority)
    grandchild = int(pid_file.read_text(encoding="ascii"))
    assert wait_until(lambda: not alive(grandchild))


def test_a_program_that_talks_without_end_is_stopped() -> None:
    with pytest.raises(ProgramError, match="would not stop talking"):
        SystemRunner().run(["yes"], timeout_s=HANGS_S)


def test_output_to_a_given_file_is_not_limited(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+b") as file:
        completed = SystemRunner().run(
            ["head", "-c", str(20 << 20), "/dev/zero"], timeout_s=HANGS_S, stdout=file
        )
        assert completed.stdout == b""
        assert os.fstat(file.fileno()).st_size == 20 << 20


FILL = "block = bytearray(b'x') * (200 << 20)"


def peak_bytes(*argv: str) -> int:
    """Return the peak memory of a program; that of idle ones is measured."""
    return SystemRunner().run(argv, timeout_s=HANGS_S, priority=Priority.IDLE).peak_bytes


def test_peak_memory_is_that_of_the_program_however_soon_it_ends() -> None:
    assert 200 << 20 <= peak_bytes(PYTHON, "-c", FILL) < 300 << 20


def test_peak_memory_is_also_that_of_a_child() -> None:
    assert 200 << 20 <= peak_bytes("sh", "-c", f'{PYTHON} -c "{FILL}"; true') < 300 << 20


def test_the_callers_own_memory_does_not_count() -> None:
    block = bytearray(b"x") * (300 << 20)
    peak = peak_bytes("true")
    assert len(block) == 300 << 20
    assert 0 < peak < 50 << 20


def test_the_memory_of_programs_that_are_not_idle_is_not_measured() -> None:
    assert SystemRunner().run(["true"], timeout_s=HANGS_S).peak_bytes == 0


def test_idle_programs_yield_and_are_the_first_to_go_when_memory_runs_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_when_idle(monkeypatch)
    argv = ["cat", "/proc/self/oom_score_adj", "/proc/self/stat"]
    said = SystemRunner().run(argv, timeout_s=HANGS_S, priority=Priority.IDLE).stdout
    likely_killed, stat = said.split(b"\n")[:2]
    policy = stat.rpartition(b")")[2].split()[38]  # field 41 of proc_pid_stat(5)
    assert (likely_killed, policy) == (b"1000", str(os.SCHED_IDLE).encode())


STATE = """
import os, sys
fields = dict(line.split(":", 1) for line in open(f"/proc/{os.getppid()}/status"))
ignored, blocked = (int(fields[name], 16) & 0x7FFFFFFF for name in ("SigIgn", "SigBlk"))
print(hex(ignored), hex(blocked), os.getsid(0) == os.getpgid(0) != os.getpid(), sys.argv)
print(sorted(os.environ.items()), os.getcwd(), sys.stdin.read())
print(sorted(os.listdir("/proc/self/fd")))
"""


def test_idle_programs_find_what_others_find(tmp_path: Path) -> None:
    found = []
    for priority in Priority:
        with (tmp_path / "input").open("w+b") as stdin:
            stdin.write(b"given")
            stdin.seek(0)
            done = SystemRunner().run(
                ["sh", "-c", '"$@"; true', "sh", PYTHON, "-c", STATE, "an argument", "\udcff", ""],
                timeout_s=HANGS_S,
                stdin=stdin,
                env={"EXTRA": "\udcfe"},
                cwd=tmp_path,
                priority=priority,
            )
        found.append(done.stdout.decode())
    assert found[0] == found[1]
    assert all(word in found[0] for word in ("True", "'an argument', '\\udcff', ''", "given"))


@pytest.mark.parametrize("priority", Priority)
def test_how_a_program_ends_is_told_at_any_priority(priority: Priority, tmp_path: Path) -> None:
    def returncode(code: str) -> int:
        argv = ["sh", "-c", code]
        done = SystemRunner().run(argv, timeout_s=HANGS_S, check=False, priority=priority)
        return done.returncode

    assert [returncode(f"exit {status}") for status in (0, 1, 255)] == [0, 1, 255]
    assert [returncode(f"kill -{number} $$") for number in (9, 11, 13, 15)] == [-9, -11, -13, -15]
    assert returncode("kill -9 0") == -9  # the whole group, with what has started it
    (script := tmp_path / "script").write_text("no interpreter is named", encoding="ascii")
    script.chmod(0o755)
    with pytest.raises(ProgramError, match=r"cannot run .*/script: Exec format error"):
        SystemRunner().run([script], timeout_s=HANGS_S, priority=priority)
    with pytest.raises(ProgramError, match="not installed"):
        SystemRunner().run(["no-such-program"], timeout_s=HANGS_S, priority=priority)


def napping() -> Iterator[psutil.Process]:
    """Go through the processes below this one that have begun to nap."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.cmdline()[1:] == ["-c", NAP]:
                yield child


@pytest.mark.parametrize("priority", Priority)
def test_stop_all_kills_what_runs_and_lets_nothing_start(priority: Priority) -> None:
    runner = SystemRunner()
    errors: list[str] = []

    def nap() -> None:
        try:
            runner.run([PYTHON, "-c", NAP], timeout_s=3600, priority=priority)
        except ProgramError as err:
            errors.append(err.message)

    threads = [threading.Thread(target=nap) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: len(list(napping())) == 3)
    naps = list(napping())
    runner.stop_all()
    for thread in threads:
        thread.join(HANGS_S)
    assert len(errors) == 3
    assert wait_until(lambda: not any(alive(nap.pid) for nap in naps))
    assert all("killed by signal 9" in error for error in errors)
    with pytest.raises(ProgramError, match="stopped"):
        runner.run(["true"], timeout_s=HANGS_S, priority=priority)


def test_programs_are_those_of_the_system_whatever_path_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("own", "env", "sh"):
        (tmp_path / name).write_text("#!/bin/sh\necho own\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:.:")
    monkeypatch.chdir(tmp_path)
    runner = SystemRunner()
    assert runner.which("own") is None
    with pytest.raises(ProgramError, match="not installed"):
        runner.run(["own"], timeout_s=HANGS_S)
    for priority in Priority:
        said = runner.run(["env"], timeout_s=HANGS_S, priority=priority).stdout.decode()
        assert str(tmp_path) not in said
        path = next(line for line in said.splitlines() if line.startswith("PATH="))
        assert path == "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert runner.run(["sh", "-c", "command -v own"], timeout_s=HANGS_S, check=False).stdout == b""


def test_a_program_must_be_executable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs_in(monkeypatch, tmp_path)
    program = tmp_path / "own"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    assert SystemRunner().which("own") is None
    program.chmod(0o755)
    assert SystemRunner().which("own") == program


def test_no_descriptor_is_left_open() -> None:
    runner = SystemRunner()
    runner.run(["true"], timeout_s=HANGS_S)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, not paths
    for _ in range(5):
        for priority in Priority:
            runner.run(["true"], timeout_s=HANGS_S, priority=priority)
        with pytest.raises(ProgramError):
            runner.run([PYTHON, "-c", NAP], timeout_s=0.05)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count, not paths


def test_the_working_directory_can_be_given() -> None:
    with tempfile.TemporaryDirectory() as directory:
        completed = SystemRunner().run(["pwd"], timeout_s=HANGS_S, cwd=Path(directory))
        assert completed.stdout.decode().strip() == os.path.realpath(directory)
