"""Stands in where no generator is found, as for the image of another machine.

Its command lines are the plain tools at their own default levels, with the flags that the kernel's
decompressors demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.generators.files import level_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.core.settings import Setting
    from initadvisor.generators import ConfiguredSetting, ContentVariant, InstalledImage
    from initadvisor.host import Host
    from initadvisor.rewrite.files import FileEdit


NAME: Final = "none"

_FLAGS: Final = {
    Codec.GZIP: ("-n",),
    Codec.XZ: ("--check=crc32", "-T0"),
    Codec.LZ4: ("-l",),
    Codec.ZSTD: ("-q", "-T0"),
}


def detect(_host: Host) -> bool:
    """Tell that this is never what makes a machine's images."""
    return False


def version(_host: Host) -> str | None:
    """Return None: there is no program."""
    return None


def configured(
    _host: Host,
    kernel_release: str,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> ConfiguredSetting:
    """Raise ``InitadvisorError``: nothing is configured where there is no generator."""
    del texts, image
    msg = f"no generator on this machine makes images for Linux {kernel_release}"
    raise InitadvisorError(msg, hint="give an image with --image FILE")


def rewritten(
    _host: Host,
    kernel_release: str,
    setting: Setting,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> tuple[FileEdit, ...]:
    """Raise ``UnsafeError``: there is no generator to configure."""
    del texts, image
    msg = f"no generator on this machine can be configured for {setting} and Linux {kernel_release}"
    raise UnsafeError(msg)


def images(_host: Host) -> tuple[InstalledImage, ...]:
    """Return no images."""
    return ()


def affected(_host: Host, _edits: Sequence[FileEdit]) -> tuple[InstalledImage, ...]:
    """Return no images."""
    return ()


def build(host: Host, image: InstalledImage, target: Path, _texts: Mapping[Path, str]) -> None:
    """Raise ``UnsafeError``: there is no generator to build with."""
    build_uncompressed(host, image, target)


def content_variants(
    _host: Host, _image: InstalledImage, _unused: Sequence[str]
) -> tuple[ContentVariant, ...]:
    """Return none: nothing is known that would make one."""
    return ()


def noted_inside(_host: Host, _texts: Mapping[Path, str]) -> tuple[str, ...]:
    """Return nothing."""
    return ()


def compressor(_host: Host, setting: Setting) -> tuple[str, ...]:
    """Return the tool's command line with what the kernel needs of it."""
    if setting.codec is Codec.CAT:
        return ("cat",)
    return (setting.codec.value, *_FLAGS.get(setting.codec, ()), *setting.options, "-c")


def default_level(_host: Host, setting: Setting) -> int | None:
    """Return the level of the setting, the tool's own where it has none."""
    return level_of(setting, setting.codec.spec.level)


def unusable(_host: Host, _setting: Setting) -> str | None:
    """Return None: what another machine's generator can do is not known."""
    return None


def build_uncompressed(_host: Host, image: InstalledImage, _target: Path) -> None:
    """Raise ``UnsafeError``: there is no generator to build with."""
    msg = f"no generator on this machine builds {image.path}"
    raise UnsafeError(msg)


def needs_own_uncompressed(_host: Host) -> bool:
    """Tell that nothing is known of another layout."""
    return False


def context(_host: Host) -> tuple[str, ...]:
    """Return nothing."""
    return ()
