"""Configuration that is shell code is evaluated by a shell, within limits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.generators import shell as module
from initadvisor.generators.shell import Variable, evaluate, version_sorted
from initadvisor.host import Host
from initadvisor.rewrite.syntax import Shell
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.hosts import Write


@pytest.mark.parametrize("shell", Shell)
def test_the_last_file_wins_and_is_the_origin(host: Host, write: Write, shell: Shell) -> None:
    first, second = write("/a", "X=1\nY=1\n"), write("/b", 'X="$X 2"\n')
    values = evaluate(host, shell, [first, second], ("X", "Y", "Z"))
    assert values.value("X") == "1 2"
    assert values.origin("X") == second
    assert values.origin("Y") == first
    assert values.origin("Z") is None
    assert values.get("Z") is None


def test_arrays_keep_their_elements_and_can_be_appended_to(host: Host, write: Write) -> None:
    files = [write("/a", "X=(-19 'a b')\n"), write("/b", "X+=(-T1)\n")]
    values = evaluate(host, Shell.BASH, files, ("X",))
    assert values.get("X") == Variable(values=("-19", "a b", "-T1"), is_array=True)


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
    ],
    ids=["prints", "redefines printf", "changes IFS", "plays with descriptors", "reads stdin"],
)
def test_what_a_file_does_besides_does_not_disturb(
    host: Host, write: Write, shell: Shell, text: str
) -> None:
    assert evaluate(host, shell, [write("/a", text)], ("X",)).value("X") == "1"


@pytest.mark.parametrize("shell", Shell)
@pytest.mark.parametrize(
    "text",
    [
        "exit 0\n",
        "exit 3\n",
        "kill -9 $$\n",
        "y=$(head -c 99999 /dev/zero | tr '\\0' y); while :; do echo $y; done >&2\n",
    ],
    ids=["exits", "fails", "kills", "never stops printing"],
)
def test_a_file_that_ends_its_shell_is_an_error_that_names_it(
    host: Host, write: Write, shell: Shell, text: str
) -> None:
    file = write("/a", text)
    with pytest.raises(InitadvisorError, match=f"cannot evaluate {file}"):
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


def test_a_file_for_root_only_needs_root(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("/a", "X=1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(file), "open", refuse)
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
