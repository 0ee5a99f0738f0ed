"""Entries of ours that have outlived their image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import is_file
from initadvisor.model.boot_entry import EntryKind

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.host import Host


def remove_stale(host: Host, loader: BootLoader) -> tuple[EntryKind, ...]:
    """Remove the entries of ours whose image is gone; return which these were.

    Raises ``InitadvisorError`` where an entry cannot be read or removed.
    """
    stale = []
    for kind in EntryKind:
        image = loader.entry(host, kind)
        if image is not None and not is_file(host, image):
            loader.remove(host, kind)
            stale.append(kind)
    return tuple(stale)
