"""Renames overwrite nothing, also where the kernel has no such renames."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import renames

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two files."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    return one, other


def fail(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Have renameat2(2) fail."""

    def renameat2(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(renames, "renameat2", renameat2)


def test_names_are_exchanged(pair: tuple[Path, Path]) -> None:
    one, other = pair
    assert renames.exchange(one, other)
    assert (one.read_bytes(), other.read_bytes()) == (b"2", b"1")
    with pytest.raises(FileNotFoundError):
        renames.exchange(one, one.with_name("none"))


@pytest.mark.parametrize("code", [0, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_name_that_is_taken_stays(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    one, other = pair
    if code:
        fail(monkeypatch, code)
        assert not renames.exchange(one, other)
    with pytest.raises(FileExistsError):
        renames.rename_to_free(one, other)
    assert (one.read_bytes(), other.read_bytes()) == (b"1", b"2")
    other.unlink()
    renames.rename_to_free(one, other)
    assert other.read_bytes() == b"1"
    assert not one.exists()


def test_what_fails_for_another_reason_is_not_tried_otherwise(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        renames.exchange(*pair)
    with pytest.raises(OSError, match="Input/output"):
        renames.rename_to_free(*pair)


def test_what_is_in_the_way_gets_a_name_that_nothing_has(pair: tuple[Path, Path]) -> None:
    one, other = pair
    one.with_name("other.aside-1").write_bytes(b"3")
    assert renames.quarantine_file(one, beside=other).name == "other.aside-2"
    assert renames.quarantine_file(other).name == "other.aside-3"
