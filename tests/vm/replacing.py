"""Replaces a file by renames, again and again. Runs in the guest: nothing but Python's library.

Arguments: where the file system is mounted, how often, and the ``Way``.
"""

import contextlib
import ctypes
import os
import random
import sys
from enum import StrEnum
from pathlib import Path

PATH = "/images/default.img"
SIZE_BYTES = 1_500_000


def content(version: int) -> bytes:
    """Return what a version of the file is, everywhere the same."""
    return random.Random(version).randbytes(SIZE_BYTES)


class Way(StrEnum):
    """How a file is replaced; all write beside it, sync, rename and sync the directory."""

    RENAMED = "renamed"
    SYNCED_AGAIN = "synced-again"
    """The file is synced once more after it was renamed."""
    HELD = "held"
    """And the old file is kept open until all that is done, so that its room is not given up
    before the disk knows the new one."""
    EXCHANGED = "exchanged"
    """The two change names, both are synced, and then the old one is removed, held open, too."""


def replace(path: Path, version: int, way: Way) -> None:
    """Replace a file."""
    beside = path.with_suffix(".new")
    with contextlib.ExitStack() as held, beside.open("wb") as file:
        if way is Way.HELD:
            held.enter_context(path.open("rb"))
        file.write(content(version))
        file.flush()
        os.fsync(file.fileno())
        if way is Way.EXCHANGED:
            exchange(beside, path)
        else:
            beside.rename(path)
        if way is not Way.RENAMED:
            os.fsync(file.fileno())
        if way is Way.EXCHANGED:
            old = held.enter_context(beside.open("rb"))
            os.fsync(old.fileno())
            sync_directory(path.parent)
            beside.unlink()
        sync_directory(path.parent)


def exchange(one: Path, other: Path) -> None:
    """Exchange two names by renameat2(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):
        raise OSError(ctypes.get_errno(), "cannot exchange", str(one))


def sync_directory(path: Path) -> None:
    """Have what was renamed in a directory be on the disk."""
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def main() -> None:
    """Replace, and say so each time."""
    mount, times, way = sys.argv[1:]
    for version in range(1, int(times) + 1):
        replace(Path(mount + PATH), version, Way(way))
        sys.stdout.write(f"replaced {Path(mount).name} {version}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
