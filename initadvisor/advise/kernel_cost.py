"""What the kernel itself costs each boot, and what it would with another codec: all predicted."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np

from initadvisor.candidates.controls import is_far, window_log
from initadvisor.candidates.decompression import ROUNDS, BenchObserver, Stream, decompression_ms
from initadvisor.candidates.kernel_codecs import (
    CompressObserver,
    compressed_kernels,
    kernel_command,
)
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Evidence
from initadvisor.decide.costs import self_extraction_times, summary
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.image.contents import ByteRange
from initadvisor.image.kernel_file import KernelFormat, read_kernel_file
from initadvisor.image.pe import read_uki
from initadvisor.vm.kernel import NAMED, find_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from initadvisor.advise.decision_input import DecisionResult, Unpacking
    from initadvisor.candidates.kernel_codecs import CompressedKernel
    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.arrays import Floats
    from initadvisor.host import Host
    from initadvisor.image.kernel_file import KernelFile
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.target.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCodec:
    """What a kernel would take and cost with another codec, and how much sooner it would be."""

    codec: Codec
    size_bytes: int
    boot_ms: Estimate
    saving_ms: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCost:
    """What reading a kernel takes, and its decompression by itself: ``boot_ms``.

    ``others``: what it would with the codecs that its build offers, the cheapest first; None where
    that was not asked for.
    """

    path: Path
    file: KernelFile
    boot_ms: Estimate
    others: tuple[OtherCodec, ...] | None = None
    skipped: tuple[SkippedSetting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPricing:
    """Prices a kernel by what is known of the machine that reads and unpacks it."""

    unpacking: Unpacking
    result: DecisionResult
    seed: int

    def draws(
        self, kind: KernelFormat, codec: Codec, size_bytes: int, samples_ms: Sequence[float]
    ) -> Floats:
        """Return what it costs in ms on each of the machines that may be this one."""
        parameters = self.result.posterior_costs.posterior.parameters
        read_ms = parameters.read_s_per_mb * size_bytes / 1000
        if codec is Codec.CAT:
            return np.asarray(read_ms)
        far = is_far(window_log(codec, kernel_command(codec, kind), level=None))
        row = self.unpacking.table.row(codec, far=far)
        unpack_ms = self_extraction_times(
            parameters,
            # A kernel decompresses itself in one go, into memory that is there.
            self.unpacking.scaled(samples_ms, row, buffer_mb=0.0),
            row.log_sd,
            seed=self.seed + list(Codec).index(codec),
        )
        return np.asarray(read_ms + unpack_ms)


class KernelObserver(BenchObserver, CompressObserver, Protocol):
    """Receives progress events."""


def kernel_cost(
    host: Host,
    source: Source,
    release: str | None,
    pricing: KernelPricing,
    *,
    compress: bool,
    observer: KernelObserver,
) -> KernelCost | None:
    """Price the kernel of an image; with ``compress`` with other codecs, too, which takes minutes.

    None for an image that is for no kernel, or for one that this machine does not have. Raises
    ``InitadvisorError`` where this machine's own cannot be read, or is damaged.
    """
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(_opened(host, source, release))
        if found is None:
            return None
        path, file, where = found
        kernel = read_kernel_file(file, where)
        payload = kernel.payload
        sha256 = sha256_of(file, offset=payload.offset, size_bytes=payload.size_bytes)
        stream = Stream(
            path=path,
            offset=payload.offset,
            size_bytes=payload.size_bytes,
            codec=kernel.codec,
            sha256=sha256,
            most_bytes=kernel.unpacked_bytes,
        )
        rounds = ROUNDS if compress else 1
        times = decompression_ms(
            host, [stream], rounds=rounds, seed=pricing.seed, observer=observer
        )
        today = pricing.draws(kernel.format, kernel.codec, kernel.size_bytes, times[sha256])
        source_of = str(Evidence.BENCH)
        cost = KernelCost(path=path, file=kernel, boot_ms=summary(today, source_of))
        if not compress:
            return cost
        made = compressed_kernels(host, file, kernel, sha256, observer=observer)

        def other(one: CompressedKernel) -> OtherCodec:
            size_bytes = kernel.size_bytes - payload.size_bytes + one.payload_bytes
            draws = pricing.draws(kernel.format, one.codec, size_bytes, one.decompress_ms)
            return OtherCodec(
                codec=one.codec,
                size_bytes=size_bytes,
                boot_ms=summary(draws, source_of),
                saving_ms=summary(today - draws, source_of),
            )

        others = sorted(map(other, made.kernels), key=lambda one: -one.saving_ms.middle)
        return KernelCost(
            path=path,
            file=kernel,
            boot_ms=cost.boot_ms,
            others=tuple(others),
            skipped=made.skipped,
        )


@contextlib.contextmanager
def _opened(
    host: Host, source: Source, release: str | None
) -> Iterator[tuple[Path, IO[bytes], ByteRange] | None]:
    """Open the kernel that an image is for: that of a unified one is inside."""
    if source.contents.uki:
        size_bytes = source.file.seek(0, 2)
        kernel = read_uki(source.file, size_bytes).kernel
        yield (source.path, source.file, kernel) if kernel else None
        return
    if not release:
        yield None
        return
    named = (host.path(name.format(release=release)) for name in NAMED)
    path = next((path for path in named if path.exists()), None)
    if path is None and source.installed:
        path = find_kernel(host, release)
    if path is None:
        yield None
        return
    with open_regular(path) as file:
        yield path, file, ByteRange(offset=0, size_bytes=file.seek(0, 2))
