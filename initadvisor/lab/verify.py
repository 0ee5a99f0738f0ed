"""Asked before anything boots an image: is it whole, and does its own kernel unpack it."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from initadvisor.candidates.cache import Cache
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import (
    BadImageError,
    InitadvisorError,
    LostVMError,
    UnfitImageError,
    UnsafeError,
)
from initadvisor.core.text import shown
from initadvisor.generators.ukify import section_digests
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.lock import lock_file, locked
from initadvisor.host.storage.cold_read import drop_from_memory
from initadvisor.image.contents import LARGEST_BYTES, Verdict, too_large
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.difference import Aspect, ChangedEntry, ImageListing, difference
from initadvisor.image.lint import lint
from initadvisor.image.pe import read_uki
from initadvisor.image.scan import scan
from initadvisor.records.lab import Engine, Unpacked, Verification
from initadvisor.store.store import open_store
from initadvisor.target.kernel_config import find_kernel_config
from initadvisor.target.source import initramfs_alone
from initadvisor.vm.boot import boot
from initadvisor.vm.engines import (
    FOR_VERIFYING,
    NoEngineError,
    Wanted,
    machine_for,
    require_verifying,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from initadvisor.core.settings import Setting
    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents, Lint
    from initadvisor.image.difference import ImageDifference
    from initadvisor.store.store import Store
    from initadvisor.vm.boot import Boot
    from initadvisor.vm.machine import VirtualMachine


log = logging.getLogger(__name__)

_WITHOUT_CHECKSUM = (Codec.CAT, Codec.LZ4, Codec.LZMA)
_UNREADABLE_EXPANSION = 10
_UNREADABLE_BYTES = (64 << 20, 2 << 30)
"""How much memory an image gets whose content cannot be read here: by its size, within bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The outcome. ``problems`` are why the image must not be booted, empty where it may.

    ``notes`` are worth knowing and no problem. ``boot_s`` is what asking the kernel took, in
    seconds.
    """

    path: Path
    verification: Verification
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    boot_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What reading the image gave; ``contents`` is None where it cannot be read."""

    contents: ImageContents | None
    image_sha256: str
    content_sha256: str
    problem: str | None


def verify(
    host: Host,
    path: Path,
    *,
    kernel: Path | None = None,
    release: str | None = None,
    engine: Engine | None = None,
) -> Verified:
    """Have this machine's own kernel unpack the image, and record what came of it.

    A kernel unpacks some damaged images without a word. Therefore the bytes are read from the disk,
    not from memory; everything in them is decompressed and checked here, too; and a candidate must
    still be what was built. Without ``kernel`` it is the kernel whose modules are in the image, or
    that of ``release`` where it has none.

    Raises ``NoEngineError`` where no virtual machine can do it, ``LostVMError`` where it was lost,
    ``UnsafeError`` where the file is empty or too large to be an image, and ``InitadvisorError``
    where it is no ordinary file or changes meanwhile.
    """
    with ExitStack() as stack:
        file = stack.enter_context(open_regular(path))
        before = os.fstat(file.fileno())
        _require_plausible_size(path, before.st_size)
        drop_from_memory(file.fileno())
        read = _read(file)
        store = stack.enter_context(open_store(host))
        wanted = Wanted(
            release=(read.contents.kernel_release if read.contents else None) or release,
            kernel=kernel or (path if read.contents and read.contents.uki else None),
            engine=engine,
        )
        plain = initramfs_alone(path, file, read.contents, stack)
        started_ns = host.clock.monotonic_ns()
        room_bytes = _room(read, before.st_size)
        machine, result = _ask(host, store, wanted, plain, room_bytes, stack)
        boot_s = (host.clock.monotonic_ns() - started_ns) / 1e9
        _check_unchanged(path, file, before)
        verification = Verification(
            at=datetime.now(UTC),
            engine=machine.engine,
            kernel=machine.kernel,
            image_sha256=read.image_sha256,
            content_sha256=read.content_sha256,
            unpacked=Unpacked.YES if result.refusal is None else Unpacked.REFUSED,
            reason=result.refusal or "",
        )
        store.add_verification(verification)
        judged = None
        if read.contents:
            release = machine.kernel.release
            judged = lint(read.contents, find_kernel_config(host, release), release)
        return Verified(
            path=path,
            verification=verification,
            problems=tuple(_problems(host, path, read, judged, verification)),
            notes=tuple(_notes(read.contents, judged, verification)),
            boot_s=boot_s,
        )


