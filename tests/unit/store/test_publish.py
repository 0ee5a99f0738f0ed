"""No process without root keeps root waiting; what it sees is a copy, and root never reads that."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.campaign.campaign import CampaignState
from initadvisor.campaign.record import read_campaign, write_campaign
from initadvisor.candidates.cache import Cache
from initadvisor.cli.status import print_status
from initadvisor.core.errors import NeedsRootError, UnsafeError
from initadvisor.doctor.status import status
from initadvisor.host.cached import keep
from initadvisor.lab.verify import building_place
from initadvisor.store.publish import published_at_s
from initadvisor.store.store import open_store
from initadvisor.transaction.log import own_transactions, read_transactions
from initadvisor.transaction.transactions import transactions
from tests.faults.machine import NEW, Machine
from tests.faults.runs import Run, perform
from tests.fixtures.campaigns import campaign
from tests.fixtures.lab_runs import fill, sample
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")

NOBODY = 65534
HOLDER = """
import fcntl, os, sqlite3, sys
os.setgid(65534)
os.setuid(65534)
held = []
for name in sys.argv[1:]:
    try:
        file = open(name, "rb")
    except OSError:
        continue
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    held.append(file)
    print(name)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine that every user may look at, asked by root, with the state where root's is."""
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/nonexistent")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        made = Machine(root=Path(name), esp=False)
        for directory in ("var/lib", "var/cache"):
            (made.root / directory).mkdir(parents=True)
        made.install()
        yield made


@pytest.fixture
def host(machine: Machine) -> Host:
    """The machine as the program sees it."""
    return machine.host


@contextlib.contextmanager
def held(*paths: Path) -> Iterator[list[str]]:
    """Have another user open and lock of these what can be, and give the names of those."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield [line.rstrip("\n") for line in iter(process.stdout.readline, "held\n")]
        process.communicate(timeout=HANGS_S)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be another user in the block."""
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def kept(host: Host) -> list[Path]:
    """Return all files of the state and the cache."""
    found = [*host.state_dir().rglob("*"), *host.cache_dir().rglob("*")]
    return sorted(path for path in found if path.is_file())


def do_everything(host: Host) -> None:
    """Measure, replace files, go on with a campaign, build: all that takes a lock or writes."""
    with open_store(host) as store:
        store.add_sample(fill(store, 1), sample(2))
    perform(host, Run.APPLY)
    with transactions(host, wait_s=0):
        write_campaign(host, campaign(CampaignState.PREPARING))
    with Cache(host).locked(), building_place(host) as place:
        (place / "image").touch()
    keep(host.cache_dir() / "read/disk.json", sample(3), what="a time")


