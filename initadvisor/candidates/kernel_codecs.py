"""A kernel compressed with every codec that its build offers, as its Makefiles do it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from initadvisor.candidates.decompression import ROUNDS, Stream, time_once
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError, InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.files import free_bytes, make_directory
from initadvisor.host.hardware import cpu_model, memory
from initadvisor.host.process import piped
from initadvisor.host.run import Priority
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.kernel_file import KernelFormat
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.image.kernel_file import KernelFile


_TIMEOUT_S = 1800.0
_SCHEMA = 1

_COMMANDS: Final[dict[Codec, tuple[str, ...]]] = {
    Codec.LZ4: ("lz4", "-q", "-l", "-9"),
    Codec.BZIP2: ("bzip2", "-9"),
    Codec.GZIP: ("gzip", "-n", "-9"),
    Codec.LZOP: ("lzop", "-9"),
    Codec.XZ: ("xz", "--check=crc32", "--lzma2=dict=32MiB"),
    Codec.LZMA: ("lzma", "-9"),
    Codec.ZSTD: ("zstd", "-q", "-22", "--ultra"),
}
"""What builds of kernels run (scripts/Makefile.lib, scripts/xz_wrap.sh), the quick ones first."""

_PEAK_MB: Final = {Codec.XZ: 400, Codec.LZMA: 700, Codec.ZSTD: 1000}
"""What they need in memory, where that is much."""

_OF_ZBOOT: Final = frozenset({Codec.GZIP, Codec.ZSTD})
"""What EFI zboot images may have in all releases (Makefile.zboot); older ones had more."""


def kernel_command(codec: Codec, kind: KernelFormat) -> tuple[str, ...]:
    """Return what compresses a kernel of this format, from stdin to stdout."""
    command = _COMMANDS[codec]
    if codec is Codec.XZ and kind is KernelFormat.BZIMAGE:
        return (*command[:2], "--x86", *command[2:])
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedKernel:
    """What a kernel would be with another codec.

    ``payload_bytes``: what is compressed, then; ``decompress_ms``: processor time in user space.
    """

    codec: Codec
    payload_bytes: int
    decompress_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedKernels:
    """A kernel with each codec that could be tried, and why others could not."""

    schema: int = _SCHEMA
    cpu: str | None = None
    kernels: tuple[CompressedKernel, ...]
    skipped: tuple[SkippedSetting, ...] = ()


class CompressObserver(Protocol):
    """Receives progress events."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Something goes on, in words: ``done`` of its ``of`` steps, where they can be counted."""
        ...


def compressed_kernels(
    host: Host, file: IO[bytes], kernel: KernelFile, sha256: str, *, observer: CompressObserver
) -> CompressedKernels:
    """Compress the kernel in ``file`` anew with every other codec, and time the decompression.

    That takes minutes. ``sha256``: of the payload; what came of it is kept by that, and not done
    again on this processor. Raises ``InitadvisorError`` where there is no room, ``BadImageError``
    for a damaged payload.
    """
    record = host.cache_dir() / "kernels" / f"{sha256}.json"
    kept = read_cached(record, CompressedKernels)
    known = kept.kernels if kept and _usable(kept, host) else ()
    codecs = [codec for codec in _offered(kernel.format) if codec is not kernel.codec]
    missing = [codec for codec in codecs if codec not in {one.codec for one in known}]
    if not missing:
        return CompressedKernels(kernels=known)
    directory = host.cache_dir() / "kernels"
    make_directory(directory)
    if free_bytes(directory) < 2 * kernel.unpacked_bytes:
        msg = f"no room in {directory} to compress a kernel of {kernel.unpacked_bytes / 1e6:.0f} MB"
        raise InitadvisorError(msg, hint="make room, or set CACHE_DIRECTORY to a place that has it")
    made, skipped = list(known), []
    with tempfile.TemporaryFile(dir=directory) as payload:
        for piece in decompress(
            kernel.codec,
            file,
            kernel.payload.offset,
            kernel.payload.size_bytes,
            most_bytes=kernel.unpacked_bytes,
        ):
            payload.write(piece)
        payload.flush()
        for number, codec in enumerate(missing):
            observer.doing(f"compressing the kernel with {codec}", done=number, of=len(missing))
            try:
                made.append(_compressed(host, codec, kernel, payload, directory))
            except InitadvisorError as err:
                skipped.append(SkippedSetting(setting=Setting(codec), reason=err.message))
            else:
                found = CompressedKernels(cpu=cpu_model(host), kernels=tuple(made))
                keep(record, found, what="the sizes of kernels")
    return CompressedKernels(kernels=tuple(made), skipped=tuple(skipped))


def _offered(kind: KernelFormat) -> Sequence[Codec]:
    match kind:
        case KernelFormat.BZIMAGE:
            return tuple(_COMMANDS)
        case KernelFormat.ZBOOT:
            return [codec for codec in _COMMANDS if codec in _OF_ZBOOT]
        case KernelFormat.WHOLE | KernelFormat.PLAIN:
            return ()


def _usable(kept: CompressedKernels, host: Host) -> bool:
    """Tell whether what is read back is of this program and processor, and of possible figures."""
    return (kept.schema, kept.cpu) == (_SCHEMA, cpu_model(host)) and all(
        one.payload_bytes > 0 and one.decompress_ms and min(one.decompress_ms) > 0
        for one in kept.kernels
    )


def _compressed(
    host: Host, codec: Codec, kernel: KernelFile, payload: IO[bytes], directory: Path
) -> CompressedKernel:
    command = kernel_command(codec, kernel.format)
    if host.runner.which(command[0]) is None:
        msg = f"{command[0]} is not installed"
        raise InitadvisorError(msg)
    needed_mb, found = _PEAK_MB.get(codec, 0), memory(host)
    if found and needed_mb > found.available_bytes / 1e6:
        msg = f"it needs {needed_mb} MB of memory, {found.available_bytes / 1e6:.0f} are free"
        raise InitadvisorError(msg)
    with tempfile.NamedTemporaryFile(dir=directory) as target:
        with piped(payload) as source:
            host.runner.run(
                command,
                timeout_s=_TIMEOUT_S,
                stdin=source,
                stdout=target,
                priority=Priority.IDLE,
            )
        size_bytes = target.seek(0, os.SEEK_END)
        stream = Stream(
            path=Path(target.name),
            offset=0,
            size_bytes=size_bytes,
            codec=codec,
            sha256="",
            most_bytes=kernel.unpacked_bytes,
        )
        try:
            times_ms = tuple(time_once(host, stream) for _ in range(ROUNDS))
        except BadImageError as err:
            msg = f"what {codec} wrote cannot be unpacked: {err.message}"
            raise InitadvisorError(msg) from err
    return CompressedKernel(codec=codec, payload_bytes=size_bytes, decompress_ms=times_ms)
