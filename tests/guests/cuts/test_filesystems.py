"""Files get into file systems in images and out of them, or somebody says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.disk import FAT32_BYTES, MIB, FileSystem, format_ext4, format_vfat
from tests.vm.filesystems import WriteFailedError, read, write
from tests.vm.tools import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.filesystems import Ext4, Vfat

pytestmark = pytest.mark.vm


@pytest.fixture(params=list(FileSystem))
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Vfat | Ext4:
    """Return a new file system that does not start where its image does."""
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(FAT32_BYTES + 2 * MIB)
    if request.param is FileSystem.VFAT:
        return format_vfat(path, MIB, FAT32_BYTES)
    return format_ext4(path, MIB, FAT32_BYTES)


def test_what_is_written_is_read(files: Vfat | Ext4) -> None:
    write(files, "/one/two/A file with a long name.conf", "first")
    write(files, "/one/two/A file with a long name.conf", "second")
    write(files, "/one/three", b"\0" * 70_000)
    assert read(files, "/one/two/A file with a long name.conf") == b"second"
    assert read(files, "/one/three") == b"\0" * 70_000
    assert files.names("/one") == ["three", "two"]


def test_a_directory_is_fetched_with_all_below_it(files: Vfat | Ext4, tmp_path: Path) -> None:
    write(files, "/a/b/c", "content")
    files.fetch("/a", tmp_path / "copy")
    assert (tmp_path / "copy/b/c").read_text() == "content"


def test_what_is_not_there_is_not_found(files: Vfat | Ext4) -> None:
    with pytest.raises(FileNotFoundError):
        read(files, "/nothing")
    assert files.names("/nothing") == []


def test_what_does_not_fit_is_an_error(files: Vfat | Ext4) -> None:
    with pytest.raises((WriteFailedError, ToolError)):
        write(files, "/large", b"x" * (FAT32_BYTES + MIB))
