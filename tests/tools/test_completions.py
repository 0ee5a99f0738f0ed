"""Real shells complete the words of a command line as somebody types them."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.checkout import ROOT
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.tools

_LIMIT_S = HANGS_S
_BEGIN_OF_LINE, _ENTER, _TAB = "\x01", "\r", "\t"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


WORDS = [
    ("initadvisor recom", "recommend"),
    ("initadvisor candidates pru", "prune"),
    ("initadvisor candidates build --jo", "--jobs"),
    ("initadvisor recommend --read", "--read-speed"),
    ("initadvisor lab --engine um", "uml"),
    ("initadvisor inspect an-im", "an-image.img"),
    ("initadvisor recommend --image an-im", "an-image.img"),
    ("initadvisor apply lzo", "lzop"),
    ("initadvisor recommend --only lzo", "lzop"),
    ("initadvisor whatif --table arch-c", "arch-cloud"),
    ("initadvisor whatif --table an-im", "an-image.img"),
    ("initadvisor config set machine.over", "machine.overlap_ms"),
]
"""What is typed, and what its last word is completed to."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a file in it."""
    (tmp_path / "an-image.img").touch()
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    """Return that of a user with nothing configured: without our command, nothing can start it."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(place), "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def found(shell: str) -> str:
    """Return the shell's path."""
    program = shutil.which(shell)
    assert program is not None, f"{shell} is missing; tools/setup test installs it"
    return program


class Terminal:
    """A shell that takes its input for a person's."""

    def __init__(self, command: list[str], place: Path) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=place,
            env=environment(place),
        )
        os.close(slave)

    def type(self, keys: str) -> None:
        """Send keys."""
        os.write(self.master, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until the shell has shown the text; a shell that never does fails the test."""
        shown, until = "", time.monotonic() + _LIMIT_S
        while text not in shown:
            left = until - time.monotonic()
            ready = select.select([self.master], [], [], max(left, 0))[0]
            assert ready, f"no {text!r} in {shown!r}"
            shown = _ESCAPES.sub("", shown + os.read(self.master, 4096).decode(errors="replace"))

    def close(self) -> None:
        """End the shell and whatever it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


@pytest.fixture(params=["bash", "zsh"])
def terminal(request: pytest.FixtureRequest, place: Path) -> Iterator[Terminal]:
    """A shell that knows our completion."""
    if request.param == "bash":
        command = [found("bash"), "--norc", "-i"]
        setup = f". {ROOT}/completions/initadvisor.bash"
    else:
        command = [found("zsh"), "-f", "-i"]
        (place / "_initadvisor").symlink_to(ROOT / "completions/initadvisor.zsh")
        setup = f"fpath=({place} $fpath); autoload -Uz compinit; compinit -u -d {place}/dump"
    shell = Terminal(command, place)
    try:
        shell.type(f"{setup}{_ENTER}echo rea''dy{_ENTER}")
        shell.wait_for("ready")
        yield shell
    finally:
        shell.close()


@pytest.mark.parametrize(("typed", "completed"), WORDS)
def test_a_word_is_completed_as_it_is_typed(terminal: Terminal, typed: str, completed: str) -> None:
    terminal.type(f"{typed}{_TAB}{_BEGIN_OF_LINE}echo typed: {_ENTER}")
    terminal.wait_for(f"\ntyped: {typed.rpartition(' ')[0]} {completed}")


@pytest.mark.parametrize(("typed", "completed"), WORDS)
def test_fish_offers_it_with_a_description(place: Path, typed: str, completed: str) -> None:
    script = f"source {ROOT}/completions/initadvisor.fish; complete --do-complete '{typed}'"
    done = subprocess.run(
        [found("fish"), "--no-config", "--command", script],
        cwd=place,
        env=environment(place),
        check=True,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
    )
    offers = dict(line.partition("\t")[::2] for line in done.stdout.splitlines())
    assert set(offers) == {completed}
    assert offers[completed] or completed in {"an-image.img", "lzop", "machine.overlap_ms"}
