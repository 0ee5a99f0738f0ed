"""Does this machine's own kernel unpack an image: asked before anything boots it."""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.candidates.cache import Cache
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError, InitadvisorError, LostVMError, UnsafeError
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.storage.cold_read import drop_from_memory
from initadvisor.image.contents import LARGEST_BYTES, Verdict, too_large
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from initadvisor.records.lab import Engine, Unpacked, Verification
from initadvisor.store.store import open_store
from initadvisor.target.kernel_config import find_kernel_config
from initadvisor.target.source import initramfs_alone
from initadvisor.vm.boot import boot
from initadvisor.vm.choose import FOR_VERIFYING, Wanted, machine_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents
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
        return Verified(
            path=path,
            verification=verification,
            problems=tuple(_problems(host, path, read, verification)),
            notes=tuple(_notes(host, read, verification)),
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


def _problems(host: Host, path: Path, read: _Read, verification: Verification) -> list[str]:
    found = []
    if verification.unpacked is Unpacked.REFUSED:
        release = verification.kernel.release
        found.append(f"Linux {release} does not unpack it: {verification.reason}")
    if read.problem:
        found.append(read.problem)
    if doubt := _not_as_built(host, path, read.image_sha256):
        found.append(doubt)
    if read.contents:
        release = verification.kernel.release
        result = lint(read.contents, find_kernel_config(host, release), release)
        if result.verdict is Verdict.REFUSED:
            found.extend(f"lint refuses it: {reason}" for reason in result.reasons)
        if not _checksums_hold(read.contents):
            found.append("it is damaged: a checksum in it is wrong, at which kernels do not look")
    return found


def _checksums_hold(contents: ImageContents) -> bool:
    return all(
        getattr(facts, "checksum_ok", True)
        for segment in contents.segments
        for facts in segment.facts
    )


def _notes(host: Host, read: _Read, verification: Verification) -> Iterator[str]:
    if read.contents is None:
        return
    release = verification.kernel.release
    result = lint(read.contents, find_kernel_config(host, release), release)
    yield from result.notes
    unchecked = {s.codec for s in read.contents.segments if s.codec in _WITHOUT_CHECKSUM}
    if unchecked:
        names = " and ".join(sorted(unchecked))
        yield f"what is stored as {names} has no checksum: a flipped bit in it shows in no way"
    meant, used = read.contents.kernel_release, verification.kernel.release
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
