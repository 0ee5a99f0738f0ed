"""How long samples take to decompress, in user space.

A sample is small enough to stay in the processor's caches, which the whole is not. So the samples
are taken in turns, each of which throws the others out, and how much longer the whole takes for
each byte is seen on the controls, of which there is both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from initadvisor.image.decompress import decompress
from initadvisor.model.codec import Codec, codec_of_magic
from initadvisor.model.errors import BadImageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host

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


def decompression_times(host: Host, streams: Sequence[Compressed]) -> list[tuple[float, ...] | str]:
    """Decompress each a few times, in turns; return processor times in ms, or what is wrong."""
    found: list[tuple[float, ...] | str] = [_wrong_format(stream) or () for stream in streams]
    for _ in range(_ROUNDS):
        for index, stream in enumerate(streams):
            times = found[index]
            if isinstance(times, str) or sum(times) > _LONG_MS:
                continue
            took = _once(host, stream)
            found[index] = took if isinstance(took, str) else (*times, took)
    return found


def _wrong_format(stream: Compressed) -> str | None:
    stream.file.seek(0)
    if codec_of_magic(stream.file.read(2)) is stream.codec:
        return None
    return f"something that is not {stream.codec}"


def _once(host: Host, stream: Compressed) -> float | str:
    started = host.clock.thread_cpu_ns()
    try:
        pieces = decompress(stream.codec, stream.file, 0, stream.size_bytes)
        content_bytes = sum(len(piece) for piece in pieces)
    except BadImageError as err:
        return f"something that cannot be unpacked ({err.message})"
    if content_bytes != stream.content_bytes:
        return "something else than it was given"
    return (host.clock.thread_cpu_ns() - started) / 1e6
