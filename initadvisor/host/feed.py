"""Feeds a file through a pipe, for programs whose output depends on what their stdin is.

gzip and lzop, given a regular file, write its time stamp into their output; generators feed them
through a pipe, and only a pipe gives the same bytes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


log = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def piped(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Give the whole content of ``file`` as the read end of a pipe; its position does not move.

    A thread writes; it ends when all is written or, at the end of the block, nobody reads.
    """
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=_write, args=(file.fileno(), write_end), daemon=True)
    writer.start()
    try:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            yield pipe
    finally:
        writer.join()


def _write(source: int, pipe: int) -> None:
    # A reader that ends early is its caller's affair: without this mask the signal of writing to
    # a pipe that nobody reads would end the whole process where SIGPIPE has its default action.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    offset = 0
    try:
        while sent := os.sendfile(pipe, source, offset, _CHUNK_BYTES):
            offset += sent
    except OSError as err:
        # Nobody reads, or the file cannot be read: either way the reader's output is incomplete,
        # which whoever asked for it checks.
        log.debug("feeding a pipe ended at byte %d: %s", offset, err)
    finally:
        os.close(pipe)
