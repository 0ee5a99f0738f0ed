"""The proving boot: a new image boots once, from an entry of its own, before it is installed.

The boot loader is tried first: the first time that anything is armed on a machine, the entry loads
today's image (the rehearsal). What each boot showed is judged here, nothing is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProofStage(StrEnum):
    """Which boot is waited for."""

    REHEARSAL = "rehearsal"
    """One with today's image, to see that the loader boots an entry once and forgets it."""
    PROOF = "proof"
    """One with the new image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was armed for a transaction that waits for a boot.

    ``loader`` is ``BootLoader.NAME``. ``trial``: the name on that boot's command line
    (``trial_words``); every arming has another. ``armed_in_boot``: the boot (its ID) in which it
    was armed. ``image``: the image that is waited for, as the machine names it, and ``sha256`` what
    the loader is to load of it. ``asleep``: it was taken back before the machine went to sleep, and
    is to be armed again.
    """

    stage: ProofStage
    loader: str
    trial: str
    armed_in_boot: str
    image: str
    sha256: str
    asleep: bool = False
