"""A file's content is replaced; everything else about it stays."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.host.replace import replace_file

if TYPE_CHECKING:
    from pathlib import Path


def test_owner_mode_and_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    group = next((g for g in os.getgroups() if g != os.getegid()), os.getegid())
    os.chown(path, os.geteuid(), group)
    os.setxattr(path, "user.kept", b"value")
    replace_file(path, b"new")
    status = path.stat()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert (status.st_uid, status.st_gid) == (os.geteuid(), group)
    assert os.getxattr(path, "user.kept") == b"value"


def test_a_file_that_was_not_there_is_made(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_what_others_share_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(UnsafeError, match="symbolic link"):
        replace_file(tmp_path / "link", b"new")
    (tmp_path / "hard").hardlink_to(path)
    with pytest.raises(UnsafeError, match="2 names"):
        replace_file(path, b"new")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnsafeError, match="no ordinary file"):
        replace_file(tmp_path / "pipe", b"new")
    assert path.read_bytes() == b"old"


def test_attributes_that_cannot_be_kept_leave_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.setxattr(path, "user.kept", b"value")

    def refuse(*args: object) -> None:
        raise OSError(28, "No space left on device", args[0])

    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(InitadvisorError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_is_not_permitted_to_root_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse(source: str, target: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(source), None, str(target))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(InitadvisorError, match=f"cannot write {path}: Oper") as caught:
        replace_file(path, b"new")
    assert not isinstance(caught.value, NeedsRootError)
    assert f"lsattr -d {path} " in str(caught.value.hint)
    assert path.read_bytes() == b"old"
