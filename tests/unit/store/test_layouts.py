"""A data base of another layout is moved aside whole, or left as it is; none is ever changed."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.errors import InitadvisorError
from initadvisor.store import connection, opening
from initadvisor.store.opening import opened_for_reading, opened_for_writing
from initadvisor.store.schema import APPLICATION_ID, LAYOUT, NotOursError, OtherLayoutError
from initadvisor.store.store import open_store
from tests.fixtures.at_line import OPENING_THE_STORE, AtLine
from tests.fixtures.lab_runs import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host

BESIDE = ("", "-wal", "-shm")
EDGES = (-(2**31), -1, 0, 1, LAYOUT - 1, LAYOUT, LAYOUT + 1, APPLICATION_ID, 2**31 - 1)
NUMBERS = st.sampled_from(EDGES) | st.integers(-(2**31), 2**31 - 1)
OTHER = pytest.mark.parametrize("layout", [*range(1, LAYOUT), LAYOUT + 1, 2**31 - 1])
BOTH = pytest.mark.parametrize("readonly", [True, False])


def said_of(layout: int) -> tuple[str, str]:
    """Return what is said of a layout, and what is said to do."""
    if layout < LAYOUT:
        remedy = "whatever is measured next moves it aside and begins a new one"
        return f"an older initadvisor wrote it (layout {layout}, this one uses {LAYOUT})", remedy
    return f"a newer initadvisor wrote it (layout {layout}, ", "update initadvisor"


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as found:
        yield found


def numbers(path: Path) -> tuple[int, int]:
    """Return the layout, and whose data base it says that it is."""
    with database(path) as found:
        [[layout], [application]] = (
            found.execute(f"PRAGMA {name}").fetchone()
            for name in ("user_version", "application_id")
        )
        return layout, application


def runs(path: Path) -> int:
    with database(path) as found:
        [count] = found.execute("SELECT count(*) FROM lab_run").fetchone()
        return int(count)


def other_layout(host: Host, path: Path, layout: int) -> dict[str, bytes]:
    """Leave what a killed writer of another layout leaves, half of it in its log; return that."""
    with open_store(host) as store:
        fill(store, 1)
    with database(path) as writing:
        writing.execute(f"PRAGMA user_version = {layout}")
        writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writing.execute("INSERT INTO lab_run SELECT 9, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 0")
        left = {end: path.with_name(path.name + end).read_bytes() for end in BESIDE}
    for file in path.parent.iterdir():
        file.unlink()
    for end, content in left.items():
        path.with_name(path.name + end).write_bytes(content)
    assert left["-wal"]
    return left


def test_a_new_data_base_says_which_layout_it_has(host: Host, path: Path) -> None:
    with open_store(host):
        pass
    assert numbers(path) == (LAYOUT, APPLICATION_ID)


@OTHER
def test_who_only_reads_refuses_another_layout_and_leaves_it(
    host: Host, path: Path, layout: int
) -> None:
    left = other_layout(host, path, layout)
    said, remedy = said_of(layout)
    with pytest.raises(OtherLayoutError) as caught, open_store(host, readonly=True):
        pass
    assert f"cannot use {path}: {said}" in caught.value.message
    assert caught.value.hint == remedy
    for end in ("", "-wal"):
        assert path.with_name(path.name + end).read_bytes() == left[end]


@OTHER
def test_who_writes_moves_another_layout_aside_whole_and_says_so_once(
    host: Host, path: Path, caplog: pytest.LogCaptureFixture, layout: int
) -> None:
    left = other_layout(host, path, layout)
    with open_store(host) as store:
        fill(store, 7)
        assert len(store.lab_runs()) == 1
    aside = path.with_name("initadvisor.sqlite.aside-1")
    for end in ("", "-wal"):  # the index is made anew whenever a data base is looked at
        assert aside.with_name(aside.name + end).read_bytes() == left[end]
    assert aside.with_name(aside.name + "-shm").exists()
    [said] = [record.getMessage() for record in caplog.records]
    assert said_of(layout)[0] in said
    assert f"moved to {aside}" in said
    assert "nothing of it is used" in said
    assert runs(aside) == 2


@pytest.mark.parametrize("step", range(5))
def test_moving_aside_that_was_interrupted_loses_nothing_of_its_log(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """What looks at the data base meanwhile makes an empty log of the same name."""
    other_layout(host, path, LAYOUT - 1)
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
    with contextlib.suppress(OtherLayoutError), open_store(host, readonly=True):
        pass
    with open_store(host) as store:
        assert store.lab_runs() == ()
    assert runs(path.with_name("initadvisor.sqlite.aside-1")) == 2
    assert not path.with_name("initadvisor.sqlite.aside-2").exists()


@BOTH
@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE address (name TEXT)",
        "PRAGMA user_version = 1",
        f"PRAGMA user_version = {LAYOUT}",
        "PRAGMA application_id = 252006673",
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = -1",
    ],
)
def test_the_data_base_of_another_program_is_left_alone(
    host: Host, path: Path, script: str, readonly: bool
) -> None:
    path.parent.mkdir()
    with database(path) as other:
        other.executescript(script)
    before = path.read_bytes()
    with (
        pytest.raises(NotOursError, match="another program"),
        open_store(host, readonly=readonly),
    ):
        pass
    assert path.read_bytes() == before


@given(NUMBERS, NUMBERS | st.just(APPLICATION_ID), st.booleans(), st.booleans())
def test_only_this_layout_is_used_and_no_other_is_changed(
    layout: int, application: int, with_table: bool, readonly: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "state.sqlite")
        with database(path) as made:
            made.execute(f"PRAGMA user_version = {layout}")
            made.execute(f"PRAGMA application_id = {application}")
            if with_table:
                made.execute("CREATE TABLE own (name TEXT)")
        before = path.read_bytes()
        ours = application == APPLICATION_ID and layout >= 0
        usable = (ours and layout == LAYOUT) or not (layout or application or with_table)
        refused: type[InitadvisorError] | None = None
        try:
            with opened_for_reading(path) if readonly else opened_for_writing(path):
                pass
        except (NotOursError, OtherLayoutError) as err:
            refused = type(err)
        moved = not usable and ours and not readonly
        assert refused == (None if usable or moved else OtherLayoutError if ours else NotOursError)
        assert [file.read_bytes() for file in path.parent.glob("*.aside-1")] == [before] * moved
        if readonly or refused:
            assert path.read_bytes() == before
        else:
            assert numbers(path) == (LAYOUT, APPLICATION_ID)


class OtherWriter:
    """Measures for the first time."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.has_measured = False

    def measure(self) -> None:
        with contextlib.suppress(InitadvisorError), open_store(self.host) as store:
            fill(store, 1)
            self.has_measured = True


@pytest.mark.exhaustive
@BOTH
@pytest.mark.parametrize("empty", [True, False], ids=["empty", "none"])
def test_one_that_is_made_by_another_at_any_line_of_opening_it_is_used(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool, readonly: bool
) -> None:
    for module in (connection, opening):
        monkeypatch.setattr(module, "_WAIT_S", 0.0)
    measured = 0
    for after_lines in itertools.count(1):
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        if empty:
            path.touch()
        other = OtherWriter(host)
        measuring = AtLine(OPENING_THE_STORE, other.measure, after_lines=after_lines)
        with measuring, open_store(host, readonly=readonly) as store:
            measuring.__exit__()
            if not readonly:
                fill(store, 2)
        if measuring.lines_left > 0:
            break
        measured += other.has_measured
        with open_store(host, readonly=True) as store:
            assert len(store.lab_runs()) == other.has_measured + (not readonly), after_lines
        assert not list(path.parent.glob("*.aside-*")), after_lines
    assert measured > 5
