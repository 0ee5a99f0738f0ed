"""Builds the images that ``apply`` and ``rollback`` install, beside them, and checks them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.apply.plan_values import ApplyStep, RebuiltImage, StagedImage
from initadvisor.candidates.payload import unpacked
from initadvisor.candidates.run_times import keep_run
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnfitImageError, UnsafeError
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.firmware.signers import require_same_signers
from initadvisor.generators.files import with_stream_size
from initadvisor.generators.rewriting import config_files, texts_of
from initadvisor.generators.ukify import unify
from initadvisor.host.files import failing_as, make_directory, open_regular, sha256_of
from initadvisor.host.process import piped
from initadvisor.host.run import Priority
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.lab.verify import (
    ask_kernels,
    building_place,
    differs,
    linted,
    read_built,
    read_image,
    require_codec,
    require_engine,
)
from initadvisor.transaction import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from initadvisor.apply.plan_values import ApplyPlan, PlannedImage, PlannedVariant
    from initadvisor.core.settings import Setting
    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.difference import ImageDifference
    from initadvisor.lab.verify import BuildingObserver, ReadImage
    from initadvisor.transaction.transaction import FileIdentity, Transaction


_EXAMPLES = 3
_TIMEOUT_S = 3600.0
_HEADER_BYTES = 64
"""More than gzip, lzop and zstd begin with."""


@contextlib.contextmanager
def staged_images(
    host: Host, generator: Generator, plan: ApplyPlan, *, observer: BuildingObserver
) -> Iterator[tuple[StagedImage, ...]]:
    """Build the plan's images in the cache and hand them out once all of them are right.

    Each is built twice, with today's configuration and with the new one, one after the other. The
    files are there as long as the context is; nothing installed is touched.

    Raises ``UnsafeError`` where the plan has an obstacle to building, ``UnfitImageError`` where
    what came out is not what it has to be: the wanted codec, readable to its end, unpacked by its
    kernel, compressed as a candidate would be, the very content that today's configuration gives,
    or with a variant what is expected of that.
    Raises ``InitadvisorError`` while another run builds or when the configuration was changed
    meanwhile, and what the generator's ``build`` does.
    """
    for blocker in plan.blockers:
        if blocker.step is ApplyStep.BUILD:
            raise UnsafeError(blocker.reason, hint=blocker.remedy or None)
    with building_place(host) as directory:
        rebuilt = sorted(plan.rebuilt, key=lambda planned: _is_of_another(planned.image))
        installed = [_identities(host, planned.image) for planned in rebuilt]
        _require_same_copies(rebuilt, installed)
        places = {
            planned.image.path: directory / str(number) for number, planned in enumerate(rebuilt)
        }
        staged = tuple(
            _stage(host, generator, plan, planned, replaces, places, observer)
            for planned, replaces in zip(rebuilt, installed, strict=True)
        )
        _require_unchanged(host, plan)
        yield staged


def _stage(
    host: Host,
    generator: Generator,
    plan: ApplyPlan,
    planned: PlannedImage,
    replaces: Mapping[Path, FileIdentity | None],
    places: Mapping[Path, Path],
    observer: BuildingObserver,
) -> StagedImage:
    """Build one in its directory of ``places``, where those are that were built before."""
    image, texts = planned.image, texts_of(plan.edits)
    directory, made_of = places[image.path], image.made_of and places.get(image.made_of)
    make_directory(directory)
    noted = generator.noted_inside(host, texts)
    observer.doing(f"building {image.path} with today's setting, for comparison")
    _make(host, generator, image, directory / "control", {}, made_of and made_of / "control")
    control = read_built(generator, directory / "control")
    observer.doing(f"building {image.path} with {plan.change}")
    since_ns = host.clock.monotonic_ns()
    _make(host, generator, image, directory / "new", texts, made_of and made_of / "new")
    if plan.variant is None and made_of is None:
        keep_run(host, image.path, plan.setting, since_ns=since_ns)
    new = read_built(generator, directory / "new")
    require_codec(generator, image, new, plan.setting)
    found = differs(control, new, noted)
    if plan.variant is None:
        _require_same(image.path, found)
    else:
        _require_expected(image.path, plan.variant, found)
    _require_signed(host, generator, image, new, directory / "new")
    judged = linted(host, image, new)
    observer.doing(f"comparing {image.path} with what {plan.setting} gives")
    _require_stream(host, generator, image, new, directory / "new", plan.setting)
    observer.doing(f"comparing {image.path} with what a rebuild gives")
    updates, unreadable = _updates(image, control, noted)
    return StagedImage(
        image=image,
        staged=directory / "new",
        size_bytes=new.size_bytes,
        sha256=new.sha256,
        replaces=replaces,
        codec=plan.setting.codec,
        lint=judged,
        updates=updates,
        unreadable=unreadable,
        missing=found.removed_files,
    )


def _is_of_another(image: InstalledImage) -> bool:
    """Tell whether it is made of another image, which is to be built before it."""
    return image.made_of is not None


def _make(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    target: Path,
    texts: Mapping[Path, str],
    initramfs: Path | None,
) -> None:
    """Have the generator build an image, or ukify one of the initramfs that was built for it."""
    if initramfs is not None:
        unify(host, image, initramfs, target)
    else:
        generator.build(host, image, target, texts)


def _require_signed(
    host: Host, generator: Generator, image: InstalledImage, built: ReadImage, path: Path
) -> None:
    """Raise ``UnfitImageError`` where a unified image would not start with Secure Boot on."""
    if not image.uki:
        return
    if not built.signed and enforces_signatures(host):
        msg = f"Secure Boot is on, and {generator.NAME} made {image.path} without a signature"
        raise UnfitImageError(msg, hint="nothing was changed")
    if image.path.exists():
        require_same_signers(host, image.path, path)


def _require_stream(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    built: ReadImage,
    path: Path,
    setting: Setting,
) -> None:
    """Raise ``UnfitImageError`` where an image is not compressed as a candidate is.

    It was measured with a candidate: one of another level is not what was announced. Only the
    header may differ, where a program notes a name, a time or a size (``Generator.compressor``).
    What that takes beside the images is room that the generator had, see ``room_needed``.
    """
    main = built.contents.main
    if main.codec is Codec.CAT:
        return
    with (
        failing_as(f"cannot compare {image.path} with what {setting} gives"),
        open_regular(path) as file,
        unpacked(
            decompress(main.codec, file, main.offset, main.size_bytes), path.parent
        ) as payload,
        tempfile.TemporaryFile(dir=path.parent) as derived,
        piped(payload.file) as pipe,
    ):
        argv = with_stream_size(generator.compressor(host, setting), payload.size_bytes)
        host.runner.run(
            argv, timeout_s=_TIMEOUT_S, stdin=pipe, stdout=derived, priority=Priority.IDLE
        )
        size_bytes = derived.seek(0, os.SEEK_END)
        behind = max(0, min(size_bytes, main.size_bytes) - _HEADER_BYTES)
        ends = [(derived, size_bytes - behind), (file, main.offset + main.size_bytes - behind)]
        found = {sha256_of(one, offset=offset, size_bytes=behind) for one, offset in ends}
    if len(found) > 1 or abs(size_bytes - main.size_bytes) > _HEADER_BYTES:
        msg = (
            f"{generator.NAME} did not compress {image.path} as {setting}: it has "
            f"{main.size_bytes} bytes, and {size_bytes} with {' '.join(argv)}"
        )
        raise UnfitImageError(msg, hint="what else sets its compression? Nothing was changed")


def _require_same(path: Path, found: ImageDifference) -> None:
    """Raise ``UnfitImageError`` where another compression gave another content, too."""
    if not found.count:
        return
    paths = [*found.added, *found.removed, *(changed.path for changed in found.changed)]
    msg = f"{path} built with the new setting has another content than with today's: {_some(paths)}"
    hint = "was something updated meanwhile? Try again; nothing was changed"
    raise UnfitImageError(msg, hint=hint)


def _require_expected(path: Path, variant: PlannedVariant, found: ImageDifference) -> None:
    """Raise ``UnfitImageError`` where other files went, came or changed than the plan expects.

    One may stay after all: dracut keeps modules that were loaded since.
    """
    expected = variant.expected
    changed, may_change = (
        {one.path for one in differing.changed} for differing in (found, expected)
    )
    told = (
        ("it lacks", {*found.removed} - {*expected.removed}),
        ("it also has", {*found.added} - {*expected.added}),
        ("it has not", {*expected.added} - {*found.added}),
        ("another is", changed - may_change),
    )
    wrong = [f"{verb} {_some(sorted(paths))}" for verb, paths in told if paths]
    if not wrong and found.removed_files:
        return
    what = wrong[0] if wrong else "nothing is missing"
    msg = f"{path} built with {variant.name} is not what was built of it before: {what}"
    hint = "sudo initadvisor contents --variants builds it anew; nothing was changed"
    raise UnfitImageError(msg, hint=hint)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_EXAMPLES]) + (", ..." if len(paths) > _EXAMPLES else "")


def _updates(
    image: InstalledImage, control: ReadImage, noted: tuple[str, ...]
) -> tuple[ImageDifference | None, str]:
    """Return what a rebuild changes, or why that is not known.

    Raises ``UnfitImageError`` where a rebuild lacks an initramfs of a UKI that has several.
    """
    try:
        installed = read_image(image.path)
        found = differs(installed, control, noted)
    except InitadvisorError as err:
        return None, err.message
    parts = [len(one.contents.segments) for one in (installed, control)]
    if image.uki and parts[0] > parts[1]:
        msg = f"{image.path} has {parts[0]} parts of an initramfs, and a rebuild {parts[1]}"
        hint = "something else puts images into it, which would be lost; nothing was changed"
        raise UnfitImageError(msg, hint=hint)
    return found, ""


def _require_unchanged(host: Host, plan: ApplyPlan) -> None:
    """Raise ``InitadvisorError`` where the configuration is not that of the plan any more."""
    for edit in plan.edits:
        path = Path(edit.path)
        now = config_files(host, [path])[0].text if path.exists() else None
        if now != edit.before:
            msg = f"{path} was changed while images were built"
            raise InitadvisorError(msg, hint="try again; nothing was changed")


def _identities(host: Host, image: InstalledImage) -> Mapping[Path, FileIdentity | None]:
    return {path: _identity(host, path) for path in image.paths}


def _identity(host: Host, path: Path) -> FileIdentity | None:
    try:
        return files.identity(path, inodes=files.has_links(host, path.parent))
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _require_same_copies(
    planned: Sequence[PlannedImage], installed: Sequence[Mapping[Path, FileIdentity | None]]
) -> None:
    """Raise ``UnsafeError`` where a copy does not hold what its image does any more."""
    for one, found in zip(planned, installed, strict=True):
        contents = {path: known and known.content for path, known in found.items()}
        for copy in one.image.copies:
            if contents[copy] is None or contents[copy] != contents[one.image.path]:
                raise changed_meanwhile(copy, "it was looked at")


def require_as_built(
    host: Host, images: Sequence[RebuiltImage], transaction: Transaction, *, meanwhile: str
) -> None:
    """Raise ``UnsafeError`` where what is there, or what was written, is not what was built for.

    A package manager may have come between the building (``meanwhile``, in words) and the moment it
    was kept out.
    """
    changes = {host.path(change.path): change for change in transaction.files}
    for image in images:
        for path, before in image.replaces.items():
            change = changes[path]
            if change.before != before:
                raise changed_meanwhile(path, meanwhile)
            if change.after is None or change.after.sha256 != image.sha256:
                msg = f"what was written beside {path} is not what was verified"
                raise UnsafeError(msg, hint="nothing was changed")


def changed_meanwhile(path: Path, meanwhile: str) -> UnsafeError:
    """Return what to raise where a file was changed while images were built."""
    msg = f"{path} was changed while {meanwhile}"
    return UnsafeError(msg, hint="try again; nothing was changed")


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
    kernel was asked, empty where one was. Raises ``UnfitImageError`` where what came out is not
    right: readable to its end, of the codec that these texts configure for it, unpacked by its
    kernel; and ``UnsafeError`` before anything is built where no kernel could be asked, without
    ``unverified``.
    """
    if not unverified:
        require_engine(host, images)
    with building_place(host) as directory:
        ordered = sorted(images, key=_is_of_another)
        places = {image.path: directory / str(number) for number, image in enumerate(ordered)}
        built = tuple(_build(host, generator, image, places, texts, observer) for image in ordered)
        pairs = [(one.image, one.staged) for one in built]
        yield built, ask_kernels(host, pairs, unverified=unverified, observer=observer)


def _build(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    places: Mapping[Path, Path],
    texts: Mapping[Path, str],
    observer: BuildingObserver,
) -> RebuiltImage:
    directory, made_of = places[image.path], image.made_of and places.get(image.made_of)
    release = image.kernel_release
    setting = generator.configured(host, release, texts=texts, image=image).setting
    replaces = _identities(host, image)
    make_directory(directory)
    observer.doing(f"building {image.path} with {setting}")
    _make(host, generator, image, directory / "old", texts, made_of and made_of / "old")
    built = read_built(generator, directory / "old")
    require_codec(generator, image, built, setting)
    linted(host, image, built)
    _require_signed(host, generator, image, built, directory / "old")
    return RebuiltImage(
        image=image,
        staged=directory / "old",
        size_bytes=built.size_bytes,
        sha256=built.sha256,
        replaces=replaces,
    )
