"""The kernel that a virtual machine boots: the very file that this machine boots."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import BadImageError, InitadvisorError, NeedsRootError
from initadvisor.host.files import append_range, failing_as, free_bytes, open_regular, sha256_of
from initadvisor.image.pe import read_uki
from initadvisor.records.lab import LabKernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host
    from initadvisor.image.contents import ByteRange


_HEADER_BYTES = 0x210
_VERSION_BYTES = 256
_HEADER_MAGIC = slice(0x202, 0x206)
_VERSION_POINTER = slice(0x20E, 0x210)
NAMED = ("/usr/lib/modules/{release}/vmlinuz", "/boot/vmlinuz-{release}")
"""Where a kernel is that has its release in its path."""

_ELSEWHERE = (
    "/boot/vmlinuz-*",
    "/boot/*/*/linux",
    "/efi/*/*/linux",
    "/efi/vmlinuz-*",
    "/efi/EFI/Linux/*.efi",
    "/boot/EFI/Linux/*.efi",
    "/boot/efi/EFI/Linux/*.efi",
)
"""Where there is no release in the name (Arch), or boot entries of the specification's types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootableKernel:
    """A kernel, and the file QEMU can start it from: its own, or taken out of a UKI."""

    kernel: LabKernel
    file: Path


@contextlib.contextmanager
def bootable(path: Path) -> Iterator[BootableKernel]:
    """Make the kernel in ``path`` (a bzImage or a UKI) bootable; the context ends with its files.

    Raises ``InitadvisorError`` for anything else.
    """
    with open_regular(path) as file:
        release, section = _release(file, path), _uki_kernel(file)
        if section is None and release is None:
            msg = f"cannot boot {path}: neither a kernel for x86 nor a unified kernel image"
            raise InitadvisorError(msg)
        kernel = LabKernel(path=str(path), sha256=sha256_of(file), release=release or "unknown")
        if section is None:
            yield BootableKernel(kernel=kernel, file=path)
            return
        with scratch_directory(section.size_bytes) as directory:
            taken_out = directory / "vmlinuz"
            with taken_out.open("wb") as target:
                append_range(target, file, offset=section.offset, size_bytes=section.size_bytes)
            yield BootableKernel(kernel=kernel, file=taken_out)


def find_kernel(host: Host, release: str) -> Path:
    """Return the file of the kernel ``release`` that this machine has.

    Raises ``InitadvisorError`` where there is none, ``NeedsRootError`` where only root may look.
    """
    denied: Path | None = None
    named = [host.path(name.format(release=release)) for name in NAMED]
    elsewhere = [
        path for pattern in _ELSEWHERE for path in sorted(host.root.glob(pattern.lstrip("/")))
    ]
    for path in (*named, *elsewhere):
        try:
            with open_regular(path) as file:
                if _release(file, path) == release:
                    return path
        except NeedsRootError:
            denied = denied or path
        except InitadvisorError:
            continue
    if denied:
        msg = f"cannot read the kernel {denied}: only root may"
        raise NeedsRootError(msg)
    msg = f"cannot find the kernel Linux {release} below {host.root}"
    raise InitadvisorError(msg, hint="initadvisor lab --kernel FILE names its file")


@contextlib.contextmanager
def scratch_directory(size_bytes: int) -> Iterator[Path]:
    """Give a directory for temporary files that is known to have room, and remove it.

    Raises ``InitadvisorError`` where there is no room.
    """
    directory = Path(tempfile.mkdtemp(prefix="initadvisor-"))
    try:
        if free_bytes(directory) < size_bytes:
            msg = f"no room for a temporary file of {size_bytes / 1e6:.0f} MB in {directory.parent}"
            raise InitadvisorError(msg, hint="set TMPDIR to a larger directory")
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _release(file: IO[bytes], path: Path) -> str | None:
    """Return the release that an x86 kernel's setup header names, None if it is no such kernel.

    Documentation/arch/x86/boot.rst, ``kernel_version``.
    """
    section = _uki_kernel(file)
    start = section.offset if section else 0
    with failing_as(f"cannot read {path}"):
        file.seek(start)
        header = file.read(_HEADER_BYTES)
        if header[_HEADER_MAGIC] != b"HdrS":
            return None
        file.seek(start + 0x200 + int.from_bytes(header[_VERSION_POINTER], "little"))
        version = file.read(_VERSION_BYTES)
    words = version.split(b"\0")[0].split()
    release = words[0].decode(errors="replace") if words else ""
    return release if release[:1].isdigit() and release.isprintable() else None


def _uki_kernel(file: IO[bytes]) -> ByteRange | None:
    file.seek(0, 2)
    size_bytes = file.tell()
    try:
        return read_uki(file, size_bytes).kernel
    except BadImageError:
        return None
