"""Small text files of the machine, and what only looks like one."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

from initadvisor.host import Host

if TYPE_CHECKING:
    from pathlib import Path


def test_bytes_that_are_no_text_are_replaced_and_lines_end_alike(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"layout=\xff\r\nmore\r\n")
    assert Host(root=tmp_path).read_text("/there") == "layout=\ufffd\nmore\n"


def test_what_is_no_file_is_neither_waited_for_nor_read_without_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    host = Host(root=tmp_path)
    assert [host.read_text(name) for name in ("/pipe", "/endless")] == ["", ""]


def test_a_file_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    assert Host(root=tmp_path).read_text("/large") is None


def test_what_the_kernel_tells_in_files_of_no_size_is_read() -> None:
    boot_id = Host().read_text("/proc/sys/kernel/random/boot_id")
    assert boot_id is not None
    assert uuid.UUID(boot_id.strip()).int
    assert "Name:" in (Host().read_text("/proc/self/status") or "")


def test_what_is_not_there_or_no_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    host = Host(root=tmp_path)
    assert host.read_text("/none") is None
    assert host.read_text("/directory") is None
