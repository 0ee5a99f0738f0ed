"""A data base that cannot be used is moved aside: whole, and never onto anything else."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import logging
import os
from typing import TYPE_CHECKING

from initadvisor.host.files import sync_directory
from initadvisor.model.text import shown
from initadvisor.store.connection import beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for this directory (flock(2))."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def move_aside(path: Path, *, because: str) -> Path:
    """Give a data base another name and say so; to be called by one process at a time.

    What belongs to it goes first: a log that stayed would be taken for that of the next data base
    of this name. Interrupted, it is finished by whoever comes next.
    """
    numbered = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
    aside = next(name for name in numbered if not os.path.lexists(name))
    for what in ("wal", "shm", "journal"):
        with contextlib.suppress(FileNotFoundError):
            beside(path, what).rename(beside(aside, what))
    path.rename(aside)
    sync_directory(path.parent)
    _log.warning("%s", shown(f"{because}; it was moved to {aside}, and a new one is begun"))
    return aside
