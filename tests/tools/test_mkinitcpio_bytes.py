"""The real mkinitcpio makes what is derived from another of its images, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, mkinitcpio
from initadvisor.host import Host
from initadvisor.host.process import piped
from tests.fixtures.mkinitcpio import mkinitcpio_image, mkinitcpio_system
from tests.fixtures.namespace import Tree, TreeRunner
from tests.fixtures.payload import early_bytes, main_bytes, main_codec, main_payload

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tools

_COMPRESSING = [codec for codec in Codec if codec is not Codec.CAT]


@pytest.fixture
def tree() -> Tree:
    return mkinitcpio_system()


@pytest.fixture
def host(tree: Tree, tmp_path: Path) -> Host:
    return Host(root=tree.root, runner=TreeRunner(tree=tree, work=tmp_path))


def _compressed(tree: Tree, argv: tuple[str, ...], payload: bytes, work: Path) -> bytes:
    source = work / "payload"
    source.write_bytes(payload)
    with source.open("rb") as file, piped(file) as pipe:
        return tree.run(argv, work=work, stdin=pipe)


@pytest.mark.parametrize("codec", _COMPRESSING)
def test_an_image_derived_from_another_codecs_is_mkinitcpios_own(
    tree: Tree, host: Host, tmp_path: Path, codec: Codec
) -> None:
    other = mkinitcpio_image(tree, Setting(Codec.GZIP if codec is Codec.LZ4 else Codec.LZ4))
    own = mkinitcpio_image(tree, Setting(codec))
    argv = mkinitcpio.compressor(host, Setting(codec))
    derived = early_bytes(other) + _compressed(tree, argv, main_payload(other), tmp_path)
    assert main_codec(own) is codec
    if codec is Codec.LZOP:  # its header holds the time
        image = tmp_path / "derived"
        image.write_bytes(derived)
        assert early_bytes(own) == early_bytes(other)
        assert main_payload(image) == main_payload(own)
    else:
        assert derived == own.read_bytes()


@pytest.mark.parametrize("text", ["zstd -19", "xz -0", "lz4 -9", "gzip -1"])
def test_options_are_passed_as_mkinitcpio_passes_them(
    tree: Tree, host: Host, tmp_path: Path, text: str
) -> None:
    setting = Setting.parse(text)
    own = mkinitcpio_image(tree, setting)
    argv = mkinitcpio.compressor(host, setting)
    assert _compressed(tree, argv, main_payload(own), tmp_path) == main_bytes(own)


def test_uncompressed_images_have_a_layout_of_their_own_and_are_left_to_mkinitcpio(
    tree: Tree, host: Host, tmp_path: Path
) -> None:
    derived_size = len(main_payload(mkinitcpio_image(tree, Setting(Codec.LZ4))))
    own = mkinitcpio_image(tree, Setting(Codec.CAT))
    image = InstalledImage(path=tree.root / "boot/initramfs-linux.img", kernel_release=tree.release)
    target = tmp_path / "image"
    command = [
        "/mnt/image" if word == str(target) else word
        for word in mkinitcpio.uncompressed_command(host, image, target)
    ]
    tree.run(command, work=tmp_path)
    assert mkinitcpio.needs_own_uncompressed(host)
    assert len(main_bytes(own)) > derived_size
    assert main_codec(target) is Codec.CAT
    assert target.stat().st_size == own.stat().st_size


def test_the_installed_mkinitcpio_tells_its_version_and_its_setting(tree: Tree) -> None:
    host = Host(root=tree.root)
    assert mkinitcpio.detect(host)
    assert int(mkinitcpio.version(host) or "0") >= 41
    configured = mkinitcpio.configured(host, tree.release)
    assert configured.setting == Setting(Codec.ZSTD)
    assert configured.source == f"default of mkinitcpio {mkinitcpio.version(host)}"
    assert configured.warnings == ()
