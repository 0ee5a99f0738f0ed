"""Images that real generators made are read for what they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor.cli import root
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.generators.detect import generator_of_image
from initadvisor.image.contents import FileKind
from initadvisor.image.scan import scan
from tests.fixtures.arch import arch_image
from tests.fixtures.debian import RELEASED, Suite, debian
from tests.fixtures.generated import dracut_image, initramfs_tools_image, large_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.image.contents import ImageContents

pytestmark = pytest.mark.tools


OF_MODULES = {
    FileKind.STORAGE,
    FileKind.FILE_SYSTEMS,
    FileKind.NETWORK,
    FileKind.CRYPTO,
    FileKind.INPUT,
    FileKind.MODULES,
}


def _contents(image: Path) -> ImageContents:
    with image.open("rb") as file:
        return scan(file)


def _modules(contents: ImageContents) -> int:
    return sum(kind.files for kind in contents.kinds if kind.kind in OF_MODULES)


@pytest.mark.parametrize("suite", RELEASED)
def test_an_image_of_dracut_for_every_machine(suite: Suite) -> None:
    tree = debian(suite)
    contents = _contents(dracut_image(tree, "zstd", small=False))
    assert generator_of_image(contents.generator).NAME == "dracut"
    assert contents.main.codec is Codec.ZSTD
    assert contents.kernel_release == tree.release
    assert _modules(contents) > 100


@pytest.mark.parametrize(("suite", "segments"), [(Suite.BOOKWORM, 1), (Suite.TRIXIE, 2)])
def test_an_image_of_initramfs_tools_with_most_modules(suite: Suite, segments: int) -> None:
    tree = debian(suite)
    contents = _contents(initramfs_tools_image(tree, Codec.ZSTD, small=False))
    assert generator_of_image(contents.generator).NAME == "initramfs-tools"
    assert contents.main.codec is Codec.ZSTD
    assert len(contents.segments) == segments
    assert contents.kernel_release == tree.release
    assert _modules(contents) > 100


@pytest.mark.parametrize("codec", Codec)
def test_an_image_in_archs_layout(codec: Codec) -> None:
    contents = _contents(arch_image(Setting(codec)))
    early, main = contents.segments
    assert generator_of_image(contents.generator).NAME == "mkinitcpio"
    assert (early.codec, main.codec) == (Codec.CAT, codec)
    assert contents.microcode
    modules = next(kind for kind in contents.kinds if kind.kind is FileKind.FILE_SYSTEMS)
    assert modules.compressed_bytes == modules.early_compressed_bytes > 1_000_000
    assert sum(kind.stored_bytes for kind in contents.kinds) == contents.initrd.size_bytes
    if codec is not Codec.CAT:
        assert main.offset % 10240 == 0
        assert main.unpacked_bytes % 10240 == 0


def test_the_large_image_is_large_enough_for_benchmarks() -> None:
    contents = _contents(large_image())
    assert 100e6 < contents.unpacked_bytes < 150e6
    assert _modules(contents) > 500


@pytest.mark.parametrize(
    "made",
    [
        lambda: initramfs_tools_image(debian(Suite.TRIXIE), Codec.ZSTD, small=False),
        lambda: dracut_image(debian(Suite.TRIXIE), "zstd", small=False),
        lambda: arch_image(Setting(Codec.ZSTD)),
    ],
    ids=["initramfs-tools", "dracut", "arch"],
)
def test_what_contents_lists_adds_up_to_the_image(
    made: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CACHE_DIRECTORY", "STATE_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path))
    done = CliRunner().invoke(root, ["contents", str(made()), "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    total_ms = found["boot_ms"]["median"]
    assert sum(kind["boot_ms"]["median"] for kind in found["kinds"]) == pytest.approx(
        total_ms, rel=0.03
    )
    assert sum(kind["stored_bytes"] for kind in found["kinds"]) == found["image_bytes"]
