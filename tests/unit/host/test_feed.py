"""A file goes through a pipe, whole, whatever the reader does."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from initadvisor.host.process import piped
from initadvisor.host.run import SystemRunner
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path


def test_the_whole_file_comes_through_and_its_position_stays(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(3_000_001)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file, (tmp_path / "out").open("wb") as out:
        file.seek(5)
        with piped(file) as pipe:
            SystemRunner().run(["cat"], timeout_s=HANGS_S, stdin=pipe, stdout=out)
        assert file.tell() == 5
    assert (tmp_path / "out").read_bytes() == content


def test_several_readers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(2_000_000)
    (tmp_path / "file").write_bytes(content)
    results: list[bytes] = []
    with (tmp_path / "file").open("rb") as file:

        def read() -> None:
            with piped(file) as pipe:
                results.append(SystemRunner().run(["cat"], timeout_s=HANGS_S, stdin=pipe).stdout)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [content] * 4


@pytest.mark.parametrize("how", ["reader ends", "block raises"])
def test_a_reader_that_ends_early_leaves_no_thread(tmp_path: Path, how: str) -> None:
    (tmp_path / "file").write_bytes(bytes(10 << 20))
    before = threading.active_count()
    with (tmp_path / "file").open("rb") as file:
        if how == "reader ends":
            with piped(file) as pipe:
                SystemRunner().run(["head", "-c", "1"], timeout_s=HANGS_S, stdin=pipe)
        else:
            with pytest.raises(KeyboardInterrupt), piped(file):
                raise KeyboardInterrupt
    assert threading.active_count() == before


def test_the_signal_of_a_broken_pipe_does_not_end_the_process(tmp_path: Path) -> None:
    """The command line restores the default action of SIGPIPE, which is to die."""
    (tmp_path / "file").write_bytes(bytes(10 << 20))
    code = (
        "import signal, sys; from initadvisor.host.process import piped\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    for _ in range(20):\n"
        "        with piped(file) as pipe:\n"
        "            pipe.read(1)\n"
        "print('alive')"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "file")],
        stdout=subprocess.PIPE,
        timeout=HANGS_S,
        check=False,
    )
    assert completed.returncode != -signal.SIGPIPE
    assert completed.stdout == b"alive\n"
