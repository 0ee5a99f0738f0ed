"""Keeps what a scan unpacks, so that nothing has to be unpacked again to be compressed anew."""

from __future__ import annotations

import tempfile
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.host.files import free_bytes, make_directory

if TYPE_CHECKING:
    from collections.abc import Generator

    from initadvisor.host import Host
    from initadvisor.image.stream_facts import StreamFacts


_HEADROOM_BYTES = 256 << 20
"""What is left free on the file system, for what is to be built there."""


class ContentSpool:
    """Writes the segment that is being unpacked to a file without a name; the last one stays.

    ``file`` is None where there is no room or no directory: then it has to be unpacked again.
    ``cpu_ms``: the processor time that unpacking alone took, checksums included.
    """

    def __init__(self, host: Host) -> None:
        self.file: IO[bytes] | None = None
        self.offset = -1
        self.cpu_ms = 0.0
        self._host = host
        self._room = 0
        directory = host.cache_dir()
        try:
            make_directory(directory)
            self.file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by close()
            self._room = free_bytes(directory) - _HEADROOM_BYTES
        except (OSError, InitadvisorError):
            self.close()

    def close(self) -> None:
        """Give the room back."""
        if self.file:
            self.file.close()
        self.file = None

    def __call__(
        self, offset: int, stream: Generator[bytes | memoryview, None, StreamFacts]
    ) -> Generator[bytes | memoryview, None, StreamFacts]:
        """Hand a stream on, of the segment that starts at ``offset`` in the image."""
        if offset != self.offset:
            self.offset, self.cpu_ms = offset, 0.0
            self._write(None)
        while True:
            started = self._host.clock.thread_cpu_ns()
            try:
                piece = next(stream)
            except StopIteration as end:
                facts: StreamFacts = end.value
                return facts
            finally:
                self.cpu_ms += (self._host.clock.thread_cpu_ns() - started) / 1e6
            self._write(piece)
            yield piece

    def _write(self, piece: bytes | memoryview | None) -> None:
        if self.file is None:
            return
        try:
            if piece is None:
                self.file.seek(0)
                self.file.truncate()
            elif self.file.tell() + len(piece) > self._room:
                self.close()
            else:
                self.file.write(piece)
        except OSError:
            self.close()
