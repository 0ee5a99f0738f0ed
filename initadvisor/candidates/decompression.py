"""User-space decompression, timed: the weakest evidence of how long a kernel will take."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from initadvisor.core.codecs import Codec
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.hardware import cpu_model
from initadvisor.host.load import BUSY_PART, OthersLoad, is_quiet
from initadvisor.image.decompressors.decompress import decompress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from initadvisor.host import Host


ROUNDS = 3
_SCHEMA = 3
_SLOW_MS = 2000.0
_MOST_MS = 1e7
_SLOW_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One compressed segment of a file, and the digest of its image, under which it is known.

    ``most_bytes``: what is damaged if it unpacks to more.
    """

    path: Path
    offset: int
    size_bytes: int
    codec: Codec
    sha256: str
    most_bytes: int | None = None


class BenchObserver(Protocol):
    """Receives each sample as it comes."""

    def timed(self, stream: Stream, elapsed_ms: float) -> None:
        """Take note of one decompression."""
        ...


def decompression_ms(
    host: Host, streams: Sequence[Stream], *, rounds: int, seed: int, observer: BenchObserver
) -> dict[str, tuple[float, ...]]:
    """Time the decompression of each stream in this process; return CPU ms by image digest.

    Every round takes all of them in a new order, so that a disturbance hits them alike; each sample
    is kept on disk as it comes and counts in later runs on the same processor: where others used
    the processors meanwhile, until the machine is quiet.
    """
    quiet = cache(partial(is_quiet, host))
    known = {stream.sha256: list(_stored(host, stream, quiet)) for stream in streams}
    order = list(streams)
    shuffle = random.Random(seed).shuffle  # noqa: S311 - not for secrets
    for turn in range(rounds):
        shuffle(order)
        for stream in order:
            samples = known[stream.sha256]
            if len(samples) > turn or (
                turn >= _SLOW_ROUNDS and min(samples, default=0.0) > _SLOW_MS
            ):
                continue
            others = OthersLoad(host)
            samples.append(time_once(host, stream))
            _store(host, stream, samples, busy=others.part() > BUSY_PART)
            observer.timed(stream, samples[-1])
    return {digest: tuple(samples) for digest, samples in known.items()}


def remember(host: Host, stream: Stream, elapsed_ms: float) -> None:
    """Keep a sample that was taken elsewhere, where there is none yet."""
    if not _stored(host, stream, partial(is_quiet, host)):
        _store(host, stream, [elapsed_ms], busy=False)


_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_KEPT_BYTES, _LARGEST_BYTES = 1 << 26, 1 << 25


@cache
def _keep_freed_memory() -> None:
    """Have malloc keep what is freed, where it is glibc's (mallopt(3)).

    Depending on what was allocated before, it would give lz4's blocks of 8 MB back after each, and
    page faults would be most of what is timed. A kernel has one such buffer.
    """
    import ctypes  # slow to import, and only timing needs it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES)


def time_once(host: Host, stream: Stream) -> float:
    """Return the processor time of one decompression, in ms.

    A kernel that boots has a processor to itself for this; the time others take here is not its.
    """
    if stream.codec is Codec.CAT:
        return 0.0
    _keep_freed_memory()
    with stream.path.open("rb") as file:
        started = host.clock.thread_cpu_ns()
        for _ in decompress(
            stream.codec,
            file,
            stream.offset,
            stream.size_bytes,
            most_bytes=stream.most_bytes,
        ):
            pass
        return (host.clock.thread_cpu_ns() - started) / 1e6


def _file(host: Host, stream: Stream) -> Path:
    return host.cache_dir() / "decompression" / f"{stream.sha256}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptSamples:
    schema: int
    codec: Codec
    cpu: str | None
    samples_ms: tuple[float, ...]
    busy: bool


def _stored(host: Host, stream: Stream, quiet: Callable[[], bool]) -> tuple[float, ...]:
    """Return the samples of earlier runs on this processor; what cannot be read counts as none."""
    kept = read_cached(_file(host, stream), _KeptSamples)
    known = kept and (kept.schema, kept.cpu) == (_SCHEMA, cpu_model(host))
    plausible = kept and max(kept.samples_ms, default=0.0) <= _MOST_MS
    if not (kept and known and plausible) or (kept.busy and quiet()):
        return ()
    return kept.samples_ms


def _store(host: Host, stream: Stream, samples: Sequence[float], *, busy: bool) -> None:
    kept = _KeptSamples(
        schema=_SCHEMA,
        codec=stream.codec,
        cpu=cpu_model(host),
        samples_ms=tuple(samples),
        busy=busy,
    )
    keep(_file(host, stream), kept, what=f"the samples of {stream.path}")
