"""Files that are no data base, damaged ones, and disks that take no more."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host.lock import lock_file, locked
from initadvisor.records.lab import Engine
from initadvisor.store.connection import DamagedError
from initadvisor.store.opening import LOCK
from initadvisor.store.schema import LAYOUT, OtherLayoutError
from initadvisor.store.store import open_store
from tests.fixtures.at_line import OPENING_THE_STORE, AtLine
from tests.fixtures.full_disks import files_no_longer_than
from tests.fixtures.lab_runs import CPU, KERNEL, ZSTD, fill, lost, run, sample, trial, verification
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.store.store import Store

BOTH = pytest.mark.parametrize("readonly", [True, False])


def read_all(host: Host, *, readonly: bool = True) -> int:
    """Read everything; return how many runs there are."""
    with open_store(host, readonly=readonly) as store:
        store.verifications()
        store.engine_trial(Engine.KVM, "kvm of 6.12")
        store.unpack_samples([ZSTD], engine=Engine.KVM, kernel_sha256=KERNEL.sha256, cpu_model=CPU)
        return len(store.lab_runs())


def filled(host: Host, path: Path) -> bytes:
    """Fill the data base with some of everything; return its bytes."""
    with open_store(host) as store:
        for _ in range(3):
            number = fill(store, 1, 2, 3)
            store.add_lost(number, lost("it hung"))
        store.add_verification(verification(words="junk within compressed archive"))
        store.remember_engine(trial(works=False))
    return path.read_bytes()


def complaint(host: Host, path: Path) -> str | None:
    """Read everything; return what is said against it, None where nothing is."""
    try:
        read_all(host)
    except InitadvisorError as err:
        said = err.message
    else:
        return None
    assert said.isprintable()
    assert str(path) in said
    return said


GARBAGE = pytest.mark.parametrize(
    "content", [b"garbage", b"x" * 5000, b"SQLite format 3\0" + bytes(5000)], ids=range(3)
)


@GARBAGE
def test_who_only_reads_refuses_what_is_no_data_base(
    host: Host, path: Path, content: bytes
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(InitadvisorError) as caught:
        read_all(host)
    assert str(path) in caught.value.message
    assert caught.value.hint == "whatever is measured next moves it aside and begins a new one"
    assert path.read_bytes() == content


@BOTH
def test_what_is_no_file_stays_and_is_said_to_be_for_its_owner_to_move(
    host: Host, path: Path, readonly: bool
) -> None:
    path.mkdir(parents=True)
    with (
        pytest.raises(InitadvisorError, match="not an ordinary file") as caught,
        open_store(host, readonly=readonly),
    ):
        pass
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("move it away")
    assert path.is_dir()


@BOTH
def test_a_file_in_the_directory_s_place_is_an_error(
    host: Host, path: Path, readonly: bool
) -> None:
    machine_s = host.path("/var/lib/initadvisor/initadvisor.sqlite")
    machine_s.parent.mkdir(parents=True)
    path.parent.write_bytes(b"a file")
    with (
        pytest.raises(InitadvisorError, match=str(path.parent)),
        open_store(host, readonly=readonly),
    ):
        pass
    assert path.parent.read_bytes() == b"a file"


@GARBAGE
def test_who_writes_moves_what_is_no_data_base_aside(
    host: Host, path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    for number in (1, 2):  # a second one takes no one's place
        path.unlink(missing_ok=True)
        path.write_bytes(content + b"%d" % number)
        with open_store(host) as store:
            fill(store, 1)
        assert read_all(host) == 1
    for number in (1, 2):
        aside = path.with_name(f"initadvisor.sqlite.aside-{number}")
        assert aside.read_bytes() == content + b"%d" % number
        assert f"moved to {aside}" in caplog.text


def test_what_belongs_to_a_damaged_data_base_goes_with_it(host: Host, path: Path) -> None:
    filled(host, path)
    log = path.with_name("initadvisor.sqlite-wal")
    path.write_bytes(b"garbage" * 1000)
    log.write_bytes(b"its log")
    with open_store(host) as store:
        assert store.lab_runs() == ()
        fill(store, 1)
    assert path.with_name("initadvisor.sqlite.aside-1").read_bytes() == b"garbage" * 1000
    assert path.with_name("initadvisor.sqlite.aside-1-wal").read_bytes() == b"its log"


@pytest.mark.parametrize("step", range(4))
def test_moving_aside_is_finished_by_whoever_comes_next(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    path.parent.mkdir()
    names = {name: path.with_name(f"initadvisor.sqlite{name}") for name in ("", "-wal", "-shm")}
    for name, file in names.items():
        file.write_bytes(b"garbage" + name.encode())
    rename, renamed = Path.rename, list[Path]()

    def killed_rename(source: Path, target: Path) -> Path:
        if len(renamed) == step:
            raise KeyboardInterrupt
        renamed.append(source)
        return rename(source, target)

    with monkeypatch.context() as killing:
        killing.setattr(Path, "rename", killed_rename)
        with contextlib.suppress(KeyboardInterrupt), open_store(host):
            pass
    with open_store(host) as store:
        fill(store, 1)
    for name in ("", "-wal"):  # the index is made anew whenever a data base is looked at
        aside = path.with_name(f"initadvisor.sqlite.aside-1{name}")
        assert aside.read_bytes() == b"garbage" + name.encode()
    assert read_all(host) == 1


def with_a_damaged_page(host: Host, path: Path) -> bytes:
    """Make a data base in which only a check finds the damage; return its bytes."""
    filled(host, path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        [page] = database.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'lab_sample_of_image'"
        ).fetchone()
        [page_bytes] = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * page_bytes + 3] = 250  # more cells than the page has room for
    path.write_bytes(data)
    return bytes(data)


def cannot_be_used(host: Host, path: Path, why: str) -> bytes:
    """Leave a data base that is to be moved aside, nothing beside it; return its bytes."""
    match why:
        case "older":
            filled(host, path)
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute(f"PRAGMA user_version = {LAYOUT - 1}")
        case "page":
            with_a_damaged_page(host, path)
        case _:
            path.parent.mkdir()
            path.write_bytes(b"garbage" * 1000)
    for end in ("wal", "shm"):
        path.with_name(f"{path.name}-{end}").unlink(missing_ok=True)
    return path.read_bytes()


UNUSABLE = pytest.mark.parametrize("why", ["garbage", "page", "older"])


@pytest.mark.exhaustive
@UNUSABLE
def test_several_that_find_one_they_cannot_use_lose_nothing(
    host: Host, path: Path, why: str
) -> None:
    unusable = cannot_be_used(host, path, why)
    script = """
