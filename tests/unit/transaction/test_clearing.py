"""Two names with the same clusters are parted before either is removed; a file never loses its own.

Copies on an ordinary file system play the two names; which of them share is written down here.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host, renames, shared_clusters
from initadvisor.transaction import clearing, files
from initadvisor.transaction.log import own_transactions, write_transaction
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole, Transaction, TransactionState
from initadvisor.transaction.transactions import Transactions, transactions
from tests.fixtures.owners import OWNER, identify

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "/boot/initrd.img"
OLD, NEW = b"old image" * 5000, b"new image" * 4000


class Fat:
    """Knows which names lead to the same clusters; what is removed frees them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clusters: dict[str, int] = {}
        monkeypatch.setattr(clearing, "share_clusters", self.share)
        monkeypatch.setattr(clearing, "exchange", self.exchange)
        monkeypatch.setattr(files, "has_links", lambda _host, _directory: False)
        self.can_exchange = True

        def no_links(*_args: object, **_named: object) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", no_links)

    def join(self, *paths: Path) -> None:
        """Have names share clusters."""
        for path in paths:
            self.clusters[str(path)] = 1

    def share(self, one: Path, other: Path) -> bool:
        """Tell whether they do, as far as both are there and not empty."""
        if not (one.exists() and other.exists()) or not (
            one.stat().st_size and other.stat().st_size
        ):
            return False
        mine = self.clusters.get(str(one))
        return mine is not None and mine == self.clusters.get(str(other))

    def exchange(self, one: Path, other: Path) -> bool:
        """Exchange names, and what they lead to."""
        if not self.can_exchange:
            return False
        assert renames.exchange(one, other)
        mine, its = (self.clusters.pop(str(path), 0) for path in (one, other))
        self.clusters |= {str(other): mine, str(one): its}
        self.clusters = {path: number for path, number in self.clusters.items() if number}
        return True


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine with an image."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    machine = Host(root=tmp_path / "root")
    identify(machine.root)
    machine.path("/boot").mkdir(parents=True)
    machine.path("/proc/self").mkdir(parents=True)
    machine.path("/proc/self/mountinfo").write_text("22 1 8:1 / / rw - vfat /dev/sda1 rw\n")
    machine.path(IMAGE).write_bytes(OLD)
    return machine


@pytest.fixture
def fat(monkeypatch: pytest.MonkeyPatch) -> Fat:
    """Return the file system that /boot is on."""
    return Fat(monkeypatch)


def ours(host: Host) -> list[str]:
    """Return the names of ours beside the image."""
    return sorted(path.name for path in host.path("/boot").glob(".initadvisor*"))


def interrupted(host: Host, engine: Transactions, state: TransactionState) -> Transaction:
    """Return a transaction that was cut while it replaced the image, or gave it back."""
    replacement = Replacement(path=IMAGE, role=FileRole.IMAGE, new=NEW)
    begun = engine.verify(engine.begin([replacement], purpose="test"))
    change = begun.files[0]
    files.back_up(host, change)
    found = Transaction(
        number=begun.number, state=state, purpose="test", began_at_s=0, files=begun.files
    )
    write_transaction(host, found)
    return found


def test_a_commit_that_was_cut_in_the_rename_is_finished(host: Host, fat: Fat) -> None:
    with transactions(host) as engine:
        cut = interrupted(host, engine, TransactionState.COMMITTING)
        image, staged = host.path(IMAGE), host.path(cut.files[0].staged)
        image.write_bytes(NEW)
        fat.join(image, staged)
        (done,) = engine.recover()
    assert done.state is TransactionState.COMMITTED
    assert image.read_bytes() == NEW
    assert not any(fat.share(image, host.path(f"/boot/{name}")) for name in ours(host))
    # Neither of the two that share what nobody needs was removed: that would free it twice.
    assert ours(host) == [
        f".initadvisor-{OWNER}-1-0.new",
        f".initadvisor-{OWNER}-1-0.old",
        f".initadvisor-{OWNER}-1-0.twin0",
    ]
    assert fat.share(staged, host.path(f"/boot/.initadvisor-{OWNER}-1-0.twin0"))


def test_what_had_to_stay_goes_once_the_file_system_was_repaired(host: Host, fat: Fat) -> None:
    with transactions(host) as engine:
        cut = interrupted(host, engine, TransactionState.COMMITTING)
        host.path(IMAGE).write_bytes(NEW)
        fat.join(host.path(IMAGE), host.path(cut.files[0].staged))
        engine.recover()
        assert engine.prune() == ()
        assert len(own_transactions(host)) == 1
        host.path(f"/boot/.initadvisor-{OWNER}-1-0.twin0").write_bytes(b"")  # as fsck.fat leaves it
        engine.recover()
        assert ours(host) == []
        assert len(engine.prune()) == 1
    assert host.path(IMAGE).read_bytes() == NEW


def test_a_rollback_that_was_cut_in_the_rename_is_finished(host: Host, fat: Fat) -> None:
    with transactions(host) as engine:
        cut = interrupted(host, engine, TransactionState.ROLLING_BACK)
        image, backup = host.path(IMAGE), host.path(str(cut.files[0].backup))
        fat.join(image, backup)
        (done,) = engine.recover()
    assert done.state is TransactionState.UNDONE
    assert image.read_bytes() == OLD
    assert ours(host) == [f".initadvisor-{OWNER}-1-0.old", f".initadvisor-{OWNER}-1-0.twin0"]
    assert not fat.share(image, backup)


def test_without_a_kernel_that_swaps_nothing_is_removed(host: Host, fat: Fat) -> None:
    fat.can_exchange = False
    with transactions(host) as engine:
        cut = interrupted(host, engine, TransactionState.COMMITTING)
        host.path(IMAGE).write_bytes(NEW)
        fat.join(host.path(IMAGE), host.path(cut.files[0].staged))
        before = ours(host)
        with pytest.raises(InitadvisorError, match="cannot exchange names"):
            engine.recover()
    assert ours(host) == before
    assert own_transactions(host)[0].state is TransactionState.COMMITTING


def test_without_room_for_a_copy_nothing_is_removed(
    host: Host, fat: Fat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with transactions(host) as engine:
        cut = interrupted(host, engine, TransactionState.COMMITTING)
        host.path(IMAGE).write_bytes(NEW)
        fat.join(host.path(IMAGE), host.path(cut.files[0].staged))
        before = ours(host)
        monkeypatch.setattr(files, "copy_of", full)
        with pytest.raises(InitadvisorError, match="No space left"):
            engine.recover()
    assert ours(host) == before
    assert host.path(IMAGE).read_bytes() == NEW


@pytest.mark.parametrize(
    ("state", "after"), [(TransactionState.COMMITTING, NEW), (TransactionState.ROLLING_BACK, OLD)]
)
def test_an_image_that_fsck_has_emptied_is_made_whole(
    host: Host, fat: Fat, state: TransactionState, after: bytes
) -> None:
    del fat
    with transactions(host) as engine:
        interrupted(host, engine, state)
        host.path(IMAGE).write_bytes(b"")
        engine.recover()
    assert host.path(IMAGE).read_bytes() == after


def test_files_of_their_own_share_nothing(tmp_path: Path) -> None:
    one, other, link = (tmp_path / name for name in ("one", "other", "link"))
    one.write_bytes(OLD)
    other.write_bytes(OLD)
    link.hardlink_to(one)
    assert not shared_clusters.share_clusters(one, other)
    assert not shared_clusters.share_clusters(one, link)
    assert not shared_clusters.share_clusters(one, tmp_path / "none")
