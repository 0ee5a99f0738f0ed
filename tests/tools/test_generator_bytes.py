"""What ``compressor`` gives is what the generator itself gives, byte for byte where that can be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut, initramfs_tools
from initadvisor.generators.files import with_stream_size
from initadvisor.host import Host
from initadvisor.host.process import piped
from tests.fakes.installed import InstalledRunner
from tests.fixtures.debian import RELEASED, Suite, debian
from tests.fixtures.generated import dracut_image, initramfs_tools_image
from tests.fixtures.payload import main_bytes, main_codec, main_payload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.namespace import Tree

pytestmark = pytest.mark.tools

_LEVELS = ("zstd -19", "lz4 -1", "xz -0", "gzip -1")
_SETTINGS = (*(Setting(codec) for codec in Codec), *(Setting.parse(text) for text in _LEVELS))

_STAMPED = {Codec.LZOP}
"""lzop writes the time into its header even when it reads a pipe."""


def _with_3cpio() -> Tree:
    return debian(Suite.SID, also=("3cpio",))


def _host(tree: Tree, work: Path) -> Host:
    return Host(root=tree.root, runner=InstalledRunner(tree=tree, work=work))


def _compressed(tree: Tree, argv: tuple[str, ...], payload: bytes, work: Path) -> bytes:
    source = work / "payload"
    source.write_bytes(payload)
    argv = with_stream_size(argv, len(payload))
    with source.open("rb") as file, piped(file) as pipe:
        return tree.run(argv, work=work, stdin=pipe)


def _unpacked(codec: Codec, data: bytes, work: Path) -> bytes:
    image = work / f"unpacked.{codec}"
    image.write_bytes(data)
    return main_payload(image)


@pytest.mark.parametrize("suite", Suite)
@pytest.mark.parametrize("setting", _SETTINGS, ids=str)
def test_dracut_makes_of_another_images_payload_what_compressor_makes(
    suite: Suite, setting: Setting, tmp_path: Path
) -> None:
    tree = debian(suite)
    host = _host(tree, tmp_path)
    argv = dracut.compressor(host, setting)
    own = dracut_image(tree, " ".join(argv) if setting.options else setting.codec.value)
    other = dracut_image(tree, "gzip" if setting.codec is Codec.LZ4 else "lz4")
    derived = _compressed(tree, argv, main_payload(other), tmp_path)
    assert main_codec(own) is setting.codec
    if setting.codec in _STAMPED:
        assert _unpacked(setting.codec, derived, tmp_path) == main_payload(own)
        assert len(derived) == len(main_bytes(own))
    else:
        assert derived == main_bytes(own)


@pytest.mark.parametrize("setting", _SETTINGS, ids=str)
def test_dracut_through_3cpio_makes_what_compressor_makes(setting: Setting, tmp_path: Path) -> None:
    tree = _with_3cpio()
    own = dracut_image(tree, setting.codec.value, level=setting.level, reproducible=False)
    argv = dracut.compressor(_host(tree, tmp_path), setting)
    derived = _compressed(tree, argv, main_payload(own), tmp_path)
    assert main_codec(own) is setting.codec
    if setting.codec in _STAMPED:
        assert _unpacked(setting.codec, derived, tmp_path) == main_payload(own)
        assert len(derived) == len(main_bytes(own))
    else:
        assert derived == main_bytes(own)


@pytest.mark.parametrize("suite", RELEASED)
def test_dracut_without_a_configured_compression_makes_what_configured_says(
    suite: Suite, tmp_path: Path
) -> None:
    tree = debian(suite)
    host = _host(tree, tmp_path)
    own = dracut_image(tree, None)
    configured = dracut.configured(host, tree.release)
    derived = _compressed(
        tree, dracut.compressor(host, configured.setting), main_payload(own), tmp_path
    )
    assert configured.warnings == ()
    assert derived == main_bytes(own)


@pytest.mark.parametrize("tree_of", [partial(debian, Suite.TRIXIE), _with_3cpio])
@pytest.mark.parametrize("setting", [s for s in _SETTINGS if s.codec is not Codec.CAT], ids=str)
def test_initramfs_tools_through_a_pipe_makes_what_compressor_makes(
    setting: Setting, tree_of: Callable[[], Tree], tmp_path: Path
) -> None:
    tree = tree_of()
    own = initramfs_tools_image(tree, setting.codec, setting.level)
    argv = initramfs_tools.compressor(_host(tree, tmp_path), setting)
    derived = _compressed(tree, argv, main_payload(own), tmp_path)
    assert main_codec(own) is setting.codec
    if setting.codec in _STAMPED:
        assert _unpacked(setting.codec, derived, tmp_path) == main_payload(own)
        assert len(derived) == len(main_bytes(own))
    else:
        assert derived == main_bytes(own)


@pytest.mark.parametrize("setting", [s for s in _SETTINGS if s.codec is not Codec.CAT], ids=str)
def test_initramfs_tools_from_a_file_differs_in_what_its_header_says_of_the_file(
    setting: Setting, tmp_path: Path
) -> None:
    tree = debian(Suite.BOOKWORM)
    own = initramfs_tools_image(tree, setting.codec, setting.level)
    argv = initramfs_tools.compressor(_host(tree, tmp_path), setting)
    derived = _compressed(tree, argv, main_payload(own), tmp_path)
    assert main_codec(own) is setting.codec
    if setting.codec in {Codec.GZIP, Codec.LZOP, Codec.ZSTD}:
        assert _unpacked(setting.codec, derived, tmp_path) == main_payload(own)
        assert abs(len(derived) - len(main_bytes(own))) < 64
    else:
        assert derived == main_bytes(own)