from initadvisor.host import Host
from initadvisor.store.store import open_store
from tests.fixtures.lab_runs import fill
with open_store(Host()) as store:
    fill(store, 1)
"""
    environment = {**os.environ, "STATE_DIRECTORY": str(path.parent)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, cwd=Path(__file__).parents[3]
        )
        for _ in range(6)
    ]
    assert [process.wait(timeout=HANGS_S) for process in writers] == [0] * 6
    assert read_all(host) == 6
    assert path.with_name("initadvisor.sqlite.aside-1").read_bytes() == unusable
    assert not path.with_name("initadvisor.sqlite.aside-2").exists()


class OtherProcess:
    """Moves what cannot be used aside, and maybe begins a new one.

    As the real one does it only does so while nobody else may.
    """

    def __init__(self, path: Path, *, new: Path | None) -> None:
        """``new``: what it puts in the place of what it moved."""
        self.path = path
        self.unusable = path.stat().st_ino
        self.new = new
        self.has_moved = False

    def move(self) -> None:
        try:
            with locked(lock_file(self.path.parent, LOCK), what="moving it"):
                self._move_alone()
        except (InitadvisorError, FileNotFoundError):
            pass

    def _move_alone(self) -> None:
        if self.path.stat().st_ino != self.unusable:
            return
        self.path.rename(self.path.with_name("moved"))
        self.has_moved = True
        if self.new is not None:
            shutil.copy(self.new, self.path)


@pytest.mark.exhaustive
@BOTH
@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "gone"])
@UNUSABLE
def test_one_that_is_moved_aside_at_any_line_of_opening_it_is_made_anew(
    host: Host, path: Path, why: str, replaced: bool, readonly: bool
) -> None:
    unusable = cannot_be_used(host, path, why)
    path.unlink()
    with open_store(host) as store:
        fill(store, 1)
    new = path.rename(path.with_name("new"))
    moves = 0
    for after_lines in itertools.count(1):
        for name in path.parent.glob("initadvisor.sqlite*"):
            name.unlink()
        path.write_bytes(unusable)
        other = OtherProcess(path, new=new if replaced else None)
        moving = AtLine(OPENING_THE_STORE, other.move, after_lines=after_lines)
        refused = False
        try:
            with moving, open_store(host, readonly=readonly) as store:
                moving.__exit__()
                if not readonly:
                    fill(store, 1)
        except (DamagedError, OtherLayoutError):
            refused = True
        if moving.lines_left > 0:
            break
        moves += other.has_moved
        assert not refused or readonly
        if not readonly:
            assert read_all(host) == (2 if replaced and other.has_moved else 1), after_lines
    assert moves > 20


def test_damage_that_only_a_check_finds_is_found_before_anything_is_written(
    host: Host, path: Path
) -> None:
    data = with_a_damaged_page(host, path)
    with open_store(host) as store:
        fill(store, 1)
        assert len(store.lab_runs()) == 1
    assert path.with_name("initadvisor.sqlite.aside-1").read_bytes() == data


@BOTH
@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_what_is_no_file_is_refused(host: Host, path: Path, kind: str, readonly: bool) -> None:
    path.parent.mkdir()
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case _:
            path.symlink_to("/dev/zero")
    with pytest.raises(InitadvisorError, match="not an ordinary file"):
        read_all(host, readonly=readonly)


def test_a_truncated_file_is_an_error_in_one_line_or_reads_as_empty(host: Host, path: Path) -> None:
    data = filled(host, path)
    for length in [*range(0, len(data), 509), len(data) - 1]:
        path.write_bytes(data[:length])
        assert (complaint(host, path) is None) == (length == 0), length


def test_flipped_bytes_never_end_in_anything_but_an_answer_or_one_line(
    host: Host, path: Path
) -> None:
    data = filled(host, path)
    dice = random.Random(1)
    complaints = []
    for _ in range(400):
        damaged = bytearray(data)
        start = dice.randrange(len(data))
        for offset in range(start, min(len(data), start + dice.choice([1, 4, 200]))):
            damaged[offset] = dice.randrange(256)
        path.write_bytes(damaged)
        complaints.append(complaint(host, path))
    assert 20 < sum(said is not None for said in complaints) < len(complaints)


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE lab_sample",
        "DROP TABLE lab_lost; CREATE TABLE lab_lost (run, number, image_sha256, round, reason);"
        "INSERT INTO lab_lost VALUES (1, 1, 'a', 'first', 'b')",
        "DROP TABLE lab_lost; CREATE TABLE lab_lost (run, number, image_sha256, round, reason);"
        "INSERT INTO lab_lost VALUES (1, 1, x'00', 1, 'b')",
        "ALTER TABLE lab_sample DROP COLUMN seal",
    ],
)
def test_what_the_program_never_wrote_is_called_damage(host: Host, path: Path, change: str) -> None:
    filled(host, path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    with pytest.raises(InitadvisorError, match="damaged") as caught:
        read_all(host)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("UPDATE lab_run SET engine = 'abacus'", "lab run 1"),
        ("UPDATE lab_run SET started_at = 'yesterday'", "lab run 1"),
        ("UPDATE lab_run SET started_at = '2026-01-01T00:00:00'", "lab run 1"),
        ("UPDATE lab_subject SET setting = 'zip' WHERE position = 1", "lab run 1, image 1"),
        ("UPDATE lab_sample SET kind = '' WHERE number = 1", "lab run 1, sample 1"),
        ("UPDATE lab_sample SET unpack_us = unpack_us + 1", "lab run 1, sample 1"),
    ],
)
def test_a_damaged_row_is_left_out_and_named(
    host: Host, path: Path, change: str, name: str
) -> None:
    with open_store(host) as store:
        fill(store, 1)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    with open_store(host) as store:
        assert name in store.damaged()
        fill(store, 2)
        assert len(store.lab_runs()) == (1 if name == "lab run 1" else 2)
        assert name in store.drop_damaged()
        assert store.damaged() == ()


@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.parametrize(
    ("word", "damaged"),
    [(b"started_at TEXT", b"Started_at TEXT"), (b"  unpack_us", b"\xb6 unpack_us")],
)
def test_a_damaged_byte_in_the_names_of_columns_moves_it_aside(
    host: Host, path: Path, mode: int, word: bytes, damaged: bytes
) -> None:
    with open_store(host) as store:
        fill(store, 1)
    path.write_bytes(path.read_bytes().replace(word, damaged))
    path.chmod(mode)
    with open_store(host) as store:
        assert store.lab_runs() == ()
    assert path.with_name(f"{path.name}.aside-1").exists()


def write_on(store: Store) -> None:
    """Write more than there is room for."""
    for _ in range(1000):
        store.begin_lab_run(run())


def test_a_full_disk_takes_nothing_in_part_and_loses_nothing(host: Host, path: Path) -> None:
    with open_store(host) as store:
        number = fill(store, 1, 2, 3)
        with contextlib.closing(sqlite3.connect(path)) as database:
            [pages] = database.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(InitadvisorError, match="full; nothing was changed") as caught:
            write_on(store)
        assert caught.value.hint == "make room, try again"
        before = store.lab_runs()
        store._connection.execute("PRAGMA max_page_count = 100000")
        store.add_sample(number, sample(4))
    with open_store(host, readonly=True) as store:
        after = store.lab_runs()
    assert len(after) == len(before)
    assert all(len(recorded.run.subjects) == 2 for recorded in after)
    assert [s.unpack_us for s in after[-1].samples] == [1, 2, 3, 4]


def test_a_write_the_system_refuses_is_said_and_loses_nothing(host: Host, path: Path) -> None:
    with open_store(host) as store:
        fill(store, 1, 2, 3)
    with (
        files_no_longer_than(path.stat().st_size),
        open_store(host) as store,
        pytest.raises(InitadvisorError, match="cannot write"),
    ):
        write_on(store)
    with open_store(host) as store:
        assert all(len(recorded.run.subjects) == 2 for recorded in store.lab_runs())
        assert len(store.lab_runs()[-1].samples) == 3
