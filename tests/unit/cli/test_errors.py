"""Errors become one line and the exit code that the manual promises."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from initadvisor import __main__ as start
from initadvisor import cli
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError, UsageError
from initadvisor.host import Host
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.fixtures.boots import boot_record
from tests.fixtures.waiting import HANGS_S


def outcome(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    """Have the command line meet an error; return the exit code and what stderr has."""

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "root", fail)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["initadvisor", "candidates", "build", "--image", "/a b"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [(InitadvisorError, 1), (UsageError, 2), (UnsafeError, 3), (NeedsRootError, 4)],
)
def test_each_kind_of_error_has_its_exit_code(
    error: type[InitadvisorError],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = outcome(error("it failed", hint="do this"), monkeypatch, capsys)
    assert told == (code, "initadvisor: it failed (do this)\n")


@pytest.mark.parametrize("words", [("trial", "start", "--only"), ("apply",)])
def test_a_level_that_is_a_word_of_its_own_belongs_to_a_setting(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for setting, code, told in (
        (("zstd", "-99"), 2, "No such option '-9'. (a setting is one word for the shell: 'zst"),
        (("zstd -99",), 2, "setting 'zstd -99': zstd has no level 99 (1 to 22)\n"),
    ):
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        monkeypatch.setattr(sys, "argv", ["initadvisor", *words, *setting])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == code
        assert capsys.readouterr().err.startswith(f"initadvisor: {told}")


def test_what_needs_root_names_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = NeedsRootError("cannot read /a b: only root may")
    assert outcome(error, monkeypatch, capsys) == (
        4,
        "initadvisor: cannot read /a b: only root may"
        " (run: sudo initadvisor candidates build --image '/a b')\n",
    )


def test_an_interruption_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = outcome(KeyboardInterrupt(), monkeypatch, capsys)
    assert told == (130, "initadvisor: interrupted\n")


def test_an_interruption_while_the_program_still_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        """Stands in for a module that is being imported."""

        @property
        def main(self) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "initadvisor.cli", Interrupting())
    with pytest.raises(SystemExit) as caught:
        start.main()
    assert caught.value.code == 130
    assert capsys.readouterr().err == "initadvisor: interrupted\n"


@pytest.mark.parametrize("command", [["history"], ["history", "--csv"], ["--help"]], ids=" ".join)
def test_an_output_that_takes_no_more_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    with open_store(Host(root=tmp_path, runner=FakeRunner())) as store:
        store.add_boots([boot_record(1), boot_record(2)])
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "initadvisor", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=HANGS_S,
        )
    said = "initadvisor: cannot use standard output: No space left on device"
    said += " (free some room there, or write elsewhere)\n"
    assert (done.returncode, done.stderr) == (1, said)


_ANSWER = (sys.executable, "-m", "initadvisor", "whatif", "--table", "arch-cloud")


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_an_answer_needs_no_place_for_errors(closed: str) -> None:
    argv = ["sh", "-c", f'exec "$@" {closed}', "sh", *_ANSWER]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False, timeout=HANGS_S)
    assert done.returncode == 0
    assert b"zstd" in done.stdout


def test_who_no_longer_reads_is_told_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from initadvisor import cli
        from initadvisor.host.files import whole_file

        def root(**_):
            with whole_file(Path(sys.argv[1]) / "file") as file:
                file.write(b"half of it")
                while True:
                    print("a line", flush=True)

        cli.root = root
        cli.main()
    """
    argv = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stderr
        assert running.stdout.readline() == b"a line\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 128 + signal.SIGPIPE
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_no_longer_reads_is_its_caller_s_affair() -> None:
    code = """if True:
        import contextlib
        import os
        from initadvisor import cli

        def root(**_):
            read_end, write_end = os.pipe()
            os.close(read_end)
            with contextlib.suppress(BrokenPipeError):
                os.write(write_end, b"a word")
            print("goes on", flush=True)
            return 130

        cli.root = root
        cli.main()
    """
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (130, b"goes on\n")


@pytest.mark.parametrize("words", [("trial",), ("candidates",)], ids=" ".join)
def test_a_subcommand_that_is_missing_is_one_line(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["initadvisor", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("initadvisor: Missing command. (see ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", [("inspect",), ("recommend", "--image")], ids=" ".join)
def test_a_file_that_cannot_be_read_to_its_end_is_named(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["initadvisor", *words, "/proc/self/mem"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("initadvisor: cannot use /proc/self/mem: ")
    assert said.count("\n") == 1


def test_the_package_can_be_run() -> None:
    command = [sys.executable, "-m", "initadvisor", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANGS_S)
    assert done.stdout.startswith("initadvisor, version")
