"""One boot's entry is noted before it is there, and the note is the last of it to go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import EntryKind, TrialPlan
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Restart
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
from tests.fixtures.small_images import GUARD_FILES, guarded_image

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


def planned(host: Host, *, attended: bool = True) -> TrialPlan:
    """Plan an entry with the new image."""
    return plan_entry(
        host,
        loader="fake",
        trial="apply-1-0",
        replaces=IMAGE,
        image=NEW,
        generator="dracut",
        lacking=frozenset(Restart if attended else {Restart.WATCHDOG}),
    )


def test_no_two_boots_have_a_name() -> None:
    assert len({new_name("trial", 1) for _ in range(100)}) == 100


@pytest.mark.parametrize("identity", ["iTCO_wdt", "Software Watchdog"])
def test_a_watchdog_of_the_hardware_is_used(host: Host, loader: FakeLoader, identity: str) -> None:
    assert loader.entries == {}
    path = host.path("/sys/class/watchdog/watchdog0/identity")
    path.parent.mkdir(parents=True)
    path.write_text(f"{identity}\n")
    words = planned(host).extra_cmdline
    assert ("systemd.watchdog_sec=600" in words) is (identity == "iTCO_wdt")
    assert "initadvisor.trial=apply-1-0" in words


def test_an_image_that_can_guard_its_boot_does(host: Host, loader: FakeLoader) -> None:
    assert loader.entries == {}
    assert "rdinit=/bin/sh" not in planned(host).extra_cmdline
    host.path(NEW).write_bytes(guarded_image(8, codec=Codec.ZSTD))
    assert planned(host, attended=False).extra_cmdline[-4:-1] == ("rdinit=/bin/sh", "--", "-c")


@pytest.mark.parametrize("lacking", ["init", "bin/sh", "bin/sleep", "bin/mount", ""])
def test_what_may_wait_for_a_person_is_planned_for_one_who_is_there_only(
    host: Host, loader: FakeLoader, lacking: str
) -> None:
    files = [name for name in GUARD_FILES if name != lacking]
    host.path(NEW).write_bytes(guarded_image(8, codec=Codec.ZSTD, files=files))
    if not lacking:
        loader.options = "root=/dev/sda1 rdinit=/mine"
    with pytest.raises(UnsafeError, match="may wait for a person"):
        planned(host, attended=False)
    assert "rdinit=/bin/sh" not in planned(host).extra_cmdline


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
