"""How much of a file is in memory (mincore(2), which Python has no call for)."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import IO

_FAILED = ctypes.c_void_p(-1).value


def resident_fraction(file: IO[bytes]) -> float:
    """Return which part of the file's pages is in memory, 0 to 1.

    The kernel tells it only to who owns the file or may write to it, and calls every page resident
    otherwise (mm/mincore.c, ``can_do_mincore``); then, and where mincore fails, the answer is 0.
    """
    status = os.fstat(file.fileno())
    may_know = os.geteuid() in (0, status.st_uid) or os.access(
        f"/proc/self/fd/{file.fileno()}", os.W_OK
    )
    if not may_know or status.st_size == 0:
        return 0.0
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    )
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    address = libc.mmap(None, status.st_size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if address == _FAILED:
        return 0.0
    try:
        pages = -(-status.st_size // mmap.PAGESIZE)
        in_core = ctypes.create_string_buffer(pages)
        if libc.mincore(address, status.st_size, in_core) != 0:
            return 0.0
        return sum(byte & 1 for byte in in_core.raw) / pages
    finally:
        libc.munmap(address, status.st_size)
