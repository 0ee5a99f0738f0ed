"""Who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import NeedsRootError

if TYPE_CHECKING:
    from initadvisor.host import Host


def require_root(host: Host, what: str) -> None:
    """Raise ``NeedsRootError`` for an ordinary user; ``what`` says what only root may do."""
    if not host.is_root:
        msg = f"cannot {what}: only root may"
        raise NeedsRootError(msg)