def _ask(
    host: Host,
    store: Store,
    wanted: Wanted,
    image: Path,
    room_bytes: int,
    stack: ExitStack,
) -> tuple[VirtualMachine, Boot]:
    """Boot the image; where KVM loses the machine, emulation is asked instead."""
    machine = stack.enter_context(machine_for(host, store, FOR_VERIFYING, wanted))
    try:
        return machine, boot(host, machine, image, unpacked_bytes=room_bytes)
    except LostVMError as err:
        if machine.engine is not Engine.KVM or wanted.engine:
            raise
        log.warning("%s; trying emulation", err.message)
    machine = stack.enter_context(machine_for(host, store, (Engine.TCG,), wanted))
    return machine, boot(host, machine, image, unpacked_bytes=room_bytes)


def _require_plausible_size(path: Path, size_bytes: int) -> None:
    if size_bytes == 0:
        msg = f"{path} must not be booted: it is empty"
        raise UnsafeError(msg)
    if size_bytes > LARGEST_BYTES:
        msg = f"{path} must not be booted: {too_large(size_bytes)}"
        raise UnsafeError(msg)


def content_sha256(file: IO[bytes], contents: ImageContents) -> str:
    """Return the SHA-256 of what comes out of an image: its segments, decompressed, in a row.

    Raises ``BadImageError`` where a decoder finds damage.
    """
    digest = hashlib.sha256()
    for segment in contents.segments:
        for chunk in decompress(segment.codec, file, segment.offset, segment.size_bytes):
            digest.update(chunk)
    return digest.hexdigest()


def _read(file: IO[bytes]) -> _Read:
    try:
        contents = scan(file)
        initrd = contents.initrd
        return _Read(
            contents=contents,
            image_sha256=sha256_of(file, offset=initrd.offset, size_bytes=initrd.size_bytes),
            content_sha256=content_sha256(file, contents),
            problem=None,
        )
    except BadImageError as err:
        return _Read(
            contents=None,
            image_sha256=sha256_of(file),
            content_sha256="",
            problem=f"it cannot be read as an initramfs: {err.message}",
        )


def _room(read: _Read, size_bytes: int) -> int:
    if read.contents:
        return read.contents.room_bytes
    least, most = _UNREADABLE_BYTES
    return max(least, min(most, size_bytes * _UNREADABLE_EXPANSION))


def _check_unchanged(path: Path, file: IO[bytes], before: os.stat_result) -> None:
    """Raise where the kernel may have seen other bytes than those that were read."""
    after = os.fstat(file.fileno())
    named = path.stat()
    if any(
        (found.st_ino, found.st_size, found.st_mtime_ns)
        != (before.st_ino, before.st_size, before.st_mtime_ns)
        for found in (after, named)
    ):
        msg = f"{path} was changed while it was verified"
        raise InitadvisorError(msg, hint="try again")


def _problems(
    host: Host, path: Path, read: _Read, judged: Lint | None, verification: Verification
) -> Iterator[str]:
    if verification.unpacked is Unpacked.REFUSED:
        yield f"Linux {verification.kernel.release} does not unpack it: {verification.reason}"
    if read.problem:
        yield read.problem
    if doubt := _not_as_built(host, path, read.image_sha256):
        yield doubt
    if judged and judged.verdict is Verdict.REFUSED:
        yield from (f"lint refuses it: {reason}" for reason in judged.reasons)
    if read.contents and not _checksums_hold(read.contents):
        yield "it is damaged: a checksum in it is wrong, at which kernels do not look"


def _checksums_hold(contents: ImageContents) -> bool:
    return all(
        getattr(facts, "checksum_ok", True)
        for segment in contents.segments
        for facts in segment.facts
    )


def _notes(
    contents: ImageContents | None, judged: Lint | None, verification: Verification
) -> Iterator[str]:
    if contents is None or judged is None:
        return
    yield from judged.notes
    unchecked = {s.codec for s in contents.segments if s.codec in _WITHOUT_CHECKSUM}
    if unchecked:
        names = " and ".join(sorted(unchecked))
        yield f"what is stored as {names} has no checksum: a flipped bit in it shows in no way"
    meant, used = contents.kernel_release, verification.kernel.release
    if meant and meant != used:
        yield f"the modules in it are for Linux {meant}, not for {used}"


