"""The image candidates are derived from, on its own or within a unified kernel image."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.build import build_candidates
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.target.source import is_current, open_source
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fixtures.small_images import archive, early_archive, uki, write_image

if TYPE_CHECKING:
    from initadvisor.records.built_image import BuiltImage


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def candidate_of(host: Host, image: Path, codec: Codec) -> BuiltImage:
    with open_source(image) as source:
        return build_candidates(host, unknown, source, [Setting(codec)]).candidates[0]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with working compressors."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=fake_compressors())


def test_an_ordinary_image_is_all_initramfs(tmp_path: Path) -> None:
    early = early_archive()
    path = write_image(tmp_path / "image", archive(), early=early)
    with open_source(path) as source:
        assert source.sha256 == source.initrd_sha256 == digest(path.read_bytes())
        assert (source.start, source.prefix_bytes) == (0, len(early))
        assert source.main_bytes == path.stat().st_size - len(early)


def test_the_padding_of_a_plain_archive_belongs_to_it(tmp_path: Path) -> None:
    payload = archive(padded_to=10240)
    path = write_image(tmp_path / "image", payload, codec=Codec.CAT)
    with open_source(path) as source:
        assert source.main_bytes == len(payload)


def test_a_unified_image_has_an_initramfs_of_its_own(tmp_path: Path) -> None:
    early, payload = early_archive(), archive()
    initrd = early + COMPRESSORS[Codec.ZSTD](payload)
    path = tmp_path / "linux.efi"
    path.write_bytes(uki(initrd, ucode=early_archive()))
    with open_source(path) as source:
        assert source.sha256 == digest(path.read_bytes())
        assert source.initrd_sha256 == digest(initrd)
        assert source.prefix_bytes == len(early)


def test_a_candidate_of_a_unified_image_is_its_initramfs_alone(host: Host, tmp_path: Path) -> None:
    early, payload = early_archive(), archive()
    path = tmp_path / "linux.efi"
    path.write_bytes(uki(early + COMPRESSORS[Codec.ZSTD](payload), ucode=early_archive()))
    data = Path(candidate_of(host, path, Codec.GZIP).path).read_bytes()
    assert data == early + COMPRESSORS[Codec.GZIP](payload)


def test_the_same_initramfs_in_and_out_of_a_unified_image_gives_the_same_bytes(
    host: Host, tmp_path: Path
) -> None:
    initrd = early_archive() + COMPRESSORS[Codec.XZ](archive())
    (tmp_path / "image").write_bytes(initrd)
    (tmp_path / "linux.efi").write_bytes(uki(initrd))
    digests = {
        candidate_of(host, tmp_path / name, Codec.ZSTD).sha256 for name in ("image", "linux.efi")
    }
    assert len(digests) == 1


@pytest.mark.parametrize("codec", list(COMPRESSORS))
def test_recompressing_with_what_made_it_gives_the_image_back(
    host: Host, tmp_path: Path, codec: Codec
) -> None:
    path = write_image(tmp_path / "image", archive(), codec=codec, early=early_archive())
    assert candidate_of(host, path, codec).sha256 == digest(path.read_bytes())


@pytest.mark.parametrize(
    "content",
    [b"", bytes(4096), b"garbage" * 100, uki(b""), uki(b"", ucode=early_archive())],
    ids=["empty", "zeros", "garbage", "no initrd", "microcode only"],
)
def test_what_is_no_initramfs_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "image"
    path.write_bytes(content)
    with pytest.raises(InitadvisorError) as caught, open_source(path):
        pass
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


def test_what_is_larger_than_any_initramfs_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(900 << 30)
    expected = pytest.raises(InitadvisorError, match="966 GB are more than loaders load")
    with expected, open_source(path):
        pass


def test_a_unified_image_whose_initramfs_is_zeros_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "linux.efi"
    path.write_bytes(uki(bytes(2048), ucode=early_archive()))
    with pytest.raises(InitadvisorError, match="section is empty"), open_source(path):
        pass


def test_an_image_that_is_rewritten_meanwhile_gives_no_candidate(
    host: Host, tmp_path: Path
) -> None:
    """Some generators truncate the image and write it in place."""
    path = write_image(tmp_path / "image", archive(), early=early_archive())
    with open_source(path) as source:
        data = bytearray(path.read_bytes())
        data[200] ^= 1
        path.write_bytes(data)
        os.utime(path, ns=(source.mtime_ns + 1, source.mtime_ns + 1))
        result = build_candidates(host, unknown, source, [Setting(Codec.GZIP)])
    assert result.candidates == ()
    assert "was changed while it was read" in result.skipped[0].reason


def test_an_image_is_current_until_it_changes(tmp_path: Path) -> None:
    path = write_image(tmp_path / "image", archive())
    before = digest(path.read_bytes())
    assert is_current(path, sha256=before)
    path.write_bytes(path.read_bytes() + b"x")
    assert not is_current(path, sha256=before)
    path.unlink()
    assert not is_current(path, sha256=before)
