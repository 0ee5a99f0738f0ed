"""What is read once is read whole, and leaves the memory of others and its own as they were."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.host.files import direct_reads, open_regular, read_once, sha256_of
from initadvisor.host.storage.cold_read import drop_from_memory, resident_fraction

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT = random.Random(1).randbytes((3 << 20) + 4097)


@pytest.fixture
def path() -> Iterator[Path]:
    """Return a file on a disk; /tmp may be memory, where everything stays."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = Path(directory) / "file"
        path.write_bytes(CONTENT)
        yield path


@pytest.fixture(params=["", "set", "read"])
def refused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Be a file system that refuses direct reads, at once or only when it is to read."""
    real_fcntl, real_preadv = fcntl.fcntl, os.preadv

    def set_flags(descriptor: int, command: int, argument: int = 0) -> int:
        if argument & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return real_fcntl(descriptor, command, argument)

    def read(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if real_fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return real_preadv(descriptor, buffers, offset)

    if request.param == "set":
        monkeypatch.setattr(fcntl, "fcntl", set_flags)
    elif request.param == "read":
        monkeypatch.setattr(os, "preadv", read)
    return str(request.param)


@pytest.mark.parametrize(
    ("offset", "size"),
    [
        (0, None),
        (0, len(CONTENT)),
        (0, 0),
        (1, None),
        (4096, 4096),
        (4095, 2),
        (5000, 2_500_000),
        ((1 << 20) - 1, 2),
        (len(CONTENT) - 1, None),
        (len(CONTENT) - 1, 5),
        (len(CONTENT), None),
        (len(CONTENT) + 10_000, 1),
    ],
)
def test_a_range_is_read_whole_with_and_without_direct_reads(
    path: Path, refused: str, offset: int, size: int | None
) -> None:
    wanted = CONTENT[offset:] if size is None else CONTENT[offset : offset + size]
    with open_regular(path) as file:
        blocks = [bytes(block) for block in read_once(file, offset=offset, size_bytes=size)]
        digest = sha256_of(file, offset=offset, size_bytes=size, once=True)
        with direct_reads(file) as direct:
            assert direct is not bool(refused)
    assert b"".join(blocks) == wanted
    assert digest == hashlib.sha256(wanted).hexdigest()


def test_an_empty_file_has_nothing(path: Path) -> None:
    path.write_bytes(b"")
    with open_regular(path) as file:
        assert list(read_once(file)) == []


def test_what_is_read_once_does_not_stay_in_memory(path: Path) -> None:
    with open_regular(path) as file:
        drop_from_memory(file.fileno())
        sha256_of(file, once=True)
        assert resident_fraction(file) == 0.0
        sha256_of(file)
        assert resident_fraction(file) == 1.0


def test_what_somebody_has_in_memory_stays_there(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
        file.read()
        sha256_of(file, once=True)
        assert resident_fraction(file) == 1.0


def test_afterwards_the_file_is_as_it_was(path: Path) -> None:
    with open_regular(path) as file:
        file.seek(77)
        flags = fcntl.fcntl(file.fileno(), fcntl.F_GETFL)
        next(read_once(file, offset=3))
        assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) == flags
        assert file.tell() == 77
        assert file.read(10) == CONTENT[77:87]
