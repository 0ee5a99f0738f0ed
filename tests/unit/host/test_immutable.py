"""What an attribute forbids is told with the file and the way out, also to root."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.host.replace import file_error, forbidding_attribute, hint_for, require_changeable

if TYPE_CHECKING:
    from pathlib import Path

_EXTENTS = 0x80000  # FS_EXTENT_FL, which ext4 gives to every file


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file."""
    path = tmp_path / "initrd.img"
    path.write_bytes(b"image")
    return path


def give(monkeypatch: pytest.MonkeyPatch, path: Path, flags: int) -> None:
    """Have a file system that says so of a file, and of others that they have no such flags."""
    inode = path.stat().st_ino

    def ioctl(descriptor: int, request: int, argument: bytes) -> bytes:
        assert request & 0xFFFF == 0x6601
        assert len(argument) == struct.calcsize("l")
        found = flags if os.fstat(descriptor).st_ino == inode else 0
        return struct.pack("I", found | _EXTENTS).ljust(len(argument), b"\0")

    monkeypatch.setattr(fcntl, "ioctl", ioctl)


@pytest.mark.parametrize(("flags", "letter"), [(0x10, "i"), (0x20, "a"), (0x30, "i"), (0, "")])
def test_the_attribute_is_named(
    image: Path, monkeypatch: pytest.MonkeyPatch, flags: int, letter: str
) -> None:
    give(monkeypatch, image, flags)
    assert forbidding_attribute(image) == letter
    if not letter:
        require_changeable(image)
        return
    with pytest.raises(UnsafeError, match=f"cannot change {image}: {image} is ") as caught:
        require_changeable(image)
    assert caught.value.hint == f"chattr -{letter} {image} ends that"


def test_a_directory_forbids_it_for_all_that_is_in_it(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, image.parent, 0x10)
    for path in (image, image.with_name("not-there-yet")):
        with pytest.raises(UnsafeError, match=f"{image.parent} is immutable"):
            require_changeable(path)


def test_what_has_no_attributes_is_free(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ioctl(*_args: object) -> bytes:
        raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    require_changeable(image)
    pipe = image.with_name("pipe")
    os.mkfifo(pipe)
    assert forbidding_attribute(pipe) == ""
    assert forbidding_attribute(image.with_name("gone")) == ""


def test_of_a_rename_it_is_the_file_that_is_replaced(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = image.with_name("new")
    err = OSError(errno.EPERM, os.strerror(errno.EPERM), str(new), None, str(image))
    hint = hint_for(err)
    assert hint is not None
    assert hint.startswith(f"lsattr -d {image} {new} {image.parent} shows what is immutable")
    assert "chattr -i" in hint
    give(monkeypatch, image, 0x10)
    assert hint_for(err) == (
        f"{image} is immutable, as lsattr -d shows; chattr -i {image} ends that"
    )


def test_an_error_without_a_name_has_a_hint_all_the_same() -> None:
    hint = hint_for(OSError(errno.EPERM, "Operation not permitted"))
    assert hint is not None
    assert hint.startswith("lsattr -d shows what is immutable")


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_other_errors_have_nothing_to_do_with_it(error: int) -> None:
    assert hint_for(OSError(error, os.strerror(error), "/boot/initrd.img")) is None


def test_root_is_not_told_to_be_root(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    err = OSError(errno.EPERM, os.strerror(errno.EPERM), str(image))
    found = file_error(err, f"cannot write {image}")
    assert type(found) is InitadvisorError
    assert found.message == f"cannot write {image}: Operation not permitted"
    assert found.hint is not None
    assert str(image) in found.hint
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert type(file_error(err, "cannot write")) is NeedsRootError
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert type(file_error(full, "cannot write")) is InitadvisorError
