"""What matters more than the codec is told, from the configuration and from the image."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.generators import InstalledImage, unknown
from initadvisor.host import Host
from initadvisor.image.cpio import CpioWriter
from initadvisor.target.context import what_matters_more
from initadvisor.target.source import open_source
from tests.fakes.compressors import COMPRESSORS
from tests.fakes.runner import FakeRunner
from tests.fixtures.small_images import archive, write_image

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def modules(name: str, codec: Codec) -> bytes:
    """Return an archive with one large module, compressed on its own."""
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        path = ""
        for part in ("usr", "lib", "modules", "6.1.0", "kernel"):
            path = f"{path}/{part}".lstrip("/")
            writer.directory(path)
        content = random.Random(1).randbytes(2_000_000)
        compress = COMPRESSORS[codec]
        writer.file(f"{path}/{name}", compress(content))
    return file.getvalue() + bytes(-file.tell() % 512)


def told(root: Path, image: Path, *, installed: bool = False) -> str:
    host = Host(root=root, runner=FakeRunner())
    which = InstalledImage(path=image, kernel_release="6.1.0") if installed else None
    with open_source(image, installed=which) as source:
        return "\n".join(what_matters_more(host, unknown, source))


def test_of_an_ordinary_image_nothing_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, write_image(tmp_path / "image", archive())) == ""


def test_compressed_modules_in_front_are_told(tmp_path: Path) -> None:
    early = modules("ext4.ko.zst", Codec.ZSTD)
    text = told(tmp_path, write_image(tmp_path / "image", archive(), early=early))
    assert "2.0 MB of compressed modules and firmware stand uncompressed in front" in text
    assert "before the image was" not in text


def test_modules_compressed_twice_are_told(tmp_path: Path) -> None:
    text = told(tmp_path, write_image(tmp_path / "image", modules("ext4.ko.xz", Codec.XZ)))
    assert "2.0 MB of modules and firmware were compressed before the image was" in text
    assert "in front" not in text


def test_in_an_uncompressed_image_they_are_told_as_well(tmp_path: Path) -> None:
    image = modules("ext4.ko.xz", Codec.XZ)
    text = told(tmp_path, write_image(tmp_path / "image", image, codec=Codec.CAT))
    assert "before the image was" in text


def test_plain_modules_are_no_matter(tmp_path: Path) -> None:
    assert told(tmp_path, write_image(tmp_path / "image", modules("ext4.ko", Codec.CAT))) == ""


def test_the_configuration_counts_for_this_machines_images_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown, "context", lambda _: ("MODULES_DECOMPRESS=yes",))
    image = write_image(tmp_path / "image", archive())
    assert told(tmp_path, image) == ""
    assert told(tmp_path, image, installed=True) == "MODULES_DECOMPRESS=yes"
