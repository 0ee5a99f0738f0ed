"""Each call of a transaction fails, or is the last: all is old or all is new in the end."""

from __future__ import annotations

import logging
import os
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.transaction import exchanging
from tests.faults import points
from tests.faults.machine import Machine
from tests.faults.runs import Run
from tests.fixtures.memory import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange

SEED = 20

_ONE_IN_TEN = 0.1
_LIKE_APPLYING = {Run.PROVE, Run.WITHOUT_COPIES}
"""They make the calls of ``Run.APPLY`` or fewer: there, each has one of all that can happen."""


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Sync nothing: thousands of syncs take long, and no power is cut here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    caplog.set_level(logging.CRITICAL)  # "not undone yet" is what is tried


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine with images and entries on what behaves like vfat, all else on ext4."""
    return _machine(tmp_path, monkeypatch, esp=True)


@pytest.fixture(params=["esp", "esp-before-linux-6", "one-file-system"])
def in_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Return one in memory, where thousands of runs take no time of the disk, if there is any."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield _machine(
            Path(directory),
            monkeypatch,
            esp=request.param != "one-file-system",
            exchanges=request.param != "esp-before-linux-6",
        )


def _machine(
    directory: Path, monkeypatch: pytest.MonkeyPatch, *, esp: bool, exchanges: bool = True
) -> Machine:
    monkeypatch.setenv("STATE_DIRECTORY", str(directory / "root/state"))
    return Machine(root=directory / "root", esp=esp, exchanges=exchanges)


@pytest.mark.parametrize("run", Run)
def test_killed_at_any_call(machine: Machine, run: Run) -> None:
    tried = points.try_each(machine, run, points.KILLED, random.Random(SEED))
    assert tried.bad == []
    assert tried.points.total() > 20


@pytest.mark.parametrize("run", Run)
def test_any_call_fails(in_memory: Machine, run: Run) -> None:
    chooser = random.Random(SEED)
    if in_memory.esp and in_memory.exchanges and run not in _LIKE_APPLYING:
        tried = points.try_each(in_memory, run, points.FAILED, chooser)
    else:
        tried = points.try_one_of(in_memory, run, points.FAULTS, chooser)
    assert tried.bad == []


@pytest.mark.parametrize("run", Run)
def test_a_process_is_really_killed(machine: Machine, run: Run) -> None:
    tried = points.kill_really(machine, run, random.Random(SEED), _ONE_IN_TEN)
    assert tried.bad == []
    assert tried.points


def test_a_file_that_is_written_in_place_is_found_torn(
    in_memory: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(host: Host, change: FileChange) -> None:
        descriptor = os.open(host.path(change.path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, host.path(change.staged).read_bytes())
        os.close(descriptor)

    monkeypatch.setattr(exchanging, "put", put)
    chooser = random.Random(SEED)
    tried = points.try_each(in_memory, Run.APPLY, points.KILLED, chooser)
    assert any("neither old nor new: ['/boot/initrd.img']" in bad for bad in tried.bad)


def test_a_step_back_that_is_left_out_is_found(
    in_memory: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanging, "put_back", lambda *_: True)
    with pytest.raises(AssertionError, match="but not so"):
        points.try_each(in_memory, Run.UNDO, points.KILLED, random.Random(SEED))
