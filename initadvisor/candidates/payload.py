"""What a main segment holds, unpacked once for all compressors."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.host.files import sha256_of
from initadvisor.image.decompressors.decompress import decompress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from initadvisor.target.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The unpacked main segment: a file without a name, which is gone when the process is.

    ``sha256``: empty where nobody asked for it.
    """

    file: IO[bytes]
    size_bytes: int
    sha256: str

    def __enter__(self) -> Payload:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.file.close()


class LazyPayload:
    """Unpacks when it is first asked, whichever thread asks; a context that ends with the file."""

    def __init__(
        self, source: Source, directory: Path, stop: threading.Event, *, hashed: bool = True
    ) -> None:
        self._source = source
        self._hashed = hashed
        self._directory = directory
        self._stop = stop
        self._lock = threading.Lock()
        self._payload: Payload | None = None

    def __enter__(self) -> LazyPayload:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._payload and self._payload.file is not self._source.unpacked:
            self._payload.file.close()

    @property
    def missing_bytes(self) -> int:
        """How much room unpacking may still take."""
        return (
            0
            if self._payload or self._source.unpacked
            else self._source.contents.main.unpacked_bytes
        )

    def get(self) -> Payload:
        """Return the payload.

        Raises ``BadImageError`` for a damaged segment, ``OSError`` where there is no room.
        """
        with self._lock:
            if self._payload is None:
                self._payload = self._unpack()
            return self._payload

    def _unpack(self) -> Payload:
        if kept := self._source.unpacked:
            size_bytes = kept.seek(0, os.SEEK_END)
            sha256 = sha256_of(kept) if self._hashed else ""
            return Payload(file=kept, size_bytes=size_bytes, sha256=sha256)
        main = self._source.contents.main
        chunks = decompress(main.codec, self._source.file, main.offset, self._source.main_bytes)
        return unpacked(until_stopped(chunks, self._stop), self._directory)


def unpacked(chunks: Iterable[bytes | memoryview], directory: Path) -> Payload:
    """Write what is unpacked to a file without a name in ``directory``; raises ``OSError``."""
    digest = hashlib.sha256()
    file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by whoever asked
    try:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.flush()
    except BaseException:
        file.close()
        raise
    return Payload(file=file, size_bytes=file.tell(), sha256=digest.hexdigest())


def until_stopped(
    chunks: Iterable[bytes | memoryview], stop: threading.Event
) -> Iterator[bytes | memoryview]:
    """Hand the chunks on; raise ``InitadvisorError`` once ``stop`` is set."""
    for chunk in chunks:
        if stop.is_set():
            msg = "stopped"
            raise InitadvisorError(msg)
        yield chunk
