"""One image in the place of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import UnsafeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.bootloaders.entry import BootFile, TrialRequest


def replaced(files: Sequence[BootFile], request: TrialRequest, image: str) -> tuple[str, ...]:
    """Return the files as the loader is told them, with ``image`` in place of the one.

    Raises ``UnsafeError`` where the default entry does not load that exactly once.
    """
    if [file.path for file in files].count(request.replaces) != 1:
        listed = ", ".join(file.path for file in files) or "none"
        msg = f"not trying an image: the default entry does not load {request.replaces}"
        raise UnsafeError(msg, hint=f"it loads {listed}")
    return tuple(image if file.path == request.replaces else file.named for file in files)
