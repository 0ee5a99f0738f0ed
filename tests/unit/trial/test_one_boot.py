"""One boot's entry is noted before it is there, and the note is the last of it to go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import EntryKind, TrialPlan
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import Refusal, RefusalKind
from initadvisor.host import Host
from initadvisor.trial.markers import noted_entry
from initadvisor.trial.one_boot import (
    entry_loader,
    new_name,
    plan_entry,
    remove_entry,
    select_entry,
    write_entry,
)
from tests.fakes.boot_loader import FakeLoader

if TYPE_CHECKING:
    from pathlib import Path

IMAGE, NEW = "/boot/initrd.img", "/boot/new.img"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine with an image that is new."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/new.img").write_bytes(b"an image")
    return Host(root=tmp_path)


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> FakeLoader:
    """Return its boot loader."""
    made = FakeLoader(image=IMAGE)
    made.use(monkeypatch)
    return made


def planned(host: Host, watchdog_s: int | None = None) -> TrialPlan:
    """Plan an entry with the new image."""
    return plan_entry(
        host,
        loader="fake",
        trial="apply-1-0",
        replaces=IMAGE,
        image=NEW,
        generator="dracut",
        watchdog_s=watchdog_s,
    )


def test_no_two_boots_have_a_name() -> None:
    assert len({new_name("trial", 1) for _ in range(100)}) == 100


@pytest.mark.parametrize("watchdog_s", [None, 600])
def test_only_who_asks_for_the_watchdog_has_it(
    host: Host, loader: FakeLoader, watchdog_s: int | None
) -> None:
    assert loader.entries == {}
    words = planned(host, watchdog_s).extra_cmdline
    assert ("systemd.watchdog_sec=600" in words) is (watchdog_s is not None)
    assert "initadvisor.trial=apply-1-0" in words


def test_an_entry_that_cannot_be_written_is_noted(
    host: Host, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_loader: FakeLoader, host: Host, _plan: TrialPlan) -> None:
        assert noted_entry(host) == "fake"
        raise KeyboardInterrupt

    plan = planned(host)
    monkeypatch.setattr(FakeLoader, "write", write)
    assert entry_loader(host) is None
    with pytest.raises(KeyboardInterrupt):
        write_entry(host, plan)
    assert entry_loader(host) is loader


def test_the_note_goes_when_all_the_rest_is_done(host: Host, loader: FakeLoader) -> None:
    def interrupted(host: Host) -> None:
        assert EntryKind.TRIAL not in loader.entries
        assert noted_entry(host) == "fake"
        raise KeyboardInterrupt

    plan = planned(host)
    write_entry(host, plan)
    select_entry(host, plan, ignore_unlocking=False)
    assert loader.is_armed
    with pytest.raises(KeyboardInterrupt):
        remove_entry(host, loader, before_forgetting=interrupted)
    assert not loader.is_armed
    assert noted_entry(host) == "fake"
    assert not remove_entry(host, loader)
    assert noted_entry(host) is None


def test_an_entry_that_cannot_be_removed_stays_noted(host: Host, loader: FakeLoader) -> None:
    write_entry(host, planned(host))
    loader.unremovable = UnsafeError("it is read-only")
    with pytest.raises(UnsafeError):
        remove_entry(host, loader)
    assert noted_entry(host) == "fake"


@pytest.mark.parametrize("kind", RefusalKind)
@pytest.mark.parametrize("ignore", [False, True])
def test_what_may_be_overridden_is_only_where_the_user_says_so(
    host: Host, loader: FakeLoader, kind: RefusalKind, *, ignore: bool
) -> None:
    loader.against = (Refusal(kind=kind, reason="it is so", remedy="change it"),)
    plan = planned(host)
    write_entry(host, plan)
    if ignore and kind.may_be_overridden:
        select_entry(host, plan, ignore_unlocking=True)
    else:
        with pytest.raises(AssertionError):  # the fake's word for a refusal
            select_entry(host, plan, ignore_unlocking=ignore)
    assert loader.is_armed is (ignore and kind.may_be_overridden)