def _not_as_built(host: Host, path: Path, sha256: str) -> str | None:
    """Say what is wrong with a candidate of ours; None also for an image that is none."""
    cache = Cache(host)
    real = Path(os.path.realpath(path))
    if real.parent != Path(os.path.realpath(cache.directory)):
        return None
    built = cache.find(real.stem)
    if built is None:
        return "it was changed since it was built"
    if built.candidate.sha256 != sha256:
        return f"its bytes are not those that were built as {built.candidate.setting}"
    return None


class BuildingObserver(Protocol):
    """Receives progress events of a build."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Take note of what goes on now: ``done`` of its ``of`` steps, if they can be counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadImage:
    """An image that was read to its end.

    Of a unified kernel image, ``signed`` tells that it has a signature, and ``sections`` has the
    digest of each section, empty of the initramfs's own.
    """

    contents: ImageContents
    listing: ImageListing
    size_bytes: int
    sha256: str
    signed: bool
    sections: Mapping[str, str]


@contextmanager
def building_place(host: Host) -> Iterator[Path]:
    """Hand out an empty directory that only this user may look into: images may hold keys.

    It is gone afterwards. Raises ``InitadvisorError`` while another run builds.
    """
    directory = host.cache_dir() / "apply"
    with locked(lock_file(host.cache_dir(), "apply"), what="applying a setting"):
        try:
            _make_empty(directory)
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def read_image(path: Path) -> ReadImage:
    """Read an image to its end; raises ``BadImageError`` for what is none."""
    listing = ImageListing()
    with open_regular(path) as file:
        contents = scan(file, listing=listing)
        size_bytes = file.seek(0, os.SEEK_END)
        return ReadImage(
            contents=contents,
            listing=listing,
            size_bytes=size_bytes,
            sha256=sha256_of(file),
            signed=contents.uki and read_uki(file, size_bytes).signed,
            sections=section_digests(file, size_bytes) if contents.uki else {},
        )


def read_built(generator: Generator, path: Path) -> ReadImage:
    """Read what a generator has made; raises ``UnfitImageError`` where that is no whole image."""
    try:
        return read_image(path)
    except BadImageError as err:
        msg = f"{generator.NAME} ended without an error but wrote no whole image: {err.message}"
        raise UnfitImageError(msg, hint="nothing was changed") from err


def differs(before: ReadImage, after: ReadImage, noted: Collection[str]) -> ImageDifference:
    """Return in what two images differ, in their initramfs and beside it.

    ``noted``: paths inside that say how an image was made.
    """
    names = before.sections.keys() | after.sections.keys()
    sections = tuple(
        ChangedEntry(path=f"section {shown(name)}", aspects=(Aspect.CONTENT,))
        for name in sorted(names)
        if before.sections.get(name) != after.sections.get(name)
    )
    found = difference(before.listing, after.listing, ignored=noted)
    return replace(found, changed=(*sections, *found.changed))


def require_codec(
    generator: Generator, image: InstalledImage, built: ReadImage, setting: Setting
) -> None:
    """Raise ``UnfitImageError`` where a generator has fallen back to another codec."""
    found = built.contents.main.codec
    if found is not setting.codec:
        msg = f"{generator.NAME} made {image.path} with {found}, not with {setting.codec}"
        raise UnfitImageError(msg, hint="is the compressor installed? Nothing was changed")


def linted(host: Host, image: InstalledImage, built: ReadImage) -> Lint:
    """Return what lint says; raises ``UnfitImageError`` where its kernel would not unpack it."""
    release = image.kernel_release
    result = lint(built.contents, find_kernel_config(host, release), release)
    if result.verdict is Verdict.REFUSED:
        msg = f"Linux {release} would not unpack {image.path} as it was built: {result.reasons[0]}"
        raise UnfitImageError(msg, hint="nothing was changed")
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

    Raises ``UnfitImageError`` where a kernel does not unpack one, and ``UnsafeError`` where there
    is no virtual machine that could tell and the user has not taken that upon himself.
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
            raise UnfitImageError(msg, hint="nothing was changed")
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
