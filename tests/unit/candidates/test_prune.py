"""Candidates of images that are gone go, those of images that exist stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.build import Pruned, build_candidates, cached_candidates, prune
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import NeedsRootError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.target import source as source_module
from initadvisor.target.source import open_source
from tests.fakes.compressors import fake_compressors
from tests.fixtures.small_images import archive, write_image

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.records.built_image import BuiltImage

SETTINGS = [Setting(Codec.ZSTD), Setting(Codec.GZIP)]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with working compressors."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=fake_compressors())


def build(host: Host, name: str) -> tuple[Path, tuple[BuiltImage, ...]]:
    image = write_image(host.root / name, archive(seed=name.encode()))
    with open_source(image) as source:
        return image, build_candidates(host, unknown, source, SETTINGS).candidates


def kept(host: Host) -> set[str]:
    return {cached.candidate.path for cached in cached_candidates(host)}


@pytest.mark.parametrize("change", ["gone", "replaced", "directory"])
def test_candidates_of_an_image_that_is_gone_go(host: Host, change: str) -> None:
    image, old = build(host, "old")
    _, new = build(host, "new")
    image.unlink()
    if change == "replaced":
        write_image(image, archive())
    elif change == "directory":
        image.mkdir()
    pruned = prune(host)
    assert pruned == Pruned(removed=2, freed_bytes=sum(c.size_bytes for c in old))
    assert kept(host) == {candidate.path for candidate in new}
    names = {path.suffix for path in (host.cache_dir() / "candidates").iterdir()}
    assert names == {".img", ".json"}


def test_nothing_goes_while_all_images_are_there(host: Host) -> None:
    build(host, "one")
    assert prune(host) == Pruned(removed=0, freed_bytes=0)
    assert len(kept(host)) == 2


def test_all_go_when_asked(host: Host) -> None:
    build(host, "one")
    assert prune(host, everything=True).removed == 2
    assert kept(host) == set()


def test_an_image_that_may_not_be_read_is_taken_to_be_there(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(host, "one")

    def refuse(path: Path) -> None:
        msg = f"cannot read {path}: only root may"
        raise NeedsRootError(msg)

    monkeypatch.setattr(source_module, "open_regular", refuse)
    assert prune(host).removed == 0


def test_the_oldest_go_until_the_rest_fits_the_limit(host: Host) -> None:
    build(host, "first")
    _, second = build(host, "second")
    limit = sum(candidate.size_bytes for candidate in second)
    assert prune(host, limit_bytes=limit).removed == 2
    assert kept(host) == {candidate.path for candidate in second}


def test_without_a_cache_there_is_nothing_to_do(host: Host) -> None:
    assert prune(host) == Pruned(removed=0, freed_bytes=0)
    assert not host.cache_dir().exists()
