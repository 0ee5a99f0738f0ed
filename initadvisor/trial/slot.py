"""The one place beside the default image where a candidate lies while its boot is armed."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from initadvisor.campaign.campaign import TrialCandidate
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import (
    append_range,
    failing_as,
    free_bytes,
    open_regular,
    remove_durably,
    sha256_of,
    sync_directory,
    sync_new,
)
from initadvisor.host.owner import owned_name, owner_of_host
from initadvisor.host.storage.cold_read import drop_from_memory
from initadvisor.trial.beside import remove_beside

if TYPE_CHECKING:
    from initadvisor.host import Host


_NAME = "trial"
SPARE_BYTES: Final = 1 << 20
"""For directories that grow, and what loaders and package managers write meanwhile."""


class UnfitError(UnsafeError):
    """A candidate cannot lie there: there is no room, or it is not what was verified any more."""


def slot_beside(host: Host, image: str) -> str:
    """Return where candidates lie for the default image ``image``; both are the machine's paths.

    Raises ``RefusedError`` where the machine has no ID.
    """
    return str(PurePosixPath(image).with_name(owned_name(owner_of_host(host), _NAME)))


def fill_slot(host: Host, slot: str, candidate: TrialCandidate) -> None:
    """Have the slot hold a candidate, and read it back from the disk.

    What lies there already is kept if it is the same. Raises ``UnfitError``, ``UnsafeError`` where
    a directory has its name, and ``InitadvisorError`` where it cannot be read or written; the slot
    is empty then.
    """
    require_free_slot(host, slot)
    if not slot_fault(host, slot, candidate.sha256):
        return
    clear_slot(host, slot)
    path = host.path(slot)
    try:
        free = free_bytes(path.parent)
        if free < candidate.size_bytes + SPARE_BYTES:
            sizes = f"{candidate.size_bytes / 1e6:.1f} MB, and {free / 1e6:.1f} MB are free"
            msg = f"{path.parent} has no room for it: {sizes}"
            raise UnfitError(msg)
        _copy(candidate, path)
    except OSError as err:
        _give_up(host, slot)
        kind = UnfitError if err.errno in {errno.ENOSPC, errno.EDQUOT} else InitadvisorError
        msg = f"cannot copy {candidate.setting} to {path}: {err.strerror}"
        raise kind(msg) from err
    except BaseException:
        _give_up(host, slot)
        raise
    if slot_fault(host, slot, candidate.sha256):
        _give_up(host, slot)
        msg = f"what was read back from {path} is not what was verified"
        raise UnfitError(msg)


def fill_with_copy(host: Host, image: str) -> str:
    """Have the slot hold what the default image ``image`` does, and return it; raises the same."""
    slot = slot_beside(host, image)
    with open_regular(host.path(image)) as file, failing_as(f"cannot read {image}"):
        copy = TrialCandidate(
            setting=image,
            path=str(host.path(image)),
            sha256=sha256_of(file),
            size_bytes=file.seek(0, os.SEEK_END),
        )
    fill_slot(host, slot, copy)
    return slot


def require_free_slot(host: Host, slot: str) -> None:
    """Raise ``UnsafeError`` where what has the slot's name is none of ours."""
    path = host.path(slot)
    if _is_directory(path):
        msg = f"no candidate can be copied to {path}: it is a directory"
        raise UnsafeError(msg, hint="move it away")


def slot_fault(host: Host, slot: str, sha256: str) -> str:
    """Return what is wrong with the image that was armed; empty where it is as it was."""
    path = host.path(slot)
    if not os.path.lexists(path):
        return f"{path} was removed after it was armed"
    try:
        return "" if _holds(host, slot, sha256) else f"{path} was changed after it was armed"
    except (OSError, InitadvisorError) as err:
        return f"{path} cannot be read any more: {err}"


def clear_slot(host: Host, slot: str) -> None:
    """Remove what lies there, whole or not, and what is beside it; raises ``InitadvisorError``.

    A directory stays: it is none of ours. Raises ``UnsafeError`` for another system's slot, too.
    """
    path = host.path(slot)
    if slot != slot_beside(host, slot):
        msg = f"not removing {path}: it is no trial slot of this system's"
        raise UnsafeError(msg)
    remove_beside(host, slot)
    try:
        if os.path.lexists(path) and not _is_directory(path):
            remove_durably(path)
    except OSError as err:
        msg = f"cannot clear the trial slot {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _give_up(host: Host, slot: str) -> None:
    """Clear it after an error, which is the one to be told."""
    with contextlib.suppress(InitadvisorError):
        clear_slot(host, slot)


def _copy(candidate: TrialCandidate, path: Path) -> None:
    """Copy it under its own name: nothing loads it before it was read back.

    A rename would be no gain, and on FAT a power cut in the middle of it leaves two names with the
    same clusters (``host.shared_clusters``), which cannot both be removed.
    """
    with open_regular(Path(candidate.path)) as source:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            append_range(file, source, offset=0, size_bytes=candidate.size_bytes)
            sync_new(file, path.parent)
    sync_directory(path.parent)


def _holds(host: Host, slot: str, sha256: str) -> bool:
    """Tell whether the disk, not only memory, has these bytes there."""
    path = host.path(slot)
    if not path.is_file() or path.is_symlink():
        return False
    with open_regular(path) as file:
        drop_from_memory(file.fileno())
        return sha256_of(file, once=True) == sha256
