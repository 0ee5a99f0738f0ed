"""Boot loaders that can boot an entry once; each is a module that satisfies ``BootLoader``.

The default entry is read and never written. A trial has one entry of its own beside it, which is
selected for one boot; every loader here forgets that selection before it starts what was selected,
so that whatever becomes of the trial, the boot after it is the default entry's again. The image
that was replaced last has another entry (``EntryKind.PREVIOUS``), which this program never selects.

Systems may share a loader's partition and its variables. The names of entries say whose they are
(``host.owner``); another system's are somebody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.bootloaders.entry import (
        BootEntry,
        EntryKind,
        OneShot,
        OwnedEntry,
        TrialPlan,
        TrialRequest,
    )
    from initadvisor.core.refusals import Refusal, RefusalKind
    from initadvisor.host import Host
    from initadvisor.records.boot_start import BootMethod


class BootLoader(Protocol):
    """What a campaign asks of a boot loader. Its instances are modules: see ``detect``.

    All of it is for root: boot partitions and EFI variables are closed to others on many machines.
    """

    @property
    def NAME(self) -> str:
        """The loader's own name."""
        ...

    @property
    def BOOT_METHODS(self) -> Collection[BootMethod]:
        """How a system was started that this loader started."""
        ...

    def refusals(self, host: Host) -> tuple[Refusal, ...]:
        """Return every reason why arming would not be safe here as it is now; empty: it is.

        Which of them the user may override, ``RefusalKind.may_be_overridden`` says.
        """
        ...

    def default_entry(self, host: Host) -> BootEntry:
        """Return the entry that boots when nothing else is selected.

        Raises ``RefusedError`` where nothing says for certain which one that is, or it cannot be
        copied, and ``InitadvisorError`` where it cannot be read.
        """
        ...

    def trial(self, host: Host, request: TrialRequest) -> TrialPlan:
        """Plan an entry of ours: the default one with another image and some words more.

        Raises ``RefusedError`` or ``UnsafeError`` where there can be none: the default entry does
        not load what is to be replaced, or the loader cannot find the image where it lies.
        """
        ...

    def write(self, host: Host, plan: TrialPlan) -> None:
        """Write the entry, in place of an earlier one of its kind; nothing is selected yet.

        One that is there as planned is left alone. The entry is there whole or not at all, also
        after a power cut; an entry of the other kind or of another system stays byte for byte.
        Raises
        ``InitadvisorError`` where it cannot be written, with nothing changed.
        """
        ...

    def is_written(self, host: Host, text: str) -> bool:
        """Tell whether our trial's entry is there and says just that (``TrialPlan.text``).

        Raises ``RefusedError`` where somebody has made it one that is not ours any more, and
        ``InitadvisorError`` where it cannot be read.
        """
        ...

    def arm(self, host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
        """Have the next boot, and only that one, use the entry.

        Everything is looked at once more before that, and the selection is read back after it.
        ``accepted``: what the user has decided to override. Raises ``UnsafeError`` where something
        stands in the way or has changed since the plan was made, or the entry is no trial's, and
        ``InitadvisorError`` where the selection did not take; nothing of ours is selected then.
        """
        ...

    def armed(self, host: Host) -> OneShot:
        """Return what is selected for the next boot; ``one_shot_outcome`` says what that means."""
        ...

    def disarm(self, host: Host, kind: EntryKind = ...) -> bool:
        """Take a selection of our entry (by default the trial's) back and return True.

        Leave anything else, and return False.

        Raises ``InitadvisorError`` where it is ours and cannot be taken back.
        """
        ...

    def entry(self, host: Host, kind: EntryKind) -> str | None:
        """Return the image that our written entry boots, as a path of this machine; None: no entry.

        The image may be gone. Raises ``InitadvisorError`` where the entry cannot be read.
        """
        ...

    def owned_entries(self, host: Host) -> tuple[OwnedEntry, ...]:
        """Return the entries that this program has written, on this system and on others.

        Raises ``InitadvisorError`` where they cannot be read.
        """
        ...

    def remove(self, host: Host, kind: EntryKind = ...) -> bool:
        """Remove our entry of a kind, by default the trial's; return whether there was one.

        A selection of it goes with it. What is not ours, and our other entry, stay byte for byte.
        Raises ``InitadvisorError`` where it cannot be removed.
        """
        ...
