"""Whatever else a file is - whose, readable by whom, a link - it stays that, or is refused."""

from __future__ import annotations

import errno
import os
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import UnsafeError
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transaction import TransactionState
from initadvisor.transaction.transactions import pending, transactions
from tests.faults.machine import CONFIGURATION, NEW, OLD, Machine
from tests.faults.runs import Run, perform

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = "/boot/initrd.img"
FILES = (IMAGE, CONFIGURATION)
OWNER, GROUP = 4321, 8765
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def acl(named_user_may: int) -> bytes:
    """Return an ACL as the kernel has it (linux/posix_acl_xattr.h): one more user may read."""
    no_id, user = 0xFFFFFFFF, 1234
    entries = (
        (0x01, 6, no_id),  # the owner
        (0x02, named_user_may, user),
        (0x04, 4, no_id),  # the group
        (0x10, 6, no_id),  # the mask
        (0x20, 0, no_id),  # others
    )
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine with one file system."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    made = Machine(root=tmp_path, esp=False)
    made.install()
    return made


def everything_about(path: Path) -> tuple[int, int, int, dict[str, bytes]]:
    """Return owner, group, mode, and all attributes, which ACLs are, too."""
    status = path.stat()
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), attributes


def make_odd(path: Path) -> None:
    """Give a file all that a file may have; another owner, if this user may do that."""
    if os.geteuid() == 0:
        os.chown(path, OWNER, GROUP)
    path.chmod(0o4604)
    os.setxattr(path, "user.odd", b"\0value")
    os.setxattr(path, ACCESS, acl(4))


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
def test_owner_mode_acls_and_attributes_stay_both_ways(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    paths = [machine.host.path(path) for path in FILES]
    for path in paths:
        make_odd(path)
    before = [everything_about(path) for path in paths]
    assert all(ACCESS in attributes for *_, attributes in before)
    perform(machine.host, Run.APPLY)
    assert [machine.host.path(path).read_bytes() for path in FILES] == [NEW[p] for p in FILES]
    assert [everything_about(path) for path in paths] == before
    perform(machine.host, Run.UNDO)
    assert [machine.host.path(path).read_bytes() for path in FILES] == [OLD[p] for p in FILES]
    assert [everything_about(path) for path in paths] == before


def test_what_is_new_is_synced_after_the_directory_that_it_is_in(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other order a power cut left FAT names whose clusters were free."""
    synced: list[Path] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        real_fsync(descriptor)

    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", no_links)
    perform(machine.host, Run.APPLY)
    new = [path for path in dict.fromkeys(synced) if path.suffix in {".new", ".old"}]
    (transaction,) = read_transactions(machine.host)
    names = {file.staged for file in transaction.files}
    names |= {file.backup for file in transaction.files if file.backup and file.before}
    assert {*new} == {machine.host.path(name) for name in names}
    for path in new:
        assert synced[synced.index(path) - 1] == path.parent


def test_an_acl_that_a_directory_gives_to_new_files_lets_nobody_read_an_image(
    machine: Machine,
) -> None:
    image = machine.host.path(IMAGE)
    image.chmod(0o600)
    os.setxattr(image.parent, DEFAULT, acl(6))
    perform(machine.host, Run.APPLY)
    assert everything_about(image)[2:] == (0o600, {})
    perform(machine.host, Run.UNDO)
    assert everything_about(image)[2:] == (0o600, {})


def test_a_staged_image_is_readable_by_no_more_users_than_the_one_that_it_replaces(
    machine: Machine,
) -> None:
    machine.host.path(IMAGE).chmod(0o600)
    perform(machine.host, Run.PROVE)
    [waiting] = pending(machine.host)
    [staged] = [change.staged for change in waiting.files if change.path == IMAGE]
    assert stat.S_IMODE(machine.host.path(staged).stat().st_mode) == 0o600


def symbolic(path: Path) -> None:
    """Have the file be elsewhere, and its name a symbolic link."""
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def hard(path: Path) -> None:
    """Have the file be known by a second name, too."""
    path.with_name("elsewhere").hardlink_to(path)


def pipe(path: Path) -> None:
    """Have a pipe in the place of the file, which nobody writes into."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize(
    ("change", "words"),
    [(symbolic, "symbolic link"), (hard, "2 names"), (pipe, "no ordinary file")],
)
def test_what_is_not_one_ordinary_file_is_refused_before_anything_is_written(
    machine: Machine, path: str, change: Callable[[Path], None], words: str
) -> None:
    change(machine.host.path(path))
    before = sorted(machine.files())
    with pytest.raises(UnsafeError, match=f"not replacing .*{path}: it .*{words}"):
        perform(machine.host, Run.APPLY)
    assert [path for path in sorted(machine.files()) if path.parent.name != "locks"] == before


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("change", [symbolic, hard])
def test_what_becomes_a_link_before_it_is_replaced_is_left(
    machine: Machine, path: str, change: Callable[[Path], None]
) -> None:
    perform(machine.host, Run.PROVE)
    change(machine.host.path(path))
    with pytest.raises(UnsafeError, match=f"not replacing .*{path}: it"):
        perform(machine.host, Run.SETTLE)
    [undone] = read_transactions(machine.host)
    assert undone.state is TransactionState.UNDONE
    assert machine.host.path(path).is_symlink() is (change is symbolic)
    assert {name: machine.host.path(name).read_bytes() for name in OLD} == OLD
    assert not list(machine.root.rglob(".initadvisor*"))


@pytest.mark.parametrize("path", FILES)
def test_what_somebody_else_has_replaced_is_theirs(machine: Machine, path: str) -> None:
    perform(machine.host, Run.PROVE)
    beside = machine.host.path(path).with_name("beside")
    beside.write_bytes(b"theirs")
    beside.rename(machine.host.path(path))
    with pytest.raises(UnsafeError, match=f"{path}: it was changed meanwhile"):
        perform(machine.host, Run.SETTLE)
    [undone] = read_transactions(machine.host)
    assert (undone.state, undone.left) == (TransactionState.UNDONE, (path,))
    held = {name: machine.host.path(name).read_bytes() for name in OLD}
    assert held == {**OLD, path: b"theirs"}
    assert not list(machine.root.rglob(".initadvisor*"))


def test_what_somebody_else_has_replaced_since_keeps_all_from_being_undone(
    machine: Machine,
) -> None:
    perform(machine.host, Run.APPLY)
    machine.host.path(IMAGE).write_bytes(b"theirs")
    with transactions(machine.host) as engine, pytest.raises(UnsafeError, match="changed meanwh"):
        engine.undo(read_transactions(machine.host)[0], reason="test")
    assert machine.host.path(IMAGE).read_bytes() == b"theirs"
    assert machine.host.path(CONFIGURATION).read_bytes() == NEW[CONFIGURATION]
