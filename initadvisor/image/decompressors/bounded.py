"""Running the decompressor objects of ``bz2`` and ``lzma``, which are alike, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.reader import CHUNK_BYTES

if TYPE_CHECKING:
    from bz2 import BZ2Decompressor
    from collections.abc import Callable, Generator
    from lzma import LZMADecompressor

    from initadvisor.image.reader import Reader


_INPUT_BYTES = 1 << 18


def bounded_decompress(
    decompressor: BZ2Decompressor | LZMADecompressor,
    reader: Reader,
    *,
    name: str,
    error: type[Exception],
    cut: Callable[[bytes], int] = len,
) -> Generator[bytes, None, None]:
    """Unpack to the end of the stream and leave the reader just behind it.

    ``error`` is what the library raises for damaged data. ``cut`` tells how much of the input that
    was read is to be used before more is read; all output of that comes before the next call.
    """
    start = reader.position
    unpacked = b""
    while not decompressor.eof:
        # bz2 may have more output although it says that it needs input.
        data = b"" if unpacked else _input(reader, cut, f"the {name} stream that starts at {start}")
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


def _input(reader: Reader, cut: Callable[[bytes], int], what: str) -> bytes:
    data = reader.read(_INPUT_BYTES)
    if not data:
        reader.fail_truncated(what)
    used = cut(data)
    reader.position -= len(data) - used
    return data[:used]
