"""Images that a generator has just built: where that is done, and what has to hold of each."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from initadvisor.core.errors import BadImageError, InitadvisorError, LostVMError, UnsafeError
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.lock import locked
from initadvisor.image.contents import Verdict
from initadvisor.image.difference import ImageListing
from initadvisor.image.lint import lint
from initadvisor.image.pe import read_uki, sections_of_uki
from initadvisor.image.scan import scan
from initadvisor.lab.verify import verify
from initadvisor.target.kernel_config import find_kernel_config
from initadvisor.vm.choose import Wanted, require_verifying
from initadvisor.vm.engines import NoEngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from initadvisor.core.settings import Setting
    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents, Lint


_OF_THE_INITRAMFS = {".initrd", ".pcrsig"}
"""Sections that differ where the bytes of the initramfs do: itself, and what is signed of it."""


class BuildingObserver(Protocol):
    """Receives progress events of a build."""

    def doing(self, what: str) -> None:
        """Take note of what goes on now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadImage:
    """An image that was read to its end.

    Of a unified kernel image, ``signed`` tells that it has a signature, and ``sections`` has the
    digests of what is in it beside the initramfs.
    """

    contents: ImageContents
    listing: ImageListing
    size_bytes: int
    sha256: str
    signed: bool
    sections: Mapping[str, str]


@contextlib.contextmanager
def building_place(host: Host) -> Iterator[Path]:
    """Hand out an empty directory that only this user may look into: images may hold keys.

    It is gone afterwards. Raises ``InitadvisorError`` while another run builds.
    """
    directory = host.cache_dir() / "apply"
    with locked(host.cache_dir() / "apply.lock", what="applying a setting"):
        try:
            _make_empty(directory)
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def read_image(path: Path) -> ReadImage:
    """Read an image to its end; raises ``BadImageError`` for what is none."""
    listing = ImageListing()
    with open_regular(path) as file:
        contents = scan(file, visitor=listing)
        size_bytes = file.seek(0, os.SEEK_END)
        stretches = sections_of_uki(file, size_bytes) if contents.uki else {}
        return ReadImage(
            contents=contents,
            listing=listing,
            size_bytes=size_bytes,
            sha256=sha256_of(file),
            signed=contents.uki and read_uki(file, size_bytes).signed,
            sections={
                name: sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
                for name, part in stretches.items()
                if name not in _OF_THE_INITRAMFS
            },
        )


def read_built(generator: Generator, path: Path) -> ReadImage:
    """Read what a generator has made; raises ``UnsafeError`` where that is no whole image."""
    try:
        return read_image(path)
    except BadImageError as err:
        msg = f"{generator.NAME} ended without an error but wrote no whole image: {err.message}"
        raise UnsafeError(msg, hint="nothing was changed") from err


def require_codec(
    generator: Generator, image: InstalledImage, built: ReadImage, setting: Setting
) -> None:
    """Raise ``UnsafeError`` where a generator has fallen back to another codec."""
    found = built.contents.main.codec
    if found is not setting.codec:
        msg = f"{generator.NAME} made {image.path} with {found}, not with {setting.codec}"
        raise UnsafeError(msg, hint="is the compressor installed? Nothing was changed")


def linted(host: Host, image: InstalledImage, built: ReadImage) -> Lint:
    """Return what lint says of it; raises ``UnsafeError`` where its kernel would not unpack it."""
    release = image.kernel_release
    result = lint(built.contents, find_kernel_config(host, release), release)
    if result.verdict is Verdict.REFUSED:
        msg = f"Linux {release} would not unpack {image.path} as it was built: {result.reasons[0]}"
        raise UnsafeError(msg, hint="nothing was changed")
    return result


def require_engine(host: Host, images: Iterable[InstalledImage]) -> None:
    """Raise ``UnsafeError`` where ``ask_kernels`` would find no virtual machine to ask with.

    To be found out before building takes minutes. Raises ``NeedsRootError`` where only root may
    read a kernel.
    """
    for image in images:
        kernel = image.path if image.uki else None
        try:
            require_verifying(host, Wanted(release=image.kernel_release, kernel=kernel))
        except NoEngineError as err:
            raise _not_asked(image, err) from err


def ask_kernels(
    host: Host,
    built: Iterable[tuple[InstalledImage, Path]],
    *,
    unverified: bool,
    observer: BuildingObserver,
) -> str:
    """Have each image's kernel unpack it; return why that could not be done, if ``unverified``.

    Raises ``UnsafeError`` where a kernel does not unpack one, and where there is no virtual machine
    that could tell and the user has not taken that upon himself.
    """
    for image, path in built:
        observer.doing(f"having Linux {image.kernel_release} unpack {image.path}")
        try:
            verified = verify(host, path, release=image.kernel_release)
        except (NoEngineError, LostVMError) as err:
            if unverified:
                return err.message
            raise _not_asked(image, err) from err
        if verified.problems:
            msg = f"{image.path} as it was built must not be booted: {verified.problems[0]}"
            raise UnsafeError(msg, hint="nothing was changed")
    return ""


def _not_asked(image: InstalledImage, err: InitadvisorError) -> UnsafeError:
    msg = f"no kernel could be asked whether it unpacks {image.path}: {err.message}"
    ways = (err.hint, "--unverified goes without")
    return UnsafeError(msg, hint="; ".join(way for way in ways if way))


def _make_empty(directory: Path) -> None:
    try:
        if directory.is_dir() and not directory.is_symlink():
            shutil.rmtree(directory)
        directory.mkdir(mode=0o700)
    except OSError as err:
        msg = f"cannot build in {directory}: {err.strerror}"
        raise InitadvisorError(msg) from err
