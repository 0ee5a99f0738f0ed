"""What is to become of which file, and whether that is still the file it was planned for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.host.immutable import require_changeable
from initadvisor.model.errors import UnsafeError
from initadvisor.model.transaction import FileChange, FileRole
from initadvisor.workflow import transaction_files as files
from initadvisor.workflow.transaction_errors import changed_meanwhile
from initadvisor.workflow.transaction_room import require_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.workflow.transaction_files import NewContent
    from initadvisor.workflow.transaction_room import Room

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


def plan_changes(
    host: Host, replacements: Sequence[Replacement], *, number: int, room: Sequence[Room]
) -> tuple[FileChange, ...]:
    """Look at what is there, and write nothing; ``number`` is the transaction's.

    Raises ``UnsafeError`` for links, for what is immutable, for a file named twice and where there
    is too little room, and ``OSError`` where that cannot be found out.
    """
    changes = tuple(_planned(host, item, f"{number}-{i}") for i, item in enumerate(replacements))
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
    # A dot in front: shells, generators and loaders that take all files of a directory do not
    # take these, and none of them ends like what they look for.
    stem = f"{item.path.rpartition('/')[0]}/.initadvisor-{name}"
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
