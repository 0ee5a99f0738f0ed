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

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host import Host
from initadvisor.store import connection
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.fixtures.lab_runs import fill, sample
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root publishes anything")
AS_SOMEBODY_ELSE = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
NOBODY = 65534
FILES = {"initadvisor.sqlite", "initadvisor.sqlite-wal", "initadvisor.sqlite-shm"}
WRITER = """
import sys
from initadvisor.host import Host
from initadvisor.store.store import open_store
from tests.fixtures.lab_runs import fill, sample
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


@contextlib.contextmanager
def as_before() -> Iterator[None]:
    """Be, within ``unprivileged``, who one was before."""
    if os.getresuid()[2] == os.geteuid():
        yield
        return
    os.setresuid(0, 0, 0)
    try:
        yield
    finally:
        os.setresuid(NOBODY, NOBODY, 0)


def machine(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine whose root directory is ``directory``, asked by a user without a home."""
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(directory / "home"))
    for name in ("var/lib", "var/cache"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    return Host(root=directory, runner=FakeRunner())


def measured_by_root(host: Host, name: str = "/var/lib/initadvisor") -> Path:
    directory = host.path(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(directory))
        with open_store(host) as store:
            fill(store, 1, 2, 3)
    return directory


def left_open(host: Host, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have root measure in a directory that the user names, and let everybody read that."""
    directory = measured_by_root(host, "/named")
    open_to_all(directory)
    monkeypatch.setenv("STATE_DIRECTORY", str(directory))
    return directory


def open_to_all(directory: Path) -> None:
    directory.chmod(0o755)
    for path in directory.iterdir():
        path.chmod(0o644)


@AS_ROOT
def test_a_user_who_measured_nothing_sees_what_root_measured(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    directory = measured_by_root(host)
    with unprivileged(), open_store(host, readonly=True) as store:
        [recorded] = store.lab_runs()
        assert store.path == host.published_dir() / "initadvisor.sqlite"
    assert len(recorded.samples) == 3
    assert {file.name for file in directory.iterdir()} == {*FILES, "locks"}


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
    directory = left_open(host, monkeypatch)
    (directory / "initadvisor.sqlite").chmod(0)
    with (
        unprivileged(),
        pytest.raises(NeedsRootError, match="only its owner may"),
        open_store(host, readonly=True),
    ):
        pass


@AS_SOMEBODY_ELSE
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
        pytest.raises(InitadvisorError, match=r"cannot (read|write)"),
        open_store(host) as store,
    ):
        fill(store, 4)
    assert (directory / "initadvisor.sqlite").read_bytes() == before


def test_nobody_else_may_open_the_files_and_one_of_them_has_all_that_was_measured(
    host: Host, path: Path
) -> None:
    with open_store(host) as store:
        fill(store, 1)
    for readonly in (True, False):  # whoever comes and goes, they stay
        with open_store(host, readonly=readonly) as store:
            assert len(store.lab_runs()) == 1
        files = list(path.parent.iterdir())
        assert {file.name for file in files} == FILES
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert path.with_name("initadvisor.sqlite-wal").stat().st_size == 0


def test_a_log_is_kept_and_synced_with_every_transaction(host: Host) -> None:
    with open_store(host) as store:
        [mode] = store._connection.execute("PRAGMA journal_mode").fetchone()
        [synchronous] = store._connection.execute("PRAGMA synchronous").fetchone()
    assert (mode, synchronous) == ("wal", 3)


def test_one_that_has_no_log_gets_one(host: Host, path: Path) -> None:
    with open_store(host) as store:
        fill(store, 1)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    with open_store(host) as store:
        [mode] = store._connection.execute("PRAGMA journal_mode").fetchone()
        assert len(store.lab_runs()) == 1
    assert mode == "wal"


@pytest.mark.parametrize("writable", [True, False])
def test_a_copy_of_the_file_alone_is_read(
    public: Path, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    host = machine(public, monkeypatch)
    directory = left_open(host, monkeypatch)
    for name in FILES - {"initadvisor.sqlite"}:
        (directory / name).unlink()
    directory.chmod(0o777 if writable else 0o555)
    with unprivileged(), open_store(host, readonly=True) as store:
        assert len(store.lab_runs()) == 1


def test_a_copy_that_changes_while_it_is_read_is_not_believed(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    directory = left_open(host, monkeypatch)
    for name in FILES - {"initadvisor.sqlite"}:
        (directory / name).unlink()
    directory.chmod(0o555)
    with unprivileged(), open_store(host, readonly=True) as store:
        assert len(store.lab_runs()) == 1
        with as_before():
            directory.chmod(0o755)
            measured_by_root(host, "/named")
        with pytest.raises(InitadvisorError, match="written meanwhile") as caught:
            store.lab_runs()
        assert caught.value.hint == "try again"


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
        process.communicate(timeout=HANGS_S)
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


def test_what_a_killed_writer_has_left_keeps_no_user_from_reading(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    path = left_open(host, monkeypatch) / "initadvisor.sqlite"
    with writer(path, 100_000) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.readlines()
    open_to_all(path.parent)
    index = path.with_name("initadvisor.sqlite-shm")
    assert path.with_name("initadvisor.sqlite-wal").stat().st_size > 0
    whole = index.read_bytes()
    for left in (whole, bytes(len(whole)), b"\xa5" * len(whole)):  # a power cut leaves anything
        index.write_bytes(left)
        with unprivileged(), open_store(host, readonly=True) as store:
            [latest, _] = store.lab_runs()
        assert len(latest.samples) >= len(seen)


def interrupted_write(path: Path, mode: str) -> None:
    """Leave what a writer leaves that is killed while it changes the files."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        before = path.read_bytes()
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN IMMEDIATE")
        for number in range(3000):
            database.execute(
                "INSERT INTO lab_warning VALUES (1, ?, ?, 0)", (number, "half written " * 20)
            )
        copies = {name: name.read_bytes() for name in path.parent.iterdir()}
        database.execute("ROLLBACK")
    assert any(b"half written" in copy for copy in copies.values())
    assert (copies[path] != before) == (mode == "delete")
    for name in path.parent.iterdir():
        name.unlink()
    for name, data in copies.items():
        name.write_bytes(data)


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("readonly", [True, False])
def test_a_half_written_change_is_undone_by_whoever_comes_next(
    host: Host, path: Path, readonly: bool, mode: str
) -> None:
    with open_store(host) as store:
        fill(store, 1, 2)
    interrupted_write(path, mode)
    with open_store(host, readonly=readonly) as store:
        [recorded] = store.lab_runs()
    assert (len(recorded.samples), recorded.warnings) == (2, ())
    with contextlib.closing(sqlite3.connect(path)) as database:
        [said] = database.execute("SELECT count(*) FROM lab_warning").fetchone()
    assert said == 0


@AS_SOMEBODY_ELSE
def test_a_half_written_change_without_a_log_that_a_user_may_not_undo_is_said(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(public, monkeypatch)
    directory = left_open(host, monkeypatch)
    interrupted_write(directory / "initadvisor.sqlite", "delete")
    open_to_all(directory)
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
