"""What going back to the state before a transaction would do, before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.model.generator import InstalledImage
    from initadvisor.model.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """What would become of each file; paths are the machine's.

    ``restored``: the very files from before come back. ``rebuilt``: images that others have made
    anew since (a kernel upgrade), or of which nothing was kept; they are made with the old
    configuration. ``gone``: images that are there no more, with their kernel. ``waiting``: nothing
    was replaced yet, and the boot that the transaction waits for is taken back.
    """

    transaction: Transaction
    restored: tuple[str, ...] = ()
    rebuilt: tuple[InstalledImage, ...] = ()
    gone: tuple[str, ...] = ()
    waiting: bool = False
