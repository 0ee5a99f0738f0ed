"""Configuration that is shell code is evaluated by a shell, within limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.generators import dracut, initramfs_tools, mkinitcpio
from initadvisor.generators import shell as module
from initadvisor.generators.shell import Variable, evaluate, version_sorted
from initadvisor.host import Host
from initadvisor.host.run import SystemRunner
from initadvisor.rewrite.syntax import Shell
from tests.fakes.runner import FakeRunner
from tests.fixtures.cache import cache_dir
from tests.fixtures.hosts import Machine
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from initadvisor.generators import Generator
    from tests.fixtures.hosts import Write

_COMMANDS = (
    *("builtin", "command", "compgen", "printf", "declare", "unset", "unalias", "trap", "exit"),
    *("set", "exec", "shopt", "local", "cat", "head", "test", "["),
)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine whose shells have their real sandbox."""
    return Machine(root=tmp_path, runner=SystemRunner())


@pytest.mark.parametrize("shell", Shell)
def test_the_last_file_wins_and_is_the_origin(host: Host, write: Write, shell: Shell) -> None:
    first, second = write("/a", "X=1\nY=1\n"), write("/b", 'X="$X 2"\n')
    values = evaluate(host, shell, [first, second], ("X", "Y", "Z"))
    assert values.value("X") == "1 2"
    assert values.origin("X") == second
    assert values.origin("Y") == first
    assert values.origin("Z") is None
    assert values.get("Z") is None


def test_the_same_files_in_another_order_are_another_question(host: Host, write: Write) -> None:
    first, second = write("/a", "X=1\n"), write("/b", "X=2\n")
    orders = ([first, second], [second, first], [first, second])
    assert [evaluate(host, Shell.BASH, files, ("X",)).value("X") for files in orders] == [
        *("2", "1", "2")
    ]


def test_arrays_keep_their_elements_and_can_be_appended_to(host: Host, write: Write) -> None:
    files = [write("/a", "X=(-19 'a b')\n"), write("/b", "X+=(-T1)\n")]
    values = evaluate(host, Shell.BASH, files, ("X",))
    assert values.get("X") == Variable(values=("-19", "a b", "-T1"), first="-19", attributes="a")


def test_a_scalar_is_split_into_words_where_an_array_is_wanted(host: Host, write: Write) -> None:
    values = evaluate(host, Shell.BASH, [write("/a", "X='-19  -T1'\n")], ("X",))
    variable = values.get("X")
    assert variable
    assert variable.words == ("-19", "-T1")


def test_names_may_be_patterns_in_bash(host: Host, write: Write) -> None:
    values = evaluate(host, Shell.BASH, [write("/a", "a_image=1\nb_image=2\n")], ("*_image",))
    assert (values.value("a_image"), values.value("b_image")) == ("1", "2")


def test_merged_files_run_into_each_other_without_a_newline(host: Host, write: Write) -> None:
    files = [write("/a", "X=zstd"), write("/b", "Y=-19\n")]
    assert evaluate(host, Shell.BASH, files, ("X",), merged=True).value("X") == "zstdY=-19"
    assert evaluate(host, Shell.BASH, files, ("X",), merged=False).value("X") == "zstd"


def test_carriage_returns_are_part_of_the_value(host: Host, write: Write) -> None:
    values = evaluate(host, Shell.BASH, [write("/a", "X=lz4\r\n")], ("X",))
    assert values.value("X") == "lz4\r"


@pytest.mark.parametrize("shell", Shell)
@pytest.mark.parametrize(
    "text",
    [
        "echo garbage; echo more >&2; X=1\n",
        "printf() { :; }; echo() { :; }; X=1\n",
        "IFS=1; set -u; X=1\n",
        "set -f; exec 3>&1; X=1\n",
        "X=1; cat\n",
        'command() { :; }; builtin() { builtin "$@"; }; X=1\n',
        "trap 'echo \"#\"; exit 7' EXIT; X=1\n",
        "alias printf=: command=: builtin=: unset=:; X=1\n",
        "X=1; sleep 3600 & while :; do :; done &\n",
        "X=1; echo x >/etc/initadvisor-was-here\n",
    ],
    ids=[
        *("prints", "redefines printf", "changes IFS", "plays with descriptors", "reads stdin"),
        *("redefines builtin", "has a trap", "has aliases"),
        *("leaves something running", "would change the machine"),
    ],
)
def test_what_a_file_does_besides_does_not_disturb(
    host: Host, write: Write, shell: Shell, text: str
) -> None:
    assert evaluate(host, shell, [write("/a", text)], ("X",)).value("X") == "1"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", _COMMANDS)
@pytest.mark.parametrize("body", [":", '{name} "$@"', "exit 0", "while :; do return; done"])
def test_a_function_that_has_the_name_of_a_command_does_not_disturb(
    host: Host, write: Write, name: str, body: str
) -> None:
    file = write("/a", f"X=1\nfunction {name} {{ {body.format(name=name)}; }}\n")
    assert evaluate(host, Shell.BASH, [file], ("X",)).value("X") == "1"


