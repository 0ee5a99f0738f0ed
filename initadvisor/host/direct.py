"""Reading past the page cache: what is read once then neither takes memory nor drives others' out.

Memory for the page cache is charged to the control group that reads first, and stays charged.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_BLOCK_BYTES = 1 << 20


@contextlib.contextmanager
def direct_reads(file: IO[bytes]) -> Iterator[bool]:
    """Make reads of a file go past the page cache within the block; tell whether they do.

    They do not where the file system cannot do that (O_DIRECT in open(2)). Within the block the
    file is to be read by ``os.preadv``, from multiples of a page into whole pages.
    """
    descriptor = file.fileno()
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        yield _made_direct(descriptor, flags)
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def _made_direct(descriptor: int, flags: int) -> bool:
    """Set the flag and try one read: some file systems take the one and refuse the other."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            os.preadv(descriptor, [page], 0)
    except OSError:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
        return False
    return True


def read_once(
    file: IO[bytes], *, offset: int = 0, size_bytes: int | None = None
) -> Iterator[memoryview]:
    """Yield a range of ``file`` in blocks, up to its end unless a length is given.

    Past the page cache where that can be done. A block is good until the next one is asked for; the
    position of ``file`` does not move.
    """
    end = os.fstat(file.fileno()).st_size
    if size_bytes is not None:
        end = min(end, offset + size_bytes)
    position = offset - offset % mmap.PAGESIZE
    with direct_reads(file), mmap.mmap(-1, _BLOCK_BYTES) as block, memoryview(block) as content:
        while position < end and (count := os.preadv(file.fileno(), [block], position)):
            with content[max(offset - position, 0) : min(count, end - position)] as wanted:
                yield wanted
            position += count
