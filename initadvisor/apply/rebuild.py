"""Builds images with an earlier configuration, for going back to it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.host.files import make_directory
from initadvisor.lab.built import (
    ask_kernels,
    building_place,
    linted,
    read_built,
    require_codec,
    require_engine,
)
from initadvisor.transaction import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.lab.built import BuildingObserver
    from initadvisor.transaction.transaction import FileIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltImage:
    """An image that was built and is right. ``replaces``: what was installed when that began."""

    image: InstalledImage
    staged: Path
    size_bytes: int
    sha256: str
    replaces: FileIdentity | None


@contextlib.contextmanager
def rebuilt_images(
    host: Host,
    generator: Generator,
    images: Sequence[InstalledImage],
    texts: Mapping[Path, str],
    *,
    unverified: bool,
    observer: BuildingObserver,
) -> Iterator[tuple[tuple[RebuiltImage, ...], str]]:
    """Build images as if some configuration files held ``texts``, and hand out those files.

    They are there as long as the context is; nothing installed is touched. With them comes why no
    kernel was asked, empty where one was. Raises ``UnsafeError`` where what came out is not right:
    readable to its end, of the codec that these texts configure for it, unpacked by its kernel;
    and before anything is built where no kernel could be asked, without ``unverified``.
    """
    if not unverified:
        require_engine(host, images)
    with building_place(host) as directory:
        built = tuple(
            _build(host, generator, image, directory / str(number), texts, observer)
            for number, image in enumerate(images)
        )
        pairs = [(one.image, one.staged) for one in built]
        yield built, ask_kernels(host, pairs, unverified=unverified, observer=observer)


def _build(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    directory: Path,
    texts: Mapping[Path, str],
    observer: BuildingObserver,
) -> RebuiltImage:
    release = image.kernel_release
    setting = generator.configured(host, release, texts=texts, image=image).setting
    try:
        replaces = files.identity(image.path, inodes=files.has_links(host, image.path.parent))
    except OSError as err:
        msg = f"cannot read {image.path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    make_directory(directory, mode=0o700)
    observer.doing(f"building {image.path} with {setting}")
    generator.build(host, image, directory / "old", texts)
    built = read_built(generator, directory / "old")
    require_codec(generator, image, built, setting)
    linted(host, image, built)
    if image.uki and not built.signed and enforces_signatures(host):
        msg = f"Secure Boot is on, and {generator.NAME} made {image.path} without a signature"
        raise UnsafeError(msg, hint="nothing was changed")
    return RebuiltImage(
        image=image,
        staged=directory / "old",
        size_bytes=built.size_bytes,
        sha256=built.sha256,
        replaces=replaces,
    )
