"""Replaces a file by rename, again and again. Runs in the guest: nothing but Python's library.

Arguments: where the file system is mounted, how often, and the ``Way``.
"""

import contextlib
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


def replace(path: Path, version: int, way: Way) -> None:
    """Replace a file."""
    beside = path.with_suffix(".new")
    with contextlib.ExitStack() as held, beside.open("wb") as file:
        if way is Way.HELD:
            held.enter_context(path.open("rb"))
        file.write(content(version))
        file.flush()
        os.fsync(file.fileno())
        beside.rename(path)
        if way is not Way.RENAMED:
            os.fsync(file.fileno())
        directory = os.open(path.parent, os.O_RDONLY)
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
