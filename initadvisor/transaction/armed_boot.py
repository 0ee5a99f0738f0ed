"""An armed boot: a transaction's proving boot, a campaign's trial, or a rehearsal.

A rehearsal boots today's image, to test the loader. What became of one, ``trial.one_boot`` judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class ProofStage(StrEnum):
    """Which boot is waited for."""

    REHEARSAL = "rehearsal"
    """One with today's image, to see that the loader boots an entry once and forgets it."""
    PROOF = "proof"
    """One with the new image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedBoot:
    """What was armed.

    ``loader`` is ``BootLoader.NAME``. ``trial``: the name on that boot's command line
    (``extra_cmdline``); every arming has another. ``armed_in_boot``: the boot (its ID) in which it
    was armed. ``image``: the image that is waited for, as the machine names it, and ``sha256`` and
    ``size_bytes`` of what the loader is to load of it: of a unified kernel image (``is_uki``) its
    .initrd section. ``entry``: what the loader calls the entry, and ``extra_cmdline`` what that
    adds to the command line. ``ignore_unlocking``: the user arms although disks are unlocked by
    what a boot is made of. ``asleep``: it was taken back before the machine went to sleep, and is
    to be armed again.
    """

    stage: ProofStage
    loader: str
    trial: str
    armed_in_boot: str
    image: str
    sha256: str
    size_bytes: int = 0
    is_uki: bool = False
    entry: str = ""
    extra_cmdline: tuple[str, ...] = ()
    ignore_unlocking: bool = False
    asleep: bool = False

    @property
    def taken_back(self) -> ArmedBoot:
        """The same before the machine goes to sleep."""
        return replace(self, asleep=True)
