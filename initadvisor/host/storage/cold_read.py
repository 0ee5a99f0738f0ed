"""How fast a file is read that is not in memory, and what a few such reads tell of the next one.

The machine's memory is not emptied for it. mincore(2) is called with ctypes: Python has no call
for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import statistics
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Estimate
from initadvisor.host.files import direct_reads, failing_as, open_regular
from initadvisor.host.load import others_wait
from initadvisor.host.storage.mounts import device_of
from initadvisor.records.storage import ColdRead, DeviceKind, ReadWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from initadvisor.host import Host


_BLOCK_BYTES = 4 << 20
_MOST_BYTES = 256 << 20
_MOST_S = 20.0
_MOST_READ_S = 10.0


def cold_read(host: Host, path: Path, *, repeats: int = 5) -> ColdRead:
    """Read ``path`` several times as if for the first time.

    The file's own pages are dropped from memory (posix_fadvise(2)), then it is read past the page
    cache (O_DIRECT) where its file system can do that. At most 256 MiB are read each time, for at
    most 10 s, and after 20 s no other read begins. What a disk or a hypervisor keeps in memory of
    its own cannot be dropped: where the first read was much slower than the others, it counts, but
    not where others were at work: then any read may be slow.

    Raises ``NeedsRootError`` where only root may read the file, ``InitadvisorError`` where it is
    empty, no ordinary file, or fails to be read.
    """
    device = device_of(host, path)
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes == 0:
            msg = f"cannot measure how fast {path} is read: it is empty"
            raise InitadvisorError(msg)
        with failing_as(f"cannot read {path}"):
            samples, direct, resident, busy = _samples(host, file, repeats)
    method = "past the page cache (O_DIRECT)" if direct else "after dropping its pages"
    source = (
        f"{len(samples)} cold {'read' if len(samples) == 1 else 'reads'} of {path}"
        f" ({size_bytes / 1e6:.1f} MB) {method}, on {device.describe()}"
    )
    cached = 0.0 if direct else resident
    return ColdRead(
        speed_mb_s=beside_others(samples, source) if busy else next_read(samples, source),
        samples_mb_s=tuple(samples),
        device=device,
        warnings=tuple(
            doubts(samples, device.kind, size_bytes=size_bytes, resident=cached, busy=busy)
        ),
    )


def _samples(host: Host, file: IO[bytes], repeats: int) -> tuple[list[float], bool, float, bool]:
    """Return the speeds in MB/s, whether O_DIRECT was used, and how much stayed in memory.

    And whether others were at work after most of the reads.
    """
    started = host.clock.monotonic_ns()
    samples: list[float] = []
    resident, disturbed = 0.0, 0
    with direct_reads(file) as direct:
        for _ in range(repeats):
            drop_from_memory(file.fileno())
            resident = max(resident, resident_fraction(file))
            samples.append(_read_once(host, file.fileno()))
            disturbed += others_wait(host)
            if (host.clock.monotonic_ns() - started) / 1e9 > _MOST_S:
                break
        return samples, direct, resident, 2 * disturbed > len(samples)


def drop_from_memory(descriptor: int) -> None:
    """Drop the file's pages from memory; those not yet written have to be written first."""
    with contextlib.suppress(OSError):
        os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _read_once(host: Host, descriptor: int) -> float:
    """Return the speed in MB/s; the block is page-aligned, as direct reads demand."""
    with mmap.mmap(-1, _BLOCK_BYTES) as block:
        total = 0
        started = host.clock.monotonic_ns()
        while total < _MOST_BYTES:
            count = os.preadv(descriptor, [block], total)
            total += count
            if count < _BLOCK_BYTES or (host.clock.monotonic_ns() - started) / 1e9 > _MOST_READ_S:
                break
        elapsed_ns = host.clock.monotonic_ns() - started
    return total * 1e3 / max(elapsed_ns, 1)


