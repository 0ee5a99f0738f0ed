"""Running the decompressor objects of ``bz2`` and ``lzma``, which are alike, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from initadvisor.image.reader import CHUNK_BYTES
from initadvisor.model.errors import BadImageError

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.image.reader import Reader

_INPUT_BYTES = 1 << 18


class Decompressor(Protocol):
    """What ``bz2.BZ2Decompressor`` and ``lzma.LZMADecompressor`` have in common."""

    @property
    def eof(self) -> bool:
        """The stream's end was reached."""
        ...

    @property
    def needs_input(self) -> bool:
        """Nothing more comes without more input."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The input beyond the stream's end."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Take input, give at most ``max_length`` bytes of output."""
        ...


def drain(
    decompressor: Decompressor, reader: Reader, *, name: str, error: type[Exception]
) -> Generator[bytes, None, None]:
    """Unpack to the end of the stream and leave the reader just behind it.

    ``error`` is what the library raises for damaged data.
    """
    start = reader.position
    while not decompressor.eof:
        data = reader.read(_INPUT_BYTES) if decompressor.needs_input else b""
        if decompressor.needs_input and not data:
            reader.fail_truncated(f"the {name} stream that starts at {start}")
        try:
            unpacked = decompressor.decompress(data, CHUNK_BYTES)
        except error as err:
            msg = f"{name} data is damaged ({err}) in the stream that starts"
            raise BadImageError(msg, offset=start) from err
        except MemoryError as err:
            msg = f"no memory to unpack the {name} stream that starts"
            raise BadImageError(msg, offset=start) from err
        if unpacked:
            yield unpacked
    reader.position -= len(decompressor.unused_data)