def as_before(host: Host) -> None:
    """Have all as an earlier version left it: its locks, and nothing closed to others."""
    for lock in (
        host.state_dir() / "transactions/lock",
        host.state_dir() / "store.lock",
        host.cache_dir() / "apply.lock",
        host.cache_dir() / "candidates/lock",
    ):
        shutil.rmtree(lock.parent / "locks", ignore_errors=True)
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    for top in (host.state_dir(), host.cache_dir()):
        for path in (top, *top.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_what_others_may_open_is_what_is_published(host: Host) -> None:
    do_everything(host)
    published = {str(path) for path in host.published_dir().rglob("*") if path.is_file()}
    assert len(kept(host)) > len(published) > 3
    with held(*kept(host)) as opened:
        assert set(opened) == published


@pytest.mark.parametrize("left_by", ["this version", "an earlier one"])
def test_what_others_hold_keeps_root_from_nothing(
    machine: Machine, host: Host, left_by: str
) -> None:
    do_everything(host)
    if left_by == "an earlier one":
        as_before(host)
    machine.install()
    with held(*kept(host)) as opened:
        assert opened
        do_everything(host)
    with open_store(host) as store:
        assert [len(run.samples) for run in store.lab_runs()] == [2, 2]
    with held(*(path for path in kept(host) if path.is_relative_to(host.state_dir()))) as opened:
        assert opened == []


def test_what_is_committed_in_an_open_log_is_not_lost_when_it_is_closed_to_others(
    host: Host,
) -> None:
    with open_store(host) as store:
        fill(store, 1)
    files = [host.state_dir() / f"initadvisor.sqlite{end}" for end in ("", "-wal", "-shm")]
    with open_store(host) as store:
        fill(store, 2, 3)
        contents = [path.read_bytes() for path in files]
    assert contents[1]
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(content)
    as_before(host)
    with held(*files) as opened:
        assert len(opened) == 3
        with open_store(host) as store:
            fill(store, 4)
            assert [len(run.samples) for run in store.lab_runs()] == [1, 2, 1]


def test_users_see_what_root_did_and_since_when(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    do_everything(host)
    [recorded] = own_transactions(host)
    with as_nobody():
        assert read_transactions(host) == (recorded,)
        assert read_campaign(host).state is CampaignState.PREPARING
        with open_store(host, readonly=True) as store:
            assert len(store.lab_runs()) == 1
        since = published_at_s(host)
        said = status(host)
        print_status(said)
    assert published_at_s(host) is None
    stamp = json.loads((host.published_dir() / "published.json").read_text())
    assert since == said.published_at_s == stamp["at_s"] > 0
    assert "as root published it" in " ".join(capsys.readouterr().out.split())
    assert status(host).published_at_s is None
    with transactions(host):
        write_campaign(host, dataclasses.replace(campaign(CampaignState.PAUSED), number=2))
    with as_nobody():
        assert read_campaign(host).number == 2


def test_what_is_gone_is_not_published_any_more(host: Host) -> None:
    do_everything(host)
    (host.state_dir() / "transactions/000001.json").unlink()
    (host.state_dir() / "initadvisor.sqlite").unlink()
    with transactions(host):
        pass
    with as_nobody():
        assert read_transactions(host) == ()
        with open_store(host, readonly=True) as store:
            assert store.lab_runs() == ()


def test_what_did_not_change_is_not_written_again(host: Host) -> None:
    do_everything(host)
    before = {path: path.stat().st_ino for path in host.published_dir().rglob("*")}
    with transactions(host):
        pass
    assert {path: path.stat().st_ino for path in host.published_dir().rglob("*")} == before


@pytest.mark.parametrize("how", ["not root's", "a link of another's", "writable for others"])
def test_a_state_that_is_not_only_root_s_is_refused(host: Host, how: str) -> None:
    state = host.state_dir()
    match how:
        case "not root's":
            state.mkdir()
            os.chown(state, NOBODY, NOBODY)
        case "a link of another's":
            (host.root / "elsewhere").mkdir()
            state.symlink_to(host.root / "elsewhere")
            os.chown(state, NOBODY, NOBODY, follow_symlinks=False)
        case _:
            state.mkdir()
            state.chmod(0o775)
    with pytest.raises(UnsafeError, match="only root may write"), open_store(host):
        pass
    with pytest.raises(UnsafeError, match="only root may write"), transactions(host):
        pass
    assert list(state.iterdir()) == []


def test_where_nothing_can_be_published_the_work_is_done_and_a_warning_says_so(
    machine: Machine, host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.cache_dir().mkdir()
    os.chown(host.cache_dir(), NOBODY, NOBODY)
    perform(host, Run.APPLY)
    assert (machine.root / "boot/initrd.img").read_bytes() == NEW["/boot/initrd.img"]
    assert "users without root do not see what was done" in caplog.text
    assert not host.published_dir().exists()


def test_a_reader_of_the_copy_keeps_root_from_nothing(host: Host) -> None:
    do_everything(host)
    copy = host.published_dir() / "initadvisor.sqlite"
    with as_nobody(), open_store(host, readonly=True) as store, copy.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = store.lab_runs()
        os.setresuid(0, 0, 0)
        with open_store(host) as writing:
            fill(writing, 5)
        os.setresuid(NOBODY, NOBODY, 0)
        assert store.lab_runs() == before
        with open_store(host, readonly=True) as again:
            assert len(again.lab_runs()) == len(before) + 1


def test_before_anything_is_published_users_are_told_that_only_root_may_look(host: Host) -> None:
    host.state_dir().mkdir()
    with as_nobody():
        with pytest.raises(NeedsRootError, match="no copy"), open_store(host, readonly=True):
            pass
        assert any("no copy is published" in note for note in status(host).notes)
