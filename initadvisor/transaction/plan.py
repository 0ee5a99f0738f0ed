"""What is to become of which file; checks of files, room and rights before anything is written."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from initadvisor.core.errors import NeedsRootError, UnsafeError
from initadvisor.host.files import free_bytes
from initadvisor.host.owner import owned_name, owner_of_host
from initadvisor.host.replace import require_changeable
from initadvisor.transaction import files
from initadvisor.transaction.files import changed_meanwhile, has_links
from initadvisor.transaction.log import log_directory
from initadvisor.transaction.transaction import FileChange, FileRole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.files import NewContent


_ROLES = tuple(FileRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One file to be replaced, or made where there is none (with ``mode``).

    ``path`` is the machine's. ``new`` is its content, or is called with a path in the same
    directory where it is to make it; ``size_bytes`` is then how large that may become.
    ``keep``: whether the old content stays until it is pruned. Without, there is no way back once
    this file was replaced.
    """

    path: str
    role: FileRole
    new: NewContent
    size_bytes: int = 0
    keep: bool = True
    mode: int = 0o644


def in_order(replacements: Sequence[Replacement]) -> tuple[Replacement, ...]:
    """Return them in the order in which they are made; see ``FileRole``."""
    return tuple(sorted(replacements, key=lambda item: _ROLES.index(item.role)))


def free_number(host: Host, replacements: Sequence[Replacement], *, least: int) -> int:
    """Return the first number, from ``least`` on, whose names nothing has.

    What has them is of a transaction that no record tells of any more, as when a snapshot took the
    state directory back but not ``/boot``. Raises ``RefusedError`` where the machine has no ID, and
    ``OSError`` where a directory cannot be read.
    """
    prefix = owned_name(owner_of_host(host), "")
    directories = {host.path(item.path).parent for item in replacements}
    taken = {
        int(found[1])
        for directory in directories
        for name in os.listdir(directory)  # noqa: PTH208  # Path.glob hides errors
        if (found := re.fullmatch(rf"{re.escape(prefix)}([0-9]{{1,9}})-[0-9]+\..*", name))
    }
    return next(number for number in itertools.count(least) if number not in taken)


def plan_changes(
    host: Host,
    replacements: Sequence[Replacement],
    *,
    number: int,
    room: Sequence[SpaceRequirement],
) -> tuple[FileChange, ...]:
    """Look at what is there, and write nothing; ``number`` is the transaction's.

    Raises ``UnsafeError`` for links, for what is immutable, for a file named twice, where there is
    too little room and where the machine has no ID (``owner_of_host``), and ``OSError`` where that
    cannot be found out.
    """
    owner = owner_of_host(host)
    names = [owned_name(owner, f"{number}-{index}") for index in range(len(replacements))]
    changes = tuple(map(partial(_planned, host), replacements, names))
    _require_distinct(host, changes)
    require_room(host, changes, replacements, room)
    return changes


def require_unchanged(host: Host, change: FileChange) -> None:
    """Raise ``UnsafeError`` where somebody has replaced the file since it was planned."""
    inodes = change.before is not None and change.before.inode is not None
    if files.identity(host.path(change.path), inodes=inodes) != change.before:
        raise changed_meanwhile(change)


def _planned(host: Host, item: Replacement, name: str) -> FileChange:
    path = host.path(item.path)
    stem = f"{item.path.rpartition('/')[0]}/{name}"
    files.is_there(path)  # has an automounter mount what is looked at below
    require_changeable(path)
    return FileChange(
        path=item.path,
        role=item.role,
        staged=f"{stem}.new",
        backup=f"{stem}.old" if item.keep else None,
        before=files.identity(path, inodes=files.has_links(host, path.parent)),
        mode=item.mode,
        mount_point=files.own_mount_point(host, path.parent),
    )


def _require_distinct(host: Host, changes: Sequence[FileChange]) -> None:
    """Refuse one file under two names: on vfat ``A`` and ``a`` are the same."""
    seen: set[object] = set()
    for change in changes:
        path = host.path(change.path)
        place: object = change.path
        if change.before is not None:
            status = path.stat()
            place = (status.st_dev, status.st_ino)
        if place in seen:
            msg = f"not replacing {change.path}: it is named twice"
            raise UnsafeError(msg)
        seen.add(place)


_SPARE_BYTES = 256 << 10
"""For directories that grow, and for the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRequirement:
    """How much somebody else needs while the contents are made, and in which directory."""

    directory: Path
    size_bytes: int


def require_room(
    host: Host,
    changes: Sequence[FileChange],
    replacements: Sequence[Replacement],
    others: Sequence[SpaceRequirement],
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
