"""Files that this program writes for a loader, recognised by their first line."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import read_bytes
from initadvisor.bootloaders.unfinished import PREFIX, clear_unfinished
from initadvisor.host.files import remove_durably, whole_file
from initadvisor.host.immutable import file_error
from initadvisor.model.refusal import RefusalKind, refused
from initadvisor.model.text import encoded

if TYPE_CHECKING:
    from pathlib import Path


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


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; raises ``InitadvisorError`` where it cannot be."""
    try:
        with whole_file(path, prefix=PREFIX) as file:
            file.write(content)
    except OSError as err:
        raise file_error(err, f"cannot write {path}") from err


def remove_unfinished(directory: Path) -> None:
    """Remove what interrupted runs have left; raises ``InitadvisorError`` where it cannot be."""
    try:
        clear_unfinished(directory)
    except OSError as err:
        raise file_error(err, f"cannot clear up in {directory}") from err


def remove_file(path: Path) -> None:
    """Remove a file for good; raises ``InitadvisorError`` where it cannot be."""
    try:
        remove_durably(path)
    except OSError as err:
        raise file_error(err, f"cannot remove {path}") from err
