"""Which image is asked about, and which generator's commands make its candidates.

Where there is no real one, it is an initramfs of this machine's own modules and programs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.generators.detect import detect_generator, generator_of_image
from initadvisor.generators.files import with_stream_size
from initadvisor.host.files import free_bytes, make_directory, remove_partial, whole_file
from initadvisor.host.lock import lock_file, locked
from initadvisor.host.process import piped
from initadvisor.image.cpio import CpioWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents


_SAMPLE_COMPRESSORS = (Setting.parse("zstd"), Setting.parse("gzip"))
"""What a sample is compressed with: the usual default, or what every system has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An image file, and the generator that makes it, None if only its content can tell.

    ``installed``: it is one that this machine's generator makes. ``sample``: nothing can boot it.
    """

    path: Path
    generator: Generator | None = None
    installed: InstalledImage | None = None
    sample: bool = False

    def made_by(self, contents: ImageContents) -> Generator:
        """Return whose commands make its candidates."""
        return self.generator or generator_of_image(contents.generator)


def find_target(host: Host, image: Path | None) -> Target:
    """Return the image at ``image``, or without that the one this machine boots by default.

    Raises ``InitadvisorError`` where this machine has no image, ``NeedsRootError`` where only root
    may look, ``UnsafeError`` on systems that are not supported.
    """
    if image is not None:
        return Target(path=image)
    hint = "name an image (--image FILE, contents FILE), or see a sample: recommend --sample"
    generator, installed = default_image(host, "find this machine's initramfs", hint=hint)
    return Target(path=installed.path, generator=generator, installed=installed)


def default_image(
    host: Host, purpose: str, *, hint: str | None = None
) -> tuple[Generator, InstalledImage]:
    """Return this machine's generator and the image that boots by default.

    Raises ``InitadvisorError`` where there is none, which says that ``purpose`` cannot be done.
    """
    generator = detect_generator(host)
    images = generator.images(host) if generator else ()
    if generator is None or not images:
        lack = f"no image of {generator.NAME}" if generator else "no generator of initramfs images"
        msg = f"cannot {purpose}: {lack} was found below {host.root}"
        raise InitadvisorError(msg, hint=hint)
    return generator, images[0]


def sample_target(host: Host) -> Target:
    """Make a sample image, with the commands of this machine's generator where it has one."""
    generator = detect_generator(host) or unknown
    for setting in _SAMPLE_COMPRESSORS:
        command = generator.compressor(host, setting)
        if host.runner.which(command[0]):
            return Target(path=make_sample(host, command), generator=generator, sample=True)
    msg = "cannot make a sample: neither zstd nor gzip is installed"
    raise ProgramError(msg, hint="install zstd")


SAMPLE_BYTES = 80_000_000
"""Unpacked size that is aimed at: what dracut and mkinitcpio make on ordinary machines."""

SMALLEST_BYTES = 60_000_000
_MODULES_SHARE = 0.6
_LARGEST_FILE_BYTES = 8_000_000
_TIMEOUT_S = 600
_PLACES = ("/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picked:
    path: Path
    name: str
    size: int
    mtime_ns: int


def make_sample(host: Host, compressor: Sequence[str]) -> Path:
    """Make an image of this machine's kernel modules, programs and libraries, and return its path.

    It is at least 60 MB unpacked, and the same as long as the files are the same. ``compressor`` is
    the command that reads the cpio and writes the image. Nothing of it can boot.

    Raises ``InitadvisorError`` where the machine has too little to take, or too little room.
    """
    picked = _pick(host)
    total = sum(file.size for file in picked)
    if total < SMALLEST_BYTES:
        msg = (
            f"cannot make a sample: only {total / 1e6:.0f} MB of modules, programs and libraries "
            f"are readable below {host.root}"
        )
        raise InitadvisorError(
            msg,
            hint="name an image with --image FILE",
        )
    directory = host.cache_dir() / "sample"
    make_directory(directory)
    target = directory / f"sample-{_digest(picked, compressor)}.img"
    if target.exists():
        return target
    if free_bytes(directory) < 3 * total:
        msg = f"cannot make a sample in {directory}: it needs {3 * total / 1e6:.0f} MB"
        raise InitadvisorError(
            msg,
            hint="make room, or set CACHE_DIRECTORY to a place that has it",
        )
    with locked(lock_file(host.cache_dir(), "sample"), what="making a sample"):
        remove_partial(directory)
        with (
            tempfile.TemporaryFile(dir=directory) as payload,
            whole_file(target, mode=0o600) as image,
        ):
            _write_archive(payload, picked)
            payload.flush()
            command = with_stream_size(compressor, os.fstat(payload.fileno()).st_size)
            with piped(payload) as source:
                host.runner.run(command, timeout_s=_TIMEOUT_S, stdin=source, stdout=image)
    return target


def _pick(host: Host) -> list[_Picked]:
    """Take kernel modules up to their share, then programs and libraries, in the order of names."""
    picked: list[_Picked] = []
    room = SAMPLE_BYTES * _MODULES_SHARE
    for file in _files(host, "/usr/lib/modules"):
        if file.path.name.split(".ko")[0] != file.path.name and file.size <= room:
            picked.append(file)
            room -= file.size
    seen = set()
    room = SAMPLE_BYTES - sum(file.size for file in picked)
    for place in _PLACES:
        for file in _files(host, place, deep=False):
            if file.size <= room and file.path.name not in seen:
                seen.add(file.path.name)
                picked.append(file)
                room -= file.size
    return picked


def _files(host: Host, place: str, *, deep: bool = True) -> Iterator[_Picked]:
    """Yield the readable regular files of a directory, in the order of their names."""
    base = host.path(place)
    for path in sorted(base.rglob("*") if deep else base.glob("*")):
        try:
            status = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= _LARGEST_FILE_BYTES:
            name = str(PurePosixPath(place.lstrip("/")) / path.relative_to(base))
            yield _Picked(path=path, name=name, size=status.st_size, mtime_ns=status.st_mtime_ns)


def _digest(picked: Sequence[_Picked], compressor: Sequence[str]) -> str:
    content = hashlib.sha256(repr(tuple(compressor)).encode())
    for file in picked:
        content.update(f"{file.name}\0{file.size}\0{file.mtime_ns}\n".encode())
    return content.hexdigest()[:16]


def _write_archive(file: IO[bytes], picked: Sequence[_Picked]) -> None:
    made: set[PurePosixPath] = set()
    with CpioWriter(file) as writer:
        for item in picked:
            for parent in reversed(PurePosixPath(item.name).parents[:-1]):
                if parent not in made:
                    made.add(parent)
                    writer.directory(str(parent))
            with contextlib.suppress(OSError):  # gone or closed to us since it was listed
                writer.file(item.name, item.path.read_bytes(), mode=0o755)
