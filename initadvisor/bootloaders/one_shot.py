"""The selection of an entry for one boot: what is pending, and what became of an armed one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import EntryKind


class OneShotState(StrEnum):
    """What the next boot is to use."""

    NONE = "none"
    OURS = "ours"
    """A trial's entry: nothing but this program selects that."""
    OTHERS = "others"
    """Somebody else's choice, which may be our entry of the previous image."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """A pending selection: whose it is and, if there is one, of which entry.

    ``selects``: which of our entries it is. ``reason``: why it cannot be told, where ``state`` is
    ``UNREADABLE``.
    """

    state: OneShotState
    identifier: str | None = None
    selects: EntryKind | None = None
    reason: str | None = None


class OneShotOutcome(StrEnum):
    """What became of a selection that was armed."""

    PENDING = "pending"
    """No boot since: it is still to come."""
    WITHDRAWN = "withdrawn"
    """No boot since, but it is gone: somebody took it back."""
    CONSUMED = "consumed"
    """There was a boot, and it used the selection up."""
    STUCK = "stuck"
    """There was a boot, and it left the selection in place: the loader would use it for ever."""
    REPLACED = "replaced"
    """Somebody else's selection stands there now."""
    UNKNOWN = "unknown"
    """It cannot be read."""


def outcome(now: OneShot, *, armed_in_boot: str, boot: str) -> OneShotOutcome:
    """Return what became of a selection made in the boot ``armed_in_boot``.

    Both boots are boot IDs (``/proc/sys/kernel/random/boot_id``). Whether the boot that consumed it
    really was the trial's, its command line says.
    """
    rebooted = armed_in_boot != boot
    match now.state:
        case OneShotState.OURS:
            return OneShotOutcome.STUCK if rebooted else OneShotOutcome.PENDING
        case OneShotState.NONE:
            return OneShotOutcome.CONSUMED if rebooted else OneShotOutcome.WITHDRAWN
        case OneShotState.OTHERS:
            return OneShotOutcome.REPLACED
        case OneShotState.UNREADABLE:
            return OneShotOutcome.UNKNOWN
