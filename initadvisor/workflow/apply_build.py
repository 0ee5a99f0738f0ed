"""Builds what ``apply`` would install, beside it, and makes sure of it before anybody sees it."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from initadvisor.bootloaders.secure_boot import enforces_signatures
from initadvisor.generators.rewriting import config_files, texts_of
from initadvisor.host.files import locked, make_directory, open_regular, sha256_of
from initadvisor.image.lint import lint
from initadvisor.image.listing import Listing, difference
from initadvisor.image.pe import read_uki, sections_of_uki
from initadvisor.image.scan import scan
from initadvisor.model.apply import StagedImage, Step
from initadvisor.model.errors import BadImageError, InitadvisorError, UnsafeError
from initadvisor.model.image import Verdict
from initadvisor.model.image_difference import Aspect, ChangedEntry
from initadvisor.model.text import shown
from initadvisor.workflow.kernel_config import find_kernel_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.apply import ApplyPlan, PlannedImage
    from initadvisor.model.image import ImageContents
    from initadvisor.model.image_difference import ImageDifference

_EXAMPLES = 3

_OF_THE_INITRAMFS = {".initrd", ".pcrsig"}
"""Sections that differ where the bytes of the initramfs do: itself, and what is signed of it."""


class BuildingObserver(Protocol):
    """Told how building goes."""

    def doing(self, what: str) -> None:
        """Take note of what goes on now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """An image that was read to its end.

    Of a unified kernel image, ``signed`` tells that it has a signature, and ``sections`` has the
    digests of what is in it beside the initramfs.
    """

    contents: ImageContents
    listing: Listing
    size_bytes: int
    sha256: str
    signed: bool
    sections: Mapping[str, str]


@contextlib.contextmanager
def staged_images(
    host: Host, generator: Generator, plan: ApplyPlan, *, observer: BuildingObserver
) -> Iterator[tuple[StagedImage, ...]]:
    """Build the plan's images in the cache and hand them out once all of them are right.

    Each is built twice, with today's configuration and with the new one, one after the other. The
    files are there as long as the context is; nothing installed is touched.

    Raises ``UnsafeError`` where the plan has an obstacle to building, or where what came out is not
    what it has to be: the wanted codec, readable to its end, unpacked by its kernel, the very
    content that today's configuration gives. Raises ``InitadvisorError`` while another run builds
    or when the configuration was changed meanwhile, and what the generator's ``build`` does.
    """
    for obstacle in plan.obstacles:
        if obstacle.step is Step.BUILD:
            raise UnsafeError(obstacle.reason, hint=obstacle.remedy or None)
    directory = host.cache_dir() / "apply"
    with locked(host.cache_dir() / "apply.lock", what="applying a setting"):
        try:
            _make_empty(directory)
            staged = tuple(
                _stage(host, generator, plan, planned, directory / str(number), observer)
                for number, planned in enumerate(plan.rebuilt)
            )
            _require_unchanged(host, plan)
            yield staged
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _make_empty(directory: Path) -> None:
    """Make a directory that only this user may look into: images may hold keys."""
    try:
        if directory.is_dir() and not directory.is_symlink():
            shutil.rmtree(directory)
        directory.mkdir(mode=0o700)
    except OSError as err:
        msg = f"cannot build in {directory}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _stage(
    host: Host,
    generator: Generator,
    plan: ApplyPlan,
    planned: PlannedImage,
    directory: Path,
    observer: BuildingObserver,
) -> StagedImage:
    make_directory(directory, mode=0o700)
    image, texts = planned.image, texts_of(plan.edits)
    noted = generator.noted_inside(host, texts)
    observer.doing(f"building {image.path} with today's setting, for comparison")
    generator.build(host, image, directory / "control", {})
    control = _read_built(generator, directory / "control")
    observer.doing(f"building {image.path} with {plan.setting}")
    generator.build(host, image, directory / "new", texts)
    new = _read_built(generator, directory / "new")
    found = new.contents.main.codec
    if found is not plan.setting.codec:
        msg = f"{generator.NAME} made {image.path} with {found}, not with {plan.setting.codec}"
        raise UnsafeError(msg, hint="is the compressor installed? Nothing was changed")
    _require_same(image.path, _difference(control, new, noted))
    if image.uki and not new.signed and enforces_signatures(host):
        msg = f"Secure Boot is on, and {generator.NAME} made {image.path} without a signature"
        raise UnsafeError(msg, hint="nothing was changed")
    release = image.kernel_release
    judged = lint(new.contents, find_kernel_config(host, release), release)
    if judged.verdict is Verdict.REFUSED:
        msg = f"Linux {release} would not unpack {image.path} as it was built: {judged.reasons[0]}"
        raise UnsafeError(msg, hint="nothing was changed")
    observer.doing(f"comparing {image.path} with what a rebuild gives")
    updates, unreadable = _updates(image.path, control, noted)
    return StagedImage(
        image=image,
        staged=directory / "new",
        size_bytes=new.size_bytes,
        sha256=new.sha256,
        codec=found,
        lint=judged,
        updates=updates,
        unreadable=unreadable,
    )


def _read(path: Path) -> _Read:
    """Read an image to its end; raises ``BadImageError`` for what is none."""
    listing = Listing()
    with open_regular(path) as file:
        contents = scan(file, witness=listing)
        size_bytes = file.seek(0, os.SEEK_END)
        stretches = sections_of_uki(file, size_bytes) if contents.uki else {}
        return _Read(
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


def _read_built(generator: Generator, path: Path) -> _Read:
    try:
        return _read(path)
    except BadImageError as err:
        msg = f"{generator.NAME} ended without an error but wrote no whole image: {err.message}"
        raise UnsafeError(msg, hint="nothing was changed") from err


def _require_same(path: Path, found: ImageDifference) -> None:
    """Raise ``UnsafeError`` where another compression gave another content, too."""
    if not found.count:
        return
    paths = [*found.added, *found.removed, *(changed.path for changed in found.changed)]
    some = ", ".join(paths[:_EXAMPLES]) + (", ..." if len(paths) > _EXAMPLES else "")
    msg = f"{path} built with the new setting has another content than with today's: {some}"
    raise UnsafeError(msg, hint="was something updated meanwhile? Try again; nothing was changed")


def _updates(
    installed: Path, control: _Read, noted: tuple[str, ...]
) -> tuple[ImageDifference | None, str]:
    try:
        return _difference(_read(installed), control, noted), ""
    except InitadvisorError as err:
        return None, err.message


def _difference(before: _Read, after: _Read, noted: tuple[str, ...]) -> ImageDifference:
    """Return in what two images differ, in their initramfs and beside it."""
    names = before.sections.keys() | after.sections.keys()
    sections = tuple(
        ChangedEntry(path=f"section {shown(name)}", aspects=(Aspect.CONTENT,))
        for name in sorted(names)
        if before.sections.get(name) != after.sections.get(name)
    )
    found = difference(before.listing, after.listing, ignored=noted)
    return replace(found, changed=(*sections, *found.changed))


def _require_unchanged(host: Host, plan: ApplyPlan) -> None:
    """Raise ``InitadvisorError`` where the configuration is not that of the plan any more."""
    for edit in plan.edits:
        path = Path(edit.path)
        now = config_files(host, [path])[0].text if path.exists() else None
        if now != edit.before:
            msg = f"{path} was changed while images were built"
            raise InitadvisorError(msg, hint="try again; nothing was changed")
