"""What became of a boot that was armed, and what else tells of one that left nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEndSigns:
    """What may tell why a boot is over of which the journal has nothing.

    ``panic``: what a kernel said last that panicked after the arming, empty where none did.
    ``watchdog``: the hardware's watchdog has started the running boot. ``menu``: somebody may have
    chosen the running boot's entry, and no boot that waits after a panic fits before it.
    """

    panic: str = ""
    watchdog: bool = False
    menu: bool = False


class TrialOutcome(StrEnum):
    """What became of an armed boot, as far as the evidence goes."""

    PENDING = "pending"
    """It is still to come."""
    TAKEN_BACK = "taken-back"
    """It was taken back for as long as the machine sleeps or packages are changed."""
    RUNNING = "running"
    """This boot is its own, and cannot be judged yet."""
    PASSED = "passed"
    FAILED = "failed"
    """It is known what went wrong with it."""
    UNEXPLAINED = "unexplained"
    """A hang, a power cut, another entry: it cannot be told, or not which image it was."""
    NOT_TRIED = "not-tried"
    """Something else booted in its place, or nobody has looked at it while it ran."""
    WITHDRAWN = "withdrawn"
    """Somebody has taken the selection back."""
    REPLACED = "replaced"
    """Somebody else's selection stands in its place."""
    STUCK = "stuck"
    """The loader does not forget its selection: it must not be armed again."""
    UNREADABLE = "unreadable"
    """What is selected cannot be read."""