@pytest.mark.parametrize(
    "text",
    [
        'function builtin { builtin "$@"; }; readonly -f builtin\n',
        "enable -n printf\n",
        "enable -n compgen\n",
        "enable -n unalias\n",
        "readonly POSIXLY_CORRECT IFS\n",
        "shopt -s extdebug; trap false DEBUG\n",
        "set -n\n",
        "exec true\n",
        "trap 'kill -9 $BASHPID' DEBUG\n",
    ],
)
def test_what_keeps_the_shell_from_telling_is_an_error_and_not_a_wrong_answer(
    host: Host, write: Write, text: str
) -> None:
    file = write("/a", f"X=1\n{text}")
    with pytest.raises(InitadvisorError, match=f"cannot evaluate {file}: it ends the shell"):
        evaluate(host, Shell.BASH, [file], ("X",))


def test_what_starts_ever_more_processes_ends(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 2.0)
    file = write("/a", "for i in {1..400}; do sleep 60 & done\n")
    with pytest.raises(InitadvisorError, match="cannot evaluate"):
        evaluate(host, Shell.BASH, [file], ("X",))


def test_processes_of_another_evaluation_do_not_count(host: Host, write: Write) -> None:
    bomb, file = write("/b", "for i in {1..400}; do sleep 60 & done; wait\n"), write("/a", "X=1\n")
    code = (
        "import pathlib, sys; from initadvisor.generators.shell import evaluate\n"
        "from initadvisor.host import Host; from initadvisor.rewrite.syntax import Shell\n"
        "evaluate(Host(), Shell.BASH, [pathlib.Path(sys.argv[1])], ('X',))\n"
    )
    argv = [sys.executable, "-c", code, str(bomb)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as other:
        try:
            until_there_are(200, other.pid)
            assert evaluate(host, Shell.BASH, [file], ("X",)).value("X") == "1"
        finally:
            other.send_signal(signal.SIGINT)


def until_there_are(processes: int, below: int) -> None:
    """Wait for a process to have so many below it."""
    end = time.monotonic() + HANGS_S
    while len(psutil.Process(below).children(recursive=True)) < processes:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_a_file_reads_is_there(host: Host, write: Write) -> None:
    text = "X=$(cat /etc/passwd)\n[ -r /proc/self/stat ] && Y=$(cat <(echo 1) 2>/dev/null)\n"
    values = evaluate(host, Shell.BASH, [write("/a", text)], ("X", "Y"))
    assert values.value("X") == Path("/etc/passwd").read_text().rstrip("\n")
    assert values.value("Y") == "1"


def test_a_file_that_a_sandbox_shows_is_read_where_it_is(host: Host) -> None:
    with tempfile.NamedTemporaryFile("w", dir=cache_dir(), suffix=" x") as file:
        file.write('X=${BASH_SOURCE[0]}; . "${BASH_SOURCE[0]%/*}/none" 2>/dev/null; Y=1\n')
        file.flush()
        values = evaluate(host, Shell.BASH, [Path(file.name)], ("X", "Y"))
    assert (values.value("X"), values.value("Y")) == (file.name, "1")


class TestWithoutASandbox:
    """What the text says for certain, marked as that."""

    @pytest.fixture
    def host(self, tmp_path: Path) -> Host:
        """Return a machine with shells, on which no namespaces can be made."""
        runner = FakeRunner(programs=["bash", "sh", "unshare"])
        runner.answer("unshare", stderr="unshare: unshare failed: Operation not permitted\n")
        return Machine(root=tmp_path, runner=runner)

    @pytest.mark.parametrize("shell", Shell)
    def test_the_last_assignment_is_found_and_the_answer_marked(
        self, host: Host, write: Write, shell: Shell
    ) -> None:
        files = [write("/a", "X=1 Y=1\n"), write("/b", "X='2 3' # $Z\n")]
        values = evaluate(host, shell, files, ("X", "Y", "Z"))
        assert (values.value("X"), values.value("Y"), values.get("Z")) == ("2 3", "1", None)
        assert (values.origin("X"), values.origin("Y")) == (files[1], files[0])
        [warning] = values.warnings
        assert warning == (
            f"{files[0]} + {files[1]} was only read, not evaluated: no sandbox can be made here: "
            "unshare: unshare failed: Operation not permitted"
        )

    def test_arrays_patterns_and_merged_texts_are_read(self, host: Host, write: Write) -> None:
        files = [
            write("/a", "a_image=(1 '2 3')\n"),
            write("/b", "a_image+=(4)\nX=z"),
            write("/c", "y"),
        ]
        values = evaluate(host, Shell.BASH, files, ("*_image", "X"), merged=True)
        assert values.get("a_image") == Variable(
            values=("1", "2 3", "4"), first="1", attributes="a"
        )
        assert values.value("X") == "zy"

    @pytest.mark.parametrize(
        "text",
        [
            "X=$(nproc)\n",
            "X=1; [ -e / ] && X=2\n",
            "X=1; . /x\n",
            "X=1; eval X=2\n",
            "X=(1); X=2\n",
            "X=1; ((Y))\n",
            "if :; then X=1; fi\n",
        ],
    )
    def test_what_only_a_shell_can_tell_is_an_error(
        self, host: Host, write: Write, text: str
    ) -> None:
        values = evaluate(host, Shell.BASH, [write("/a", text)], ("X", "Z"))
        with pytest.raises(InitadvisorError, match="cannot tell without running it what X is"):
            values.value("X")

    def test_what_is_not_understood_is_an_error(self, host: Host, write: Write) -> None:
        with pytest.raises(InitadvisorError, match=r"cannot tell without running it .*/a, line 1"):
            evaluate(host, Shell.BASH, [write("/a", "X='\n")], ("X",))

    @pytest.mark.parametrize(
        "generator", [mkinitcpio, dracut, initramfs_tools], ids=lambda g: g.NAME
    )
    def test_each_generator_s_answer_is_marked(
        self, host: Host, write: Write, generator: Generator
    ) -> None:
        write("/etc/mkinitcpio.conf", "COMPRESSION=xz\n")
        write("/etc/dracut.conf", "compress=xz\n")
        write("/etc/initramfs-tools/initramfs.conf", "COMPRESS=xz\n")
        write("/usr/bin/xz", "").chmod(0o755)
        found = generator.configured(host, "6.1.0")
        assert str(found.setting).startswith("xz")
        assert sum("was only read, not evaluated" in each for each in found.warnings) == 1

    def test_nothing_of_it_was_run(self, host: Host, write: Write) -> None:
        evaluate(host, Shell.BASH, [write("/a", "X=1\n")], ("X",))
        assert isinstance(host.runner, FakeRunner)
        assert [argv[0] for argv in host.runner.argvs] == ["unshare"]


@pytest.mark.parametrize("shell", Shell)
@pytest.mark.parametrize(
    "text",
    [
        "exit 0\n",
        "exit 3\n",
        "kill -9 $$\n",
    ],
    ids=["exits", "fails", "kills"],
)
def test_a_file_that_ends_its_shell_is_an_error_that_names_it(
    host: Host, write: Write, shell: Shell, text: str
) -> None:
    file = write("/a", text)
    with pytest.raises(InitadvisorError, match=f"cannot evaluate {file}"):
        evaluate(host, shell, [file], ("X",))


@pytest.mark.parametrize("shell", Shell)
def test_a_file_that_never_stops_printing_is_told_as_one(
    host: Host, write: Write, shell: Shell
) -> None:
    text = "y=$(head -c 99999 /dev/zero | tr '\\0' y); while :; do echo $y; done >&2\n"
    file = write("/a", text)
    with pytest.raises(InitadvisorError, match=f"cannot evaluate {file}: it would not stop talk"):
        evaluate(host, shell, [file], ("X",))


def test_an_endless_file_is_an_error_after_the_time_limit(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.1)
    file = write("/a", "while :; do :; done\n")
    with pytest.raises(InitadvisorError, match=r"did not end within 0\.1 s"):
        evaluate(host, Shell.BASH, [file], ("X",))


def test_a_file_that_eats_memory_is_stopped(host: Host, write: Write) -> None:
    file = write("/a", "X=xx; while :; do X=$X$X; done\n")
    with pytest.raises(InitadvisorError, match="cannot evaluate"):
        evaluate(host, Shell.SH, [file], ("X",))


def test_a_missing_shell_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()
    host = Host(root=tmp_path, runner=FakeRunner())
    with pytest.raises(InitadvisorError, match="bash is not installed"):
        evaluate(host, Shell.BASH, [file], ("X",))


def test_a_missing_file_is_an_error_that_names_it(host: Host, tmp_path: Path) -> None:
    with pytest.raises(InitadvisorError, match=r"cannot read .*/none: No such file"):
        evaluate(host, Shell.BASH, [tmp_path / "none"], ("X",))


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_for_root_only_needs_root(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("/a", "X=1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NeedsRootError, match="only root may"):
        evaluate(host, Shell.BASH, [file], ("X",))


def test_the_environment_of_the_caller_does_not_leak_in(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPRESSION", "lzop")
    assert "COMPRESSION" in os.environ
    values = evaluate(host, Shell.BASH, [write("/a", ":\n")], ("COMPRESSION",))
    assert values.get("COMPRESSION") is None


def test_names_are_sorted_as_sort_v_does(host: Host) -> None:
    assert version_sorted(host, ["10-b.conf", "9-a.conf", "a.conf", "9-a.conf"]) == (
        "9-a.conf",
        "10-b.conf",
        "a.conf",
    )
