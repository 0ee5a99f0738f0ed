"""Files that this program writes for a loader, recognised by their first line.

What a power cut leaves of writing one is a temporary name beside it (``clear_unfinished``). No
loader looks at such a name, but nothing of ours is to stay on a boot partition. On FAT it may have
the clusters of the file itself (``host.shared_clusters``), if the cut came in the middle of the
rename; removing it would then free those.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import read_bytes
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.core.text import encoded
from initadvisor.host.files import (
    PARTIAL_PREFIX,
    remove_durably,
    sync_directory,
    sync_new,
    whole_file,
)
from initadvisor.host.owner import owner_of_host
from initadvisor.host.renames import exchange
from initadvisor.host.replace import file_error
from initadvisor.host.shared_clusters import cannot_part, share_clusters

if TYPE_CHECKING:
    from initadvisor.host import Host


_log = logging.getLogger(__name__)


def unfinished_prefix(host: Host) -> str:
    """Return how this system's unfinished files are called in directories that are not ours.

    Raises ``RefusedError`` where the machine has no ID.
    """
    return f"{PARTIAL_PREFIX}initadvisor-{owner_of_host(host)}-"


_NOTE = re.compile(r"^# image (/.*)$", re.MULTILINE)


def image_note(image: str) -> str:
    """Return a comment that says which image an entry is about, as a path of this machine."""
    return f"# image {image}\n"


def noted_image(text: str) -> str | None:
    """Return the image that an entry's comment names."""
    found = _NOTE.search(text)
    return found[1] if found else None


def require_ours_or_free(path: Path, first_line: str) -> bool:
    """Tell whether our file is there; raises ``RefusedError`` where somebody else's is."""
    if not os.path.lexists(path):
        return False
    content = None if path.is_symlink() else read_bytes(path)
    if content is None or not content.startswith(encoded(f"{first_line}\n")):
        reason = f"{path} is there, but was not written by initadvisor"
        raise refused(RefusalKind.FOREIGN_ENTRY, reason, "rename it")
    return True


def write_whole(host: Host, path: Path, content: bytes) -> None:
    """Write a file whole or not at all; raises ``InitadvisorError`` where it cannot be."""
    try:
        with whole_file(path, prefix=unfinished_prefix(host)) as file:
            file.write(content)
    except OSError as err:
        raise file_error(err, f"cannot write {path}") from err


def remove_unfinished(host: Host, directory: Path) -> None:
    """Remove what interrupted runs have left; raises ``InitadvisorError`` where it cannot be."""
    try:
        clear_unfinished(directory, prefix=unfinished_prefix(host))
    except OSError as err:
        raise file_error(err, f"cannot clear up in {directory}") from err


def remove_file(path: Path) -> None:
    """Remove a file for good; raises ``InitadvisorError`` where it cannot be."""
    try:
        remove_durably(path)
    except OSError as err:
        raise file_error(err, f"cannot remove {path}") from err


def clear_unfinished(directory: Path, *, prefix: str) -> None:
    """Remove what interrupted runs have left; nobody else may be writing for a loader meanwhile.

    ``prefix`` is this system's: another one's may be at work.

    A file that shares its clusters with such a name gets its own; what has the others then stays
    until fsck.fat(8) has parted it. Raises ``OSError``, and ``InitadvisorError`` where it cannot be
    told what shares them.
    """
    for left in sorted(directory.glob(f"{prefix}*")):
        twins = [path for path in directory.iterdir() if path != left and _share(path, left)]
        for twin in twins:
            if not twin.name.startswith(prefix):
                _part(twin, prefix)
                _log.warning(
                    "%s and %s were the same clusters, after a power cut; the first has its own "
                    "now, and the others stay until fsck.fat has repaired the file system",
                    *(twin, left),
                )
        if not twins:
            remove_durably(left)


def _share(one: Path, other: Path) -> bool:
    return one.is_file() and not one.is_symlink() and share_clusters(one, other)


def _part(path: Path, prefix: str) -> None:
    """Give a file clusters of its own: a copy takes its name, and leaves it that of the copy."""
    descriptor, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(path.read_bytes())
        file.flush()
        sync_new(file, path.parent)
        sync_directory(path.parent)
    if not exchange(Path(name), path):
        raise cannot_part(path)
