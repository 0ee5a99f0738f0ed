"""Names that a power cut left beside a loader's files: cleared, and nobody's clusters with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders import managed_files
from initadvisor.bootloaders.managed_files import clear_unfinished
from tests.fixtures.owners import OWNER

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PREFIX = f".partial-initadvisor-{OWNER}-"
LEFT = f"{PREFIX}abcdefgh"


class Clusters:
    """Which names lead to the same ones, as on FAT: where hard links lead to one file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.removed: list[str] = []
        monkeypatch.setattr(managed_files, "share_clusters", self.share)
        monkeypatch.setattr(managed_files, "remove_durably", self.remove)

    def share(self, one: Path, other: Path) -> bool:
        return one.samefile(other)

    def remove(self, path: Path) -> None:
        assert path.stat().st_nlink == 1, "somebody else's clusters were freed"
        self.removed.append(path.name)
        path.unlink()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_was_left_goes_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / LEFT).write_bytes(b"half")
    others = ["a.conf", ".partial-somebodys", "initadvisor"]
    for name in others:
        (tmp_path / name).write_bytes(b"half")
    clear_unfinished(tmp_path, prefix=PREFIX)
    assert names(tmp_path) == sorted(others)


def test_where_there_is_no_such_directory_there_is_nothing_to_do(tmp_path: Path) -> None:
    clear_unfinished(tmp_path / "none", prefix=PREFIX)


def test_a_file_with_the_same_clusters_gets_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = Clusters(monkeypatch)
    entry, left = tmp_path / "a.conf", tmp_path / LEFT
    entry.write_bytes(b"an entry")
    left.hardlink_to(entry)
    for _ in range(2):
        clear_unfinished(tmp_path, prefix=PREFIX)
        assert entry.read_bytes() == b"an entry"
        assert entry.stat().st_nlink == 1
        assert not clusters.removed
        # Two names that share what nobody needs have to stay.
        assert len(names(tmp_path)) == 3
        assert left.stat().st_nlink == 2


def test_what_had_to_stay_goes_once_the_file_system_was_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, left = tmp_path / "a.conf", tmp_path / LEFT
    entry.write_bytes(b"an entry")
    left.hardlink_to(entry)
    clusters = Clusters(monkeypatch)
    clear_unfinished(tmp_path, prefix=PREFIX)
    left.unlink()
    left.touch()  # which is how fsck.fat parts two files
    clear_unfinished(tmp_path, prefix=PREFIX)
    assert names(tmp_path) == ["a.conf"]
    assert len(clusters.removed) == 2
