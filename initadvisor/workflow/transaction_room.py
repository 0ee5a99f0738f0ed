"""Whether there is room for a transaction, and whether it may write, before it writes anything."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.host.files import free_bytes
from initadvisor.model.errors import NeedsRootError, UnsafeError
from initadvisor.workflow.transaction_files import has_links
from initadvisor.workflow.transaction_log import log_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.transaction import FileChange
    from initadvisor.workflow.transaction_plan import Replacement

_SPARE_BYTES = 256 << 10
"""For directories that grow, and for the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much somebody else needs while the contents are made, and in which directory."""

    directory: Path
    size_bytes: int


def require_room(
    host: Host,
    changes: Sequence[FileChange],
    replacements: Sequence[Replacement],
    others: Sequence[Room],
) -> None:
    """Raise ``UnsafeError`` where a file system is read-only or too full, ``NeedsRootError`` where
    this user may not write; ``OSError`` where it cannot be asked.

    A file that is replaced keeps its room until it is pruned; its copy takes more of it only where
    there are no hard links.
    """
    needed: Counter[int] = Counter()
    places: dict[int, Path] = {}
    state = next(d for d in log_directory(host).parents if d.is_dir())
    _add(needed, places, state, _SPARE_BYTES)
    for room in others:
        _add(needed, places, room.directory, room.size_bytes)
    for change, item in zip(changes, replacements, strict=True):
        directory = host.path(change.path).parent
        known = len(item.new) if isinstance(item.new, bytes) else item.size_bytes
        _add(needed, places, directory, _whole_blocks(directory, known))
        if change.backup and change.before and not has_links(host, directory):
            old_bytes = change.before.content.size_bytes
            _add(needed, places, directory, _whole_blocks(directory, old_bytes))
    for device, directory in places.items():
        free, wanted = free_bytes(directory), needed[device] + _SPARE_BYTES
        if free < wanted:
            msg = f"not replacing anything: {wanted} bytes are needed on the file system of "
            msg += f"{directory}, and {free} are free"
            raise UnsafeError(msg, hint="make room there; nothing was written")


def _add(needed: Counter[int], places: dict[int, Path], directory: Path, size_bytes: int) -> None:
    status = os.statvfs(directory)
    if status.f_flag & os.ST_RDONLY:
        msg = f"not replacing anything: the file system of {directory} is read-only"
        raise UnsafeError(msg, hint="mount it for writing; nothing was written")
    if not os.access(directory, os.W_OK | os.X_OK):
        msg = f"cannot write in {directory}: only its owner may"
        raise NeedsRootError(msg)
    device = directory.stat().st_dev
    needed[device] += size_bytes
    places.setdefault(device, directory)


def _whole_blocks(directory: Path, size_bytes: int) -> int:
    block = os.statvfs(directory).f_frsize or 1
    return -(-size_bytes // block) * block
