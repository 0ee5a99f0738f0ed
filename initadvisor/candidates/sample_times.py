"""How long samples take to decompress, in user space.

A sample is small enough to stay in the processor's caches, which the whole is not. So the samples
are taken in turns, each of which throws the others out, and how much longer the whole takes for
each byte is seen on the controls, of which there is both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.core.errors import BadImageError
from initadvisor.image.decompressors.decompress import open_stream
from initadvisor.image.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.image.stream_facts import StreamFacts


_ROUNDS = 3
_LONG_MS = 200.0
"""What has taken longer than this is not timed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """A file that holds one compressed stream, and how long its content is."""

    codec: Codec
    file: IO[bytes]
    size_bytes: int
    content_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decompressed:
    """How long that took each time, in ms of processor time, and what the streams say."""

    times_ms: tuple[float, ...] = ()
    facts: tuple[StreamFacts, ...] = ()


def decompression_times(host: Host, streams: Sequence[Compressed]) -> list[Decompressed | str]:
    """Decompress each a few times, in turns; return what was found, or what is wrong."""
    found: list[Decompressed | str] = [_wrong_format(s) or Decompressed() for s in streams]
    for _ in range(_ROUNDS):
        for index, stream in enumerate(streams):
            known = found[index]
            if isinstance(known, str) or sum(known.times_ms) > _LONG_MS:
                continue
            now = _once(host, stream)
            found[index] = (
                now
                if isinstance(now, str)
                else Decompressed(times_ms=(*known.times_ms, *now.times_ms), facts=now.facts)
            )
    return found


def _wrong_format(stream: Compressed) -> str | None:
    stream.file.seek(0)
    if codec_of_magic(stream.file.read(2)) is stream.codec:
        return None
    return f"something that is not {stream.codec}"


def _once(host: Host, stream: Compressed) -> Decompressed | str:
    started = host.clock.thread_cpu_ns()
    try:
        content_bytes, facts = _read_through(stream)
    except BadImageError as err:
        return f"something that cannot be unpacked ({err.message})"
    if content_bytes != stream.content_bytes:
        return "something else than it was given"
    took_ms = (host.clock.thread_cpu_ns() - started) / 1e6
    return Decompressed(times_ms=(took_ms,), facts=facts)


def _read_through(stream: Compressed) -> tuple[int, tuple[StreamFacts, ...]]:
    """Return how much was compressed, and each different thing that its streams say once."""
    reader = Reader(stream.file, 0, stream.size_bytes)
    content_bytes = 0
    facts: dict[StreamFacts, None] = {}
    while reader.left:
        pieces = open_stream(stream.codec, reader, verify=False)
        while True:
            try:
                content_bytes += len(next(pieces))
            except StopIteration as end:
                facts[end.value] = None
                break
    return content_bytes, tuple(facts)
