"""The trial slot: whole and read back, or empty; and nothing else is ever removed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import IO, TYPE_CHECKING

import pytest

from initadvisor.campaign.campaign import TrialCandidate
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host import Host
from initadvisor.host.files import sha256_of
from initadvisor.trial import slot
from initadvisor.trial.slot import UnfitError, clear_slot, fill_slot, slot_beside, slot_fault
from tests.fixtures.owners import OWNER, identify

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = b"an image" * 9000
SLOT = f"/boot/.initadvisor-{OWNER}-trial"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with a boot partition."""
    (tmp_path / "boot").mkdir()
    identify(tmp_path)
    (tmp_path / "boot/initrd.img").write_bytes(b"today's")
    return Host(root=tmp_path)


@pytest.fixture
def candidate(tmp_path: Path) -> TrialCandidate:
    """A candidate in the cache."""
    path = tmp_path / "candidate.img"
    path.write_bytes(IMAGE)
    digest = hashlib.sha256(IMAGE).hexdigest()
    return TrialCandidate(setting="lz4", path=str(path), sha256=digest, size_bytes=len(IMAGE))


def names(host: Host) -> list[str]:
    return sorted(path.name for path in host.path("/boot").iterdir())


def test_it_is_beside_the_default_image(host: Host) -> None:
    assert slot_beside(host, "/boot/initrd.img") == SLOT
    assert slot_beside(host, "/efi/abc/6.1/initrd") == f"/efi/abc/6.1/.initadvisor-{OWNER}-trial"


def test_it_holds_a_copy_that_nobody_else_may_read(host: Host, candidate: TrialCandidate) -> None:
    fill_slot(host, SLOT, candidate)
    assert host.path(SLOT).read_bytes() == IMAGE
    assert host.path(SLOT).stat().st_mode & 0o777 == 0o600
    inode = host.path(SLOT).stat().st_ino
    fill_slot(host, SLOT, candidate)
    assert host.path(SLOT).stat().st_ino == inode
    assert names(host) == [f".initadvisor-{OWNER}-trial", "initrd.img"]


@pytest.mark.parametrize("left", [b"", IMAGE[:100], b"another"])
def test_what_lies_there_is_replaced(host: Host, candidate: TrialCandidate, left: bytes) -> None:
    host.path(SLOT).write_bytes(left)
    fill_slot(host, SLOT, candidate)
    assert host.path(SLOT).read_bytes() == IMAGE
    assert names(host) == [f".initadvisor-{OWNER}-trial", "initrd.img"]


def test_a_link_that_lies_there_is_not_followed(host: Host, candidate: TrialCandidate) -> None:
    host.path(SLOT).symlink_to("initrd.img")
    fill_slot(host, SLOT, candidate)
    assert not host.path(SLOT).is_symlink()
    assert host.path("/boot/initrd.img").read_bytes() == b"today's"


def test_a_directory_that_has_its_name_is_nobody_s_but_the_user_s(
    host: Host, candidate: TrialCandidate
) -> None:
    host.path(SLOT).mkdir()
    with pytest.raises(UnsafeError, match="it is a directory") as raised:
        fill_slot(host, SLOT, candidate)
    assert raised.value.hint == "move it away"
    clear_slot(host, SLOT)
    assert host.path(SLOT).is_dir()


def test_what_became_of_an_armed_image_is_said(
    host: Host, candidate: TrialCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_slot(host, SLOT, candidate)
    assert slot_fault(host, SLOT, candidate.sha256) == ""
    path = host.path(SLOT)
    path.write_bytes(IMAGE[:-1] + b"!")
    assert slot_fault(host, SLOT, candidate.sha256) == f"{path} was changed after it was armed"
    with monkeypatch.context() as patched:
        patched.setattr(slot, "sha256_of", broken)
        said = slot_fault(host, SLOT, candidate.sha256)
    assert said == f"{path} cannot be read any more: [Errno 5] broken"
    path.unlink()
    assert slot_fault(host, SLOT, candidate.sha256) == f"{path} was removed after it was armed"


def test_what_lies_there_and_cannot_be_read_is_replaced(
    host: Host, candidate: TrialCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.path(SLOT).write_bytes(b"on a bad sector")

    def once(*_arguments: object, **_named: object) -> str:
        monkeypatch.setattr(slot, "sha256_of", sha256_of)
        return broken()

    monkeypatch.setattr(slot, "sha256_of", once)
    fill_slot(host, SLOT, candidate)
    assert host.path(SLOT).read_bytes() == IMAGE


def broken(*_arguments: object, **_named: object) -> str:
    raise OSError(errno.EIO, "broken")


@pytest.mark.parametrize("room", [0, len(IMAGE)])
def test_room_is_looked_for_before_anything_is_written(
    host: Host, candidate: TrialCandidate, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(slot, "free_bytes", lambda _path: room)
    with pytest.raises(UnfitError, match="has no room for it"):
        fill_slot(host, SLOT, candidate)
    assert names(host) == ["initrd.img"]


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, UnfitError), (errno.EIO, InitadvisorError)]
)
def test_an_error_while_it_is_written_leaves_it_empty(
    host: Host,
    candidate: TrialCandidate,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[InitadvisorError],
) -> None:
    def fail(file: IO[bytes], _source: object, **_range: int) -> None:
        file.write(IMAGE[:100])
        raise OSError(number, "broken")

    monkeypatch.setattr(slot, "append_range", fail)
    with pytest.raises(kind, match="cannot copy lz4") as raised:
        fill_slot(host, SLOT, candidate)
    assert type(raised.value) is kind
    assert names(host) == ["initrd.img"]


def test_what_is_read_back_has_to_be_what_was_verified(
    host: Host, candidate: TrialCandidate, tmp_path: Path
) -> None:
    (tmp_path / "candidate.img").write_bytes(IMAGE[:-1] + b"!")
    with pytest.raises(UnfitError, match="not what was verified"):
        fill_slot(host, SLOT, candidate)
    assert names(host) == ["initrd.img"]


def test_a_candidate_that_is_gone_leaves_it_empty(
    host: Host, candidate: TrialCandidate, tmp_path: Path
) -> None:
    (tmp_path / "candidate.img").unlink()
    with pytest.raises(InitadvisorError):
        fill_slot(host, SLOT, candidate)
    assert names(host) == ["initrd.img"]


def test_an_interrupted_copy_leaves_it_empty(
    host: Host, candidate: TrialCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slot, "sync_directory", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fill_slot(host, SLOT, candidate)
    assert names(host) == ["initrd.img"]


def test_clusters_are_taken_before_the_file_has_them(
    host: Host, candidate: TrialCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other order a power cut left FAT a name whose clusters were free."""
    events: list[str] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        events.append("directory" if is_directory else "file")
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    fill_slot(host, SLOT, candidate)
    assert events == ["directory", "file", "directory"]


def test_nothing_but_the_slot_is_cleared(host: Host) -> None:
    with pytest.raises(UnsafeError, match="no trial slot"):
        clear_slot(host, "/boot/initrd.img")
    clear_slot(host, SLOT)
    host.path(SLOT).write_bytes(b"half")
    clear_slot(host, SLOT)
    assert names(host) == ["initrd.img"]
