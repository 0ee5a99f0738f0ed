"""A file replaced by another without overwriting what somebody else puts there at that moment.

Both change names, and then what came out is looked at: what is neither old nor new was written by
somebody else, and gets its name back. Who comes after a crash keeps it aside instead.

Where names cannot be exchanged (``host.renames.exchange``), the file is looked at right before it
is renamed over: what is written between those two calls is lost there.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from initadvisor.host.files import held_open, remove_durably, sync_named
from initadvisor.host.renames import exchange, quarantine_file, rename_to_free
from initadvisor.transaction import files
from initadvisor.transaction.files import Holding, changed_meanwhile

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange


_log = logging.getLogger(__name__)


def put(host: Host, change: FileChange) -> None:
    """Replace the file by its staged content, whose name then leads to the old one.

    At every moment it holds the one or the other. Raises ``UnsafeError`` where somebody else has
    changed it meanwhile; that stays.
    """
    staged = host.path(change.staged)
    with files.opened(staged) as file:
        files.dress(host, change, file)
        os.fsync(file.fileno())
    if not _swap(host, change, staged):
        raise changed_meanwhile(change)


def put_back(host: Host, change: FileChange) -> bool:
    """Give a file its old content back, which must be kept (``files.is_kept``).

    The name of what was kept then leads to the new one. False where somebody else has changed the
    file meanwhile; that stays.
    """
    if change.before is None:
        return _take_away(host, change)
    if change.backup is None:
        return False
    backup = host.path(change.backup)
    with files.opened(backup) as file:
        os.fsync(file.fileno())
    return _swap(host, change, backup)


def keep_others(host: Host, change: FileChange, held: Holding) -> None:
    """Keep what somebody else wrote aside, where it came out and nobody has looked at it.

    ``held`` is what the file holds now. It does not get its name back: by now it may be damaged,
    and it is what the machine would boot.
    """
    was_put = held is not Holding.OLD or change.before is None
    if was_put and change.after is not None:
        _keep_aside(host, change, host.path(change.staged))
    if held is Holding.OLD and change.backup is not None:
        _keep_aside(host, change, host.path(change.backup))


def _swap(host: Host, change: FileChange, name: Path) -> bool:
    """Have a name of ours and the file's lead to what the other one does.

    False where the file was neither old nor new; it is as it was then.
    """
    path = host.path(change.path)
    try:
        if change.before is None:
            rename_to_free(name, path)
            return True
        if not exchange(name, path):
            return _rename_over(host, change, name)
    except (FileExistsError, FileNotFoundError):
        return False
    if not _is_others(host, change, name):
        return True
    _give_back(host, change, name)
    return False


def _rename_over(host: Host, change: FileChange, name: Path) -> bool:
    path = host.path(change.path)
    with held_open(path):
        before = _seen(path)
        if _is_others(host, change, path) or _seen(path) != before:
            return False
        name.rename(path)
        sync_named(path)
    return True


def _seen(path: Path) -> tuple[int, ...]:
    status = path.lstat()
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _take_away(host: Host, change: FileChange) -> bool:
    """Remove a file that was not there before, under the name that it had been staged under."""
    path, staged = host.path(change.path), host.path(change.staged)
    if files.is_there(staged):  # it has to stay; see ``clearing``
        if _is_others(host, change, path):
            return False
        remove_durably(path)
        return True
    try:
        rename_to_free(path, staged)
    except FileNotFoundError:
        return True
    if _is_others(host, change, staged):
        _give_back(host, change, staged)
        return False
    remove_durably(staged)
    return True


def _give_back(host: Host, change: FileChange, name: Path) -> None:
    """Have somebody else's file under its name again; what is there by now is kept, too."""
    path = host.path(change.path)
    if files.is_there(path):
        exchange(name, path)
    else:
        rename_to_free(name, path)
    _keep_aside(host, change, name)


def _keep_aside(host: Host, change: FileChange, name: Path) -> None:
    if _is_others(host, change, name):
        aside = quarantine_file(name, beside=host.path(change.path))
        _log.error("%s was changed by somebody else, whose file is now %s", change.path, aside)


def _is_others(host: Host, change: FileChange, name: Path) -> bool:
    """Tell whether a name leads to something that is neither old nor new.

    What is empty on FAT may have been made so by fsck.fat(8); elsewhere it is about to be written.
    """
    if not files.is_there(name):
        return False
    held = files.content(name)
    if held is not None and held.size_bytes == 0 and not files.has_links(host, name.parent):
        return False
    return held is None or held not in files.contents(change)
