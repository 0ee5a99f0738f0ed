"""What somebody writes by hand at any moment is not lost to who replaces the file."""

from __future__ import annotations

import io
import itertools
import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transaction import TransactionState
from initadvisor.transaction.transactions import pending, transactions
from tests.faults.calls import KilledError
from tests.faults.machine import CONFIGURATION, Machine
from tests.faults.runs import Run, calls_about, perform, prepare, start_again
from tests.fixtures.memory import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    _Write = Callable[[Path, bytes], None]

IMAGE = "/boot/initrd.img"
ENTRY = "/boot/entries/previous.conf"
THEIRS = b"written by hand" * 300
_BEFORE, _AFTER = 2, 3
"""How many calls before and after names change are tried."""

REPLACING = [Run.UNDO, pytest.param(Run.SETTLE, marks=pytest.mark.exhaustive)]


@pytest.fixture(params=[True, False], ids=["esp", "one-file-system"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine whose images may be on what behaves like vfat; no power is cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        monkeypatch.setenv("STATE_DIRECTORY", f"{directory}/root/state")
        yield Machine(root=Path(directory) / "root", esp=request.param)


@pytest.fixture
def before_linux_6(machine: Machine) -> Machine:
    """The machine with a kernel that cannot exchange names."""
    return Machine(root=machine.root, esp=machine.esp, exchanges=False)


def renamed(path: Path, content: bytes) -> None:
    """Replace a file as programs do."""
    beside = path.with_name("by-hand")
    beside.write_bytes(content)
    beside.rename(path)


def in_place(path: Path, content: bytes) -> None:
    """Overwrite a file as cp(1) does."""
    path.write_bytes(content)


WRITES = [(renamed, IMAGE), (in_place, IMAGE), (renamed, CONFIGURATION), (renamed, ENTRY)]


def renames(machine: Machine, run: Run, call: str) -> tuple[list[int], list[str]]:
    """Return when names change in an undisturbed run, and all its calls."""
    prepare(machine, run)
    start_again(machine, run)
    calls = calls_about(machine)
    with calls.installed():
        perform(machine.host, run)
    return [at for at, name in enumerate(calls.calls) if name == call], calls.calls


def around(moments: list[int], names: list[str]) -> list[int]:
    """Return the calls near those."""
    near = {at + step for at in moments for step in range(-_BEFORE, _AFTER + 1)}
    return sorted(near & set(range(len(names))))


def told(
    machine: Machine,
    run: Run,
    caplog: pytest.LogCaptureFixture,
    writes: Mapping[int, tuple[_Write, str, bytes]],
    *,
    killed_at: int = -1,
) -> str:
    """Have somebody write before calls of a run, and recover; return all that was told."""
    caplog.clear()
    errors = []

    def meanwhile(number: int) -> None:
        if number in writes:
            write, name, content = writes[number]
            write(machine.host.path(name), content)

    start_again(machine, run)
    try:
        with calls_about(machine, at=killed_at, meanwhile=meanwhile).installed():
            perform(machine.host, run)
    except InitadvisorError as err:
        errors.append(err.with_hint)
    except KilledError:
        pass
    with transactions(machine.host) as engine:
        try:
            engine.recover()
        except InitadvisorError as err:  # what was changed is refused then, and undone
            errors.append(err.with_hint)
        engine.recover()
    assert pending(machine.host) == ()
    return " ".join([*errors, caplog.text])


def survives(machine: Machine, name: str, content: bytes, words: str) -> bool:
    """Tell whether a content is in its place, in a file that was named, or kept for going back."""
    kept = {
        machine.host.path(change.backup)
        for transaction in read_transactions(machine.host)
        for change in transaction.files
        if change.backup
    }
    return any(
        path.read_bytes() == content
        for path in machine.files()
        if path == machine.host.path(name) or path in kept or str(path) in words
    )


@pytest.mark.parametrize(
    "run", [*REPLACING, pytest.param(Run.RECOVER_FORTH, marks=pytest.mark.exhaustive)]
)
def test_what_is_written_at_any_call_survives(
    machine: Machine, caplog: pytest.LogCaptureFixture, run: Run
) -> None:
    moments, names = renames(machine, run, "renameat2")
    lost = []
    for at in around(moments, names):
        for number, (write, name) in enumerate(WRITES):
            if at in moments or at % len(WRITES) == number:
                words = told(machine, run, caplog, {at: (write, name, THEIRS)})
                if not survives(machine, name, THEIRS, words):
                    lost.append(f"{at} {names[at]}, {write.__name__} {name}: {words}")
    assert moments
    assert lost == []


def test_what_is_written_over_the_new_content_is_told_and_all_else_goes_back(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    moments, _ = renames(machine, Run.SETTLE, "renameat2")
    for at in moments:
        words = told(machine, Run.SETTLE, caplog, {at + 1: (in_place, IMAGE, THEIRS)})
        assert f"not replacing {IMAGE}: it was changed" in words
        assert read_transactions(machine.host)[-1].state is TransactionState.UNDONE
        assert survives(machine, IMAGE, THEIRS, words)


@pytest.mark.parametrize("run", REPLACING)
def test_who_has_emptied_a_file_to_write_into_it_writes_into_that_one(
    machine: Machine, caplog: pytest.LogCaptureFixture, run: Run
) -> None:
    moments, _ = renames(machine, run, "renameat2")
    for at in moments:
        begun: IO[bytes] = io.BytesIO()

        def begin(path: Path, _: bytes) -> None:
            nonlocal begun
            begun = path.open("wb")

        told(machine, run, caplog, {at: (begin, CONFIGURATION, b"")})
        with begun:
            begun.write(THEIRS)
        assert survives(machine, CONFIGURATION, THEIRS, "")


@pytest.mark.parametrize("run", REPLACING)
def test_what_is_written_before_a_kill_survives(
    machine: Machine, caplog: pytest.LogCaptureFixture, run: Run
) -> None:
    moments, names = renames(machine, run, "renameat2")
    lost = []
    for (at, name), killed in itertools.product(
        itertools.product(moments, (IMAGE, ENTRY)), range(1, _AFTER + 1)
    ):
        words = told(machine, run, caplog, {at: (renamed, name, THEIRS)}, killed_at=at + killed)
        if not survives(machine, name, THEIRS, words):
            lost.append(f"{at}+{killed} {names[at]}, {name}: {words}")
    assert moments
    assert lost == []


@pytest.mark.parametrize("run", REPLACING)
def test_of_what_is_written_twice_the_last_survives(
    machine: Machine, caplog: pytest.LogCaptureFixture, run: Run
) -> None:
    moments, _ = renames(machine, run, "renameat2")
    lost = []
    for at, after in itertools.product(moments, range(1, 25, 2)):
        both = {at: (renamed, IMAGE, THEIRS), at + after: (renamed, IMAGE, THEIRS * 2)}
        words = told(machine, run, caplog, both)
        if not survives(machine, IMAGE, THEIRS * 2, words):
            lost.append(f"{at}+{after}: {words}")
    assert moments
    assert lost == []


@pytest.mark.parametrize("run", REPLACING)
@pytest.mark.parametrize("write", [renamed, in_place])
def test_where_names_cannot_be_exchanged_only_the_rename_itself_overwrites(
    before_linux_6: Machine, caplog: pytest.LogCaptureFixture, run: Run, write: _Write
) -> None:
    moments, names = renames(before_linux_6, run, "rename")
    lost = set()
    for at in around(moments, names):
        words = told(before_linux_6, run, caplog, {at: (write, IMAGE, THEIRS)})
        if not survives(before_linux_6, IMAGE, THEIRS, words):
            lost.add(names[at])
    # A hard link keeps the old content where there are any, and leads to what is written in place.
    is_kept = write is in_place and run is Run.SETTLE and not before_linux_6.esp
    assert lost == (set() if is_kept else {"rename"})
