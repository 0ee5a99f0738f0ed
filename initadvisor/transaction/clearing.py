"""Removes what transactions leave beside files, without harm to the files.

On FAT a power cut may leave two names with the same clusters (``host.shared_clusters``): one of
ours, and the file's. Removing either would free what the other one holds. So the file first gets
clusters of its own, under a third name that is then swapped with its own; the two names that are
left share what nobody needs, and stay until fsck.fat(8) has parted them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import remove_durably, sync_directory
from initadvisor.host.renames import exchange
from initadvisor.host.shared_clusters import cannot_part, share_clusters
from initadvisor.transaction import files

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange, Transaction


_log = logging.getLogger(__name__)

_TWIN = ".twin"


def clear_staged(host: Host, change: FileChange) -> None:
    """Remove the staged content, and what its builder has left beside it under longer names."""
    staged = host.path(change.staged)
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(staged.parent):  # noqa: PTH208  # Path.glob hides errors
            if name.startswith(staged.name):
                _remove(host, change, staged.parent / name)


def clear_backup(host: Host, change: FileChange) -> None:
    """Remove the kept old content."""
    if change.backup is not None:
        backup = host.path(change.backup)
        with contextlib.suppress(FileNotFoundError):
            _remove(host, change, backup)


def clear_orphan(host: Host, path: str) -> None:
    """Remove a file of ours of which no record tells; the caller knows that it is one.

    Raises ``UnsafeError`` where it has the same clusters as another name, which would lose them.
    """
    orphan = host.path(path)
    if not files.has_links(host, orphan.parent):
        for other in orphan.parent.iterdir():
            if other != orphan and share_clusters(orphan, other):
                msg = f"not removing {path}: it has the same clusters as {other.name}"
                raise UnsafeError(msg, hint="fsck.fat(8) parts them")
    if stat.S_ISDIR(orphan.lstat().st_mode):
        msg = f"not removing {path}: it is a directory"
        raise UnsafeError(msg, hint="look at what is in it, and remove it by hand")
    remove_durably(orphan)


def part(host: Host, transaction: Transaction) -> None:
    """Give every file clusters of its own that shares them with a name of ours.

    To be done before anything else. Raises ``InitadvisorError`` where that fails, and ``OSError``
    where there is no room for a copy; then nothing has changed.
    """
    for change in transaction.files:
        target = host.path(change.path)
        if files.has_links(host, target.parent):
            continue
        for path in _ours(host, change):
            if share_clusters(path, target):
                _part(host, change, target)
                _log.warning(
                    "%s and %s were the same clusters, after a power cut; %s has its own now, and "
                    "what is left of the others stays until fsck.fat has repaired the file system",
                    *(path, target, target),
                )


def remove_duplicate_names(host: Host, transaction: Transaction) -> bool:
    """Remove names that had to stay, as far as they have been parted; return whether some stay.

    Only for a transaction that is over: what is staged goes with them.
    """
    stay = False
    for change in transaction.files:
        twins = _twins(host, change)
        if not twins:
            continue
        for path in (*twins, host.path(change.staged)):
            with contextlib.suppress(FileNotFoundError):
                _remove(host, change, path)
        stay |= bool(_twins(host, change))
    return stay


def _remove(host: Host, change: FileChange, path: Path) -> None:
    """Remove a name of ours, or what a builder has made a directory for, durably."""
    if stat.S_ISDIR(path.lstat().st_mode):
        import shutil

        shutil.rmtree(path)
        sync_directory(path.parent)
    elif not _has_to_stay(host, change, path):
        remove_durably(path)


def _has_to_stay(host: Host, change: FileChange, path: Path) -> bool:
    """Tell whether a name has the same clusters as another one, ours or the file's."""
    target = host.path(change.path)
    if files.has_links(host, target.parent):
        return False
    names = (target, *_ours(host, change))
    return any(share_clusters(path, name) for name in names if name != path)


def _part(host: Host, change: FileChange, target: Path) -> None:
    """Give a file clusters of its own; at every moment its name leads to the whole content.

    Raises ``OSError`` where there is no room for a copy, ``InitadvisorError`` where it fails; the
    clusters are shared as before then.
    """
    twin = _free_twin(host, change)
    try:
        files.copy_of(target, twin)
        sync_directory(twin.parent)
        if files.content(twin) != files.content(target):
            msg = f"the copy of {target} in {twin} is not what was copied"
            raise InitadvisorError(msg, hint="the disk or its file system may be failing")
        if not exchange(twin, target):
            raise cannot_part(target)
    except (OSError, InitadvisorError):
        if not share_clusters(twin, target):
            with contextlib.suppress(FileNotFoundError):
                remove_durably(twin)
        raise


def _ours(host: Host, change: FileChange) -> list[Path]:
    """Return all names that may be beside a file, whether there is such a file or not."""
    names = [host.path(change.staged)]
    if change.backup is not None:
        names.append(host.path(change.backup))
    return names + _twins(host, change)


def _twins(host: Host, change: FileChange) -> list[Path]:
    staged = host.path(change.staged)
    stem = f"{staged.name.removesuffix('.new')}{_TWIN}"
    try:
        names = os.listdir(staged.parent)  # noqa: PTH208  # Path.glob hides errors
    except FileNotFoundError:
        return []
    return [staged.parent / name for name in sorted(names) if name.startswith(stem)]


def _free_twin(host: Host, change: FileChange) -> Path:
    staged = host.path(change.staged)
    stem = f"{staged.name.removesuffix('.new')}{_TWIN}"
    taken = {path.name for path in _twins(host, change)}
    number = next(n for n in range(len(taken) + 1) if f"{stem}{n}" not in taken)
    return staged.with_name(f"{stem}{number}")
