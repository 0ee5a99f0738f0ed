"""Who may read and write the store, at the same time, and what a killed writer leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.model.errors import InitadvisorError, NeedsRootError
from initadvisor.store import connection
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.unit.store.values import fill, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
WRITER = """
import sys
from initadvisor.host import Host
from initadvisor.store.store import open_store
from tests.unit.store.values import fill, sample
with open_store(Host()) as store:
    number = fill(store)
    for time_us in range(int(sys.argv[1])):
        store.add_sample(number, sample(time_us))
        print(time_us, flush=True)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user may read."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Be no more than an ordinary user in the block."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def machine(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine whose root directory is ``directory``, asked by a user without a home."""
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(directory / "home"))
    return Host(root=directory, runner=FakeRunner())


def measured_by_root(host: Host) -> Path:
    directory = host.path("/var/lib/initadvisor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(directory))
        with open_store(host) as store:
            fill(store, 1, 2, 3)
    return directory


def test_a_user_who_measured_nothing_sees_what_root_measured(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    directory = measured_by_root(host)
    directory.chmod(0o555)
    with unprivileged(), open_store(host, readonly=True) as store:
        [recorded] = store.lab_runs()
    assert len(recorded.samples) == 3
    assert [file.name for file in directory.iterdir()] == ["initadvisor.sqlite"]


def test_a_user_who_measured_sees_that(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = machine(public, monkeypatch)
    measured_by_root(host)
    (public / "home").mkdir()
    os.chown(public / "home", NOBODY, -1) if os.geteuid() == 0 else None
    with unprivileged():
        with open_store(host) as store:
            fill(store, 7)
        with open_store(host, readonly=True) as store:
            [recorded] = store.lab_runs()
    assert [s.unpack_us for s in recorded.samples] == [7]


def test_what_is_kept_from_a_user_is_said_to_be(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    directory = measured_by_root(host)
    (directory / "initadvisor.sqlite").chmod(0)
    with (
        unprivileged(),
        pytest.raises(NeedsRootError, match="only its owner may"),
        open_store(host, readonly=True),
    ):
        pass


def test_what_may_not_be_written_is_said_in_one_line(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    with (
        unprivileged(),
        pytest.raises(InitadvisorError, match="cannot make the directory"),
        open_store(host),
    ):
        pass
    directory = measured_by_root(host)
    monkeypatch.setenv("STATE_DIRECTORY", str(directory))
    before = (directory / "initadvisor.sqlite").read_bytes()
    with (
        unprivileged(),
        pytest.raises(InitadvisorError, match="cannot write") as caught,
        open_store(host) as store,
    ):
        fill(store, 4)
    assert caught.value.hint
    assert (directory / "initadvisor.sqlite").read_bytes() == before


def test_the_file_is_readable_for_all_and_has_nothing_beside_it(host: Host, path: Path) -> None:
    with open_store(host) as store:
        fill(store, 1)
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert list(path.parent.iterdir()) == [path]


def test_a_sample_is_there_for_others_as_soon_as_it_is_added(host: Host) -> None:
    with open_store(host) as writing, open_store(host, readonly=True) as reading:
        number = fill(writing, 1)
        writing.add_sample(number, sample(2))
        [recorded] = reading.lab_runs()
        assert len(recorded.samples) == 2


def test_a_reader_in_the_middle_keeps_nobody_from_writing(host: Host) -> None:
    with open_store(host, readonly=True), open_store(host) as writing:
        fill(writing, 1)
        with open_store(host, readonly=True) as reading:
            assert len(reading.lab_runs()) == 1
            fill(writing, 2)


def writer(path: Path, samples: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(samples)],
        env={**os.environ, "STATE_DIRECTORY": str(path.parent)},
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_several_may_write_at_once_even_the_first_time(host: Host, path: Path) -> None:
    writers = [writer(path, 25) for _ in range(4)]
    for process in writers:
        process.communicate(timeout=120)
    assert [process.returncode for process in writers] == [0] * 4
    with open_store(host, readonly=True) as store:
        runs = store.lab_runs()
    assert [len(recorded.samples) for recorded in runs] == [25] * 4


@pytest.mark.parametrize("after", [1, 3, 10])
def test_what_was_added_survives_a_kill(host: Host, path: Path, after: int) -> None:
    with writer(path, 100_000) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.readlines()
    with open_store(host, readonly=True) as store:
        [recorded] = store.lab_runs()
    assert len(recorded.samples) >= len(seen) >= after
    assert [s.unpack_us for s in recorded.samples] == list(range(len(recorded.samples)))


def interrupted_write(path: Path) -> None:
    """Leave what a writer leaves that is killed while it changes the file itself."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN IMMEDIATE")
        for number in range(3000):
            database.execute(
                "INSERT INTO lab_warning VALUES (1, ?, ?)", (number, "half written " * 20)
            )
        names = (path, path.with_name(f"{path.name}-journal"))
        copies = {name: name.read_bytes() for name in names}
        database.execute("ROLLBACK")
    assert copies[path] != path.read_bytes()
    for name, data in copies.items():
        name.write_bytes(data)


@pytest.mark.parametrize("readonly", [True, False])
def test_a_half_written_change_is_undone_by_whoever_comes_next(
    host: Host, path: Path, readonly: bool
) -> None:
    with open_store(host) as store:
        fill(store, 1, 2)
    whole = path.read_bytes()
    interrupted_write(path)
    with open_store(host, readonly=readonly) as store:
        [recorded] = store.lab_runs()
    assert (len(recorded.samples), recorded.warnings) == (2, ())
    assert path.read_bytes() == whole


def test_a_half_written_change_that_a_user_may_not_undo_is_said(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    directory = measured_by_root(host)
    interrupted_write(directory / "initadvisor.sqlite")
    with (
        unprivileged(),
        pytest.raises(InitadvisorError, match="cannot read"),
        open_store(host, readonly=True) as store,
    ):
        store.lab_runs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(directory))
        with open_store(host, readonly=True) as store:
            assert len(store.lab_runs()) == 1


def test_one_who_holds_it_too_long_is_named_as_the_reason(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_WAIT_S", 0.05)
    with open_store(host) as store:
        fill(store, 1)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(InitadvisorError, match="another process has held it") as caught:
                fill(store, 2)
            assert caught.value.hint
            assert len(store.lab_runs()) == 1  # who writes keeps nobody from reading
        fill(store, 3)
        assert len(store.lab_runs()) == 2
