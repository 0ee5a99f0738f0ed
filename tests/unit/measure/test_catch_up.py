"""Before an answer the journal's boots are recorded, for a while; nothing of it stops that."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import SystemClock
from initadvisor.lab.observing import Unseen
from initadvisor.measure.catch_up import BUDGET_S, catch_up
from initadvisor.store.opening import FILE_NAME
from initadvisor.store.store import open_store
from tests.fixtures.journals import Boot

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from tests.fixtures.booted import Booted

SUDO = "past boots are not used: sudo initadvisor recommend uses them, too"
EARLIER = (1, 2, 3)


@dataclass
class Slow(SystemClock):
    """A clock by which everything takes long."""

    now_ns: int = 1
    step_s: float = BUDGET_S

    def monotonic_ns(self) -> int:
        self.now_ns += round(self.step_s * 1e9)
        return self.now_ns


@dataclass
class Steps(Unseen):
    """Notes how many boots are said to be read."""

    seen: list[tuple[int, int]]

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        assert what
        if of:
            self.seen.append((done, of))


@pytest.fixture
def installed(machine: Booted, told: list[BootRecord]) -> Booted:
    """A machine with a journal of three earlier boots, which no container or chroot is."""
    del told
    machine.earlier = [Boot(number=number).ordinary() for number in EARLIER]
    (machine.root / "proc/1").mkdir(parents=True)
    (machine.root / "proc/1/root").symlink_to(machine.root)
    return machine


def kept(host: Host) -> set[str]:
    with open_store(host, readonly=True) as store:
        return set(store.known_boots())


def ids(*numbers: int) -> set[str]:
    return {Boot(number=number).boot_id for number in numbers}


def test_what_the_journal_has_is_recorded_once(installed: Booted, told: list[BootRecord]) -> None:
    host, steps = installed.host(), Steps([])
    assert catch_up(host, observer=steps) is None
    assert kept(host) == ids(*EARLIER, 9)
    assert steps.seen == [(1, 3), (2, 3), (3, 3)]
    # Nothing is read again until the next boot, however the journal is.
    (host.root / "var/log/journal").rename(host.root / "var/log/away")
    del told[:]
    assert catch_up(host, observer=Steps([])) is None
    assert told == []
    (host.root / "var/log/away").rename(host.root / "var/log/journal")
    installed.identify(Boot(number=10))
    installed.journal(*(Boot(number=number).ordinary() for number in (3, 9, 10)))
    assert catch_up(host, observer=Unseen()) is None
    assert kept(host) == ids(*EARLIER, 9, 10)


def test_a_store_that_is_gone_is_filled_again(installed: Booted) -> None:
    host = installed.host()
    catch_up(host, observer=Unseen())
    (host.state_dir() / FILE_NAME).unlink()
    catch_up(host, observer=Unseen())
    assert kept(host) == ids(*EARLIER, 9)


def test_when_time_is_up_the_newest_are_recorded_and_the_next_run_goes_on(
    installed: Booted,
) -> None:
    host = installed.host()
    hurried = replace(host, clock=Slow())
    assert (
        catch_up(hurried, observer=Unseen())
        == "2 boots of the journal are left for the next run to read"
    )
    assert kept(host) == ids(3, 9)
    assert catch_up(hurried, observer=Unseen()) is not None
    assert kept(host) == ids(2, 3, 9)
    assert catch_up(host, observer=Unseen()) is None
    assert kept(host) == ids(*EARLIER, 9)


@pytest.mark.parametrize("mark", ["run/.containerenv", "run/live", None])
def test_elsewhere_nothing_is_recorded_nor_said(installed: Booted, mark: str | None) -> None:
    host = installed.host()
    if mark:
        installed.write(f"/{mark}", "")
    else:
        (host.root / "proc/1/root").unlink()  # a chroot without /proc
    assert catch_up(host, observer=Unseen()) is None
    assert kept(host) == set()


def test_nothing_that_goes_wrong_is_more_than_a_line(installed: Booted) -> None:
    host = installed.host()
    store = host.state_dir() / FILE_NAME
    store.parent.mkdir(parents=True)
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99999")
    newer = catch_up(host, observer=Unseen())
    assert newer is not None
    assert "\n" not in newer
    store.unlink()
    journal = next((host.root / "var/log/journal").rglob("system.journal"))
    (journal.parent / "system@old.journal").write_bytes(b"no journal")
    damaged = catch_up(host, observer=Unseen())
    assert damaged is not None
    assert damaged.startswith(f"{journal.parent}/system@old.journal was left out: ")
    assert kept(host) == ids(*EARLIER, 9)


def test_a_state_that_cannot_be_written_is_a_line(
    installed: Booted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "file/state"))
    words = catch_up(installed.host(), observer=Unseen())
    assert words is not None
    assert words.startswith("past boots are not all used: ")


@pytest.mark.usefixtures("ordinary_user")
def test_a_user_is_told_what_sudo_adds_until_root_has_recorded_boots(
    installed: Booted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    host = installed.host()
    assert catch_up(host, observer=Unseen()) == SUDO
    assert not (tmp_path / "home").exists()
    with monkeypatch.context() as as_root:
        as_root.setattr("os.geteuid", lambda: 0)
        assert catch_up(host, observer=Unseen()) is None
    assert kept(host) == ids(*EARLIER, 9)
    assert catch_up(host, observer=Unseen()) is None
    assert not (tmp_path / "home").exists()