_FAILED = ctypes.c_void_p(-1).value


def resident_fraction(file: IO[bytes]) -> float:
    """Return which part of the file's pages is in memory, 0 to 1.

    The kernel tells it only to who owns the file or may write to it, and calls every page resident
    otherwise (mm/mincore.c, ``can_do_mincore``); then, and where mincore fails, the answer is 0.
    """
    status = os.fstat(file.fileno())
    may_know = os.geteuid() in (0, status.st_uid) or os.access(
        f"/proc/self/fd/{file.fileno()}", os.W_OK
    )
    if not may_know or status.st_size == 0:
        return 0.0
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    )
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    address = libc.mmap(None, status.st_size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if address == _FAILED:
        return 0.0
    try:
        pages = -(-status.st_size // mmap.PAGESIZE)
        in_core = ctypes.create_string_buffer(pages)
        if libc.mincore(address, status.st_size, in_core) != 0:
            return 0.0
        return sum(byte & 1 for byte in in_core.raw) / pages
    finally:
        libc.munmap(address, status.st_size)


_SHORT_BYTES = 1 << 20
_RESIDENT_LIMIT = 0.02
_FIRST_FACTOR = 1.5
_T_95 = (math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t, 97.5 % quantile, by degrees of freedom; beyond the table the normal one's 1.96."""

_SINGLE_FACTOR = 2.0
"""How far, either way, a next read may be from a single one."""


def next_read(samples: Sequence[float], source: str) -> Estimate:
    """Return the mean and the interval in which the next cold read lies with 95 % probability.

    Speeds are positive and scatter in proportion, so the interval is made of their logarithms.
    """
    if _first_was_cold(samples):
        first = samples[0]
        return Estimate(
            mean=first,
            low=first / _SINGLE_FACTOR,
            high=max(samples),
            source=f"the first of {source}",
        )
    mean = statistics.fmean(samples)
    if len(samples) == 1:
        factor = _SINGLE_FACTOR
    else:
        freedom = len(samples) - 1
        quantile = _T_95[freedom] if freedom < len(_T_95) else 1.96
        spread = statistics.stdev(math.log(sample) for sample in samples)
        factor = math.exp(quantile * spread * math.sqrt(1 + 1 / len(samples)))
    return Estimate(mean=mean, low=mean / factor, high=mean * factor, source=source)


def beside_others(samples: Sequence[float], source: str) -> Estimate:
    """Return the same where others were at work: the disk may be faster than all that was seen."""
    return Estimate(
        mean=statistics.median(samples),
        low=min(samples) / _SINGLE_FACTOR,
        high=max(samples) * _SINGLE_FACTOR,
        source=f"{source}, beside other work",
    )


def _first_was_cold(samples: Sequence[float]) -> bool:
    """Tell whether what lies below the kernel seems to have answered all but the first read."""
    return len(samples) > 1 and samples[0] * _FIRST_FACTOR < min(samples[1:])


def doubts(
    samples: Sequence[float],
    kind: DeviceKind,
    *,
    size_bytes: int,
    resident: float,
    busy: bool = False,
) -> Iterator[ReadWarning]:
    """Yield why the speed may not be that of the device.

    ``resident``: which part of the file was in memory when a read began. ``busy``: others were at
    work.
    """
    if busy:
        yield ReadWarning.BUSY
    if resident > _RESIDENT_LIMIT:
        yield ReadWarning.CACHED
    bound = kind.plausible_mb_s
    if bound is not None and max(samples) > bound:
        yield ReadWarning.IMPLAUSIBLE
    if _first_was_cold(samples) and not busy:
        yield ReadWarning.FIRST_SLOWER
    if kind is DeviceKind.VIRTIO:
        yield ReadWarning.VIRTUAL
    if kind is DeviceKind.NONE:
        yield ReadWarning.NO_DEVICE
    if size_bytes < _SHORT_BYTES:
        yield ReadWarning.SHORT
