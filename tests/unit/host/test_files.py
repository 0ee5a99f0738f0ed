"""Files appear whole or not at all; only ordinary files are read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import stat
from pathlib import Path

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host.files import (
    append_range,
    free_bytes,
    make_directory,
    open_regular,
    remove_durably,
    remove_partial,
    remove_tree_durably,
    sha256_of,
    whole_file,
)


def names(directory: Path) -> list[str]:
    """Return what is in a directory."""
    return sorted(path.name for path in directory.iterdir())


def write_half(path: Path, error: type[BaseException]) -> None:
    """Raise in the middle of writing."""
    with whole_file(path) as file:
        file.write(b"half of the n")
        raise error


def test_a_whole_file_has_its_content_and_mode(tmp_path: Path) -> None:
    with whole_file(tmp_path / "image", mode=0o600) as file:
        file.write(b"content")
    assert (tmp_path / "image").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "image").stat().st_mode) == 0o600
    assert names(tmp_path) == ["image"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    (tmp_path / "image").write_bytes(b"old")
    with pytest.raises(error):
        write_half(tmp_path / "image", error)
    assert (tmp_path / "image").read_bytes() == b"old"
    assert names(tmp_path) == ["image"]


def test_nobody_sees_the_new_content_before_the_end(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"old")
    with whole_file(tmp_path / "image") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "image").read_bytes() == b"old"
    assert (tmp_path / "image").read_bytes() == b"new"


def test_a_full_disk_at_the_last_moment_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", descriptor)

    (tmp_path / "image").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"), whole_file(tmp_path / "image") as file:
        file.write(b"new")
    assert (tmp_path / "image").read_bytes() == b"old"
    assert names(tmp_path) == ["image"]


def test_the_old_file_is_kept_in_being_until_the_directory_was_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On vfat its clusters were freed before the new entry was sure to be there, and both lost."""
    path = tmp_path / "image"
    path.write_bytes(b"old")
    old = path.stat().st_ino
    held: list[bool] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            held.append(old in open_inodes())

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_file(path) as file:
        file.write(b"new")
    assert held == [False, True]  # before the rename its own name keeps it
    assert old not in open_inodes()
    assert path.read_bytes() == b"new"


def test_a_removed_file_is_kept_in_being_until_its_directory_was_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On FAT its clusters could be given up while a power cut still leaves the name."""
    path = tmp_path / "image"
    path.write_bytes(b"old")
    old = path.stat().st_ino
    held: list[tuple[bool, bool]] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        held.append((path.exists(), old in open_inodes()))

    monkeypatch.setattr(os, "fsync", fsync)
    remove_durably(path)
    assert held == [(False, True), (False, False)]
    assert old not in open_inodes()
    with pytest.raises(FileNotFoundError):
        remove_durably(path)


def test_what_is_removed_with_its_directory_is_kept_in_being_until_that_was_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "image.extra.d"
    paths = (directory / "addon", directory)
    directory.mkdir()
    paths[0].write_bytes(b"addon")
    (tmp_path / "link").symlink_to(directory)
    remove_tree_durably(tmp_path / "link")
    inodes = [path.stat().st_ino for path in paths]
    held: list[tuple[bool, bool]] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        at = len(held) // 2
        held.append((paths[at].exists(), inodes[at] in open_inodes() - {inodes[1 - at]}))

    monkeypatch.setattr(os, "fsync", fsync)
    remove_tree_durably(directory)
    assert held == [(False, True), (False, False)] * 2
    assert names(tmp_path) == []


def open_inodes() -> set[int]:
    """Return the inodes of the files this process has open."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.fstat(int(path.name)).st_ino)
    return found


def test_the_file_is_synced_again_after_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On vfat a file synced only before the rename was found empty after a power cut, and one that
    was synced before its directory had clusters that were free.
    """
    events: list[str] = []
    real_fsync, real_rename = os.fsync, Path.rename

    def fsync(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        events.append("sync directory" if is_directory else "sync file")
        real_fsync(descriptor)

    def rename(self: Path, target: Path) -> Path:
        events.append("rename")
        return real_rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    with whole_file(tmp_path / "image") as file:
        file.write(b"new")
    syncs = ["sync directory", "sync file"]
    assert events == [*syncs, "rename", *reversed(syncs)]


def test_remains_of_killed_runs_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".partial-file").write_bytes(b"x")
    (tmp_path / ".partial-directory").mkdir()
    (tmp_path / ".partial-directory" / "image").write_bytes(b"x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"x")
    (tmp_path / ".partial-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "image").write_bytes(b"x")
    remove_partial(tmp_path)
    assert names(tmp_path) == ["elsewhere", "image"]
    assert names(tmp_path / "elsewhere") == ["file"]


@pytest.mark.parametrize("kind", ["directory", "fifo", "device", "missing", "socket"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case _:
            assert not path.exists()
    with pytest.raises(InitadvisorError, match=str(path)):
        open_regular(path)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"content"


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_of_roots_is_for_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied", args[0])

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NeedsRootError, match="only root"):
        open_regular(tmp_path / "image")


def test_a_device_that_refuses_root_is_not_for_root_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(1, "Operation not permitted", args[0])

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(InitadvisorError, match="device: refused even to root") as raised:
        open_regular(tmp_path / "device")
    assert not isinstance(raised.value, NeedsRootError)
    assert "container" in (raised.value.hint or "")


def test_a_range_is_appended_without_moving_the_source(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(bytes(range(256)) * 100)
    with (tmp_path / "source").open("rb") as source, (tmp_path / "target").open("w+b") as target:
        source.seek(7)
        target.write(b"head")
        append_range(target, source, offset=10, size_bytes=300)
        target.write(b"tail")
        assert source.tell() == 7
    expected = b"head" + (bytes(range(256)) * 100)[10:310] + b"tail"
    assert (tmp_path / "target").read_bytes() == expected


def test_a_range_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"short")
    with (
        (tmp_path / "source").open("rb") as source,
        (tmp_path / "target").open("w+b") as target,
        pytest.raises(InitadvisorError, match="ended at byte 5"),
    ):
        append_range(target, source, offset=0, size_bytes=6)


@pytest.mark.parametrize(("offset", "size"), [(0, None), (5, None), (5, 7), (0, 0), (3 << 20, 1)])
def test_the_digest_is_that_of_the_range(tmp_path: Path, offset: int, size: int | None) -> None:
    content = random.Random(1).randbytes(3 << 20)
    (tmp_path / "file").write_bytes(content)
    end = None if size is None else offset + size
    with (tmp_path / "file").open("rb") as file:
        digest = sha256_of(file, offset=offset, size_bytes=size)
    assert digest == hashlib.sha256(content[offset:end]).hexdigest()


def test_a_directory_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InitadvisorError, match="cannot make the directory"):
        make_directory(tmp_path / "file" / "below")


def test_free_room_is_what_statvfs_says(tmp_path: Path) -> None:
    assert 0 < free_bytes(tmp_path) <= os.statvfs(tmp_path).f_bfree * os.statvfs(tmp_path).f_frsize
