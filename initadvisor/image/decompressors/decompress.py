"""From compressed bytes to plain ones, in bounded memory; each library is loaded when needed."""

from __future__ import annotations

from importlib import import_module
from typing import IO, TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.core.errors import LOADING_FAILURES, BadImageError, LibraryError, libraries_told
from initadvisor.image.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from initadvisor.image.stream_facts import StreamFacts


MAGIC_BYTES = 13
"""How much of a stream ``codec_of`` wants to see."""

LIBRARIES: Final = {Codec.LZ4: "lz4", Codec.LZOP: "lzo", Codec.ZSTD: "zstandard"}
"""The Python modules for what the standard library cannot unpack."""


def missing_library(codec: Codec) -> LibraryError | None:
    """Return what keeps this codec's Python module from being used, None where nothing does.

    Not every distribution packages lzo.
    """
    try:
        import_module(LIBRARIES.get(codec, "zlib"))
    except LOADING_FAILURES as err:
        return LibraryError(err, f"verify {codec} data")
    return None


def decompress(
    codec: Codec, file: IO[bytes], offset: int, size_bytes: int, *, most_bytes: int | None = None
) -> Iterator[bytes | memoryview]:
    """Yield the plain content of a segment, piece by piece.

    Neither checksums that the kernel ignores (gzip, lzop) nor the archive inside are looked at, so
    the time this takes is that of the decompressor. A piece is valid until the next one is asked
    for. The file is read at its own positions, which must not change between pieces.

    Raises ``BadImageError`` for damaged data, a segment that ends inside a stream, or one that
    unpacks to more than ``most_bytes``.
    """
    reader = Reader(file, offset, offset + size_bytes)
    unpacked_bytes = 0
    while reader.left:
        pieces = [reader.read()] if codec is Codec.CAT else open_stream(codec, reader, verify=False)
        for piece in pieces:
            unpacked_bytes += len(piece)
            if most_bytes is not None and unpacked_bytes > most_bytes:
                msg = f"data that unpacks to more than {most_bytes} bytes"
                raise BadImageError(msg, offset=offset)
            yield piece


def open_stream(
    codec: Codec, reader: Reader, *, verify: bool
) -> Generator[bytes | memoryview, None, StreamFacts]:
    """Unpack the one stream that starts where the reader is, and leave the reader behind it.

    ``verify`` adds the checksums that the kernel ignores. The generator returns what the stream
    says about itself. Raises ``LibraryError`` where it needs a library that cannot be used.
    """
    stream: Generator[bytes | memoryview, None, StreamFacts]
    match codec:
        case Codec.CAT:
            raise ValueError(codec)
        case Codec.GZIP:
            from initadvisor.image.decompressors.gunzip import gunzip

            stream = gunzip(reader, verify=verify)
        case Codec.BZIP2:
            from initadvisor.image.decompressors.bunzip2 import bunzip2

            stream = bunzip2(reader, verify=verify)
        case Codec.LZMA:
            from initadvisor.image.decompressors.unxz import unlzma

            stream = unlzma(reader, verify=verify)
        case Codec.XZ:
            from initadvisor.image.decompressors.unxz import unxz

            stream = unxz(reader)
        case Codec.LZOP:
            from initadvisor.image.decompressors.lzop import unlzop

            stream = unlzop(reader, verify=verify)
        case Codec.LZ4:
            from initadvisor.image.decompressors.lz4_legacy import unlz4

            stream = unlz4(reader)
        case Codec.ZSTD:
            from initadvisor.image.decompressors.unzstd import unzstd

            stream = unzstd(reader)
    with libraries_told(f"unpack {codec} data"):
        return (yield from stream)


def codec_of(head: bytes) -> Codec | None:
    """Return the codec data is in, also where a kernel would not recognise or accept it.

    The kernel's own choice comes first; then lz4's newer frames, skippable frames and LZMA with
    unusual properties, which can be read and reported although every kernel refuses them.
    """
    if codec := codec_of_magic(head):
        return codec
    from initadvisor.image.decompressors.lz4_legacy import FRAME_MAGIC
    from initadvisor.image.decompressors.unxz import looks_like_lzma
    from initadvisor.image.decompressors.unzstd import is_skippable

    if head.startswith(FRAME_MAGIC):
        return Codec.LZ4
    if is_skippable(head):
        return Codec.ZSTD
    return Codec.LZMA if looks_like_lzma(head) else None
