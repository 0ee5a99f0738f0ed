"""Twenty initramfs images that real generators made, and every candidate of them, fully built.

    python -m benchmarks.corpus [--build] [IMAGE...]

Lists the images: layout, codec, size packed and unpacked, and what is in them. What is not there
yet is made first, from packages of a Debian mirror. ``--build`` then builds all candidates of each
(``initadvisor candidates build --all``, at idle priority; what is there is not built again). That
takes about 250 s of processor time for 100 MB, and as much room as all the images unpacked, twice.
IMAGE, the name of one, leaves the others out.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from initadvisor.host import Host
from initadvisor.image.scan import scan
from initadvisor.model.codec import Codec
from initadvisor.model.setting import Setting
from tests.fixtures.arch import arch_image
from tests.fixtures.debian import Kernel, Suite, debian
from tests.fixtures.generated import dracut_image, initramfs_tools_image, large_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Layout(StrEnum):
    """Who lays out an image like that; what is ``ARCH`` has mkinitcpio's layout."""

    DRACUT = "dracut"
    INITRAMFS_TOOLS = "initramfs-tools"
    ARCH = "arch"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusImage:
    """An image of the corpus; its name says what it is made of."""

    name: str
    layout: Layout
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltHost(Host):
    """This machine, with directories of its own for the candidates of one image."""

    name: str

    @override
    def cache_dir(self) -> Path:
        return _directory() / "built" / self.name

    @override
    def state_dir(self) -> Path:
        return _directory() / "state" / self.name


def built_host(image: CorpusImage) -> Host:
    """Return a host whose cache is the one that ``--build`` fills for this image."""
    return BuiltHost(name=image.name)


def corpus() -> tuple[CorpusImage, ...]:
    """Return all images, the smallest first; those that are not there are made."""
    return tuple(images())


def images(names: frozenset[str] = frozenset()) -> Iterator[CorpusImage]:
    """Yield the images with these names (none: all), each made when its turn comes."""
    for (layout, name), make in _IMAGES.items():
        if not names or name in names:
            yield CorpusImage(name=name, layout=layout, path=make())


def build(image: CorpusImage) -> None:
    """Build all candidates of an image; raises ``CalledProcessError`` where none can be built."""
    host = built_host(image)
    environment = {
        **os.environ,
        "CACHE_DIRECTORY": str(host.cache_dir()),
        "STATE_DIRECTORY": str(host.state_dir()),
    }
    command = ("-m", "initadvisor", "candidates", "build", "--all", "--image", str(image.path))
    subprocess.run([sys.executable, *command], env=environment, check=True)


def _directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "initadvisor-benchmarks"


def _dracut(suite: Suite, kernel: Kernel) -> Path:
    return dracut_image(debian(suite, kernel), "zstd", small=False)


def _initramfs_tools(suite: Suite, kernel: Kernel) -> Path:
    return initramfs_tools_image(debian(suite, kernel), Codec.ZSTD, small=False)


_IMAGES: Mapping[tuple[Layout, str], Callable[[], Path]] = {
    (Layout.INITRAMFS_TOOLS, "tools-trixie-cloud"): functools.partial(
        _initramfs_tools, Suite.TRIXIE, Kernel.CLOUD
    ),
    (Layout.ARCH, "arch-cloud"): functools.partial(arch_image, Setting(Codec.ZSTD)),
    (Layout.DRACUT, "dracut-trixie-cloud"): functools.partial(_dracut, Suite.TRIXIE, Kernel.CLOUD),
    (Layout.INITRAMFS_TOOLS, "tools-bookworm-cloud"): functools.partial(
        _initramfs_tools, Suite.BOOKWORM, Kernel.CLOUD
    ),
    (Layout.DRACUT, "dracut-bookworm-cloud"): functools.partial(
        _dracut, Suite.BOOKWORM, Kernel.CLOUD
    ),
    (Layout.DRACUT, "dracut-bookworm-full"): large_image,
    (Layout.INITRAMFS_TOOLS, "tools-bookworm-full"): functools.partial(
        _initramfs_tools, Suite.BOOKWORM, Kernel.FULL
    ),
}


def _line(image: CorpusImage) -> str:
    with image.path.open("rb") as file:
        contents = scan(file)
    kinds = ", ".join(
        f"{kind.kind} {kind.size_bytes / 1e6:.1f}"
        + (f" ({kind.compressed_bytes / 1e6:.1f} compressed)" if kind.compressed_bytes else "")
        for kind in contents.kinds
        if kind.files
    )
    return (
        f"{image.name:28} {image.layout:16} {contents.main.codec:5}"
        f" {image.path.stat().st_size / 1e6:6.1f} {contents.unpacked_bytes / 1e6:7.1f}  {kinds}"
    )


def main() -> None:
    """List the images, or build their candidates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", action="store_true")
    parser.add_argument("names", nargs="*", metavar="IMAGE")
    arguments = parser.parse_args()
    for image in images(frozenset(arguments.names)):
        print(_line(image), flush=True)
        if arguments.build:
            build(image)


if __name__ == "__main__":
    main()
