"""How a boot in a journal ended, and whether its clock can be relied on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.measure.journal_entries import (
    HIBERNATED,
    KERNEL,
    MANAGER,
    SUSPENDED,
    BootEntries,
    field,
)
from initadvisor.model.journal_boot import BootEnd, Ending

if TYPE_CHECKING:
    from initadvisor.measure.journal_files import Reader
    from initadvisor.model.journal_boot import BootSpan

_ENDINGS = {
    b"reboot.target": Ending.REBOOT,
    b"kexec.target": Ending.KEXEC,
    b"poweroff.target": Ending.POWER_OFF,
    b"halt.target": Ending.POWER_OFF,
}
_CLOCK_UNITS = ("systemd-timesyncd.service", "chronyd.service", "chrony.service")
_SYNCHRONISED = re.compile(
    rb"Initial (?:clock )?synchronization to |Synchronized to time server |Selected source "
)
"""What systemd-timesyncd (in its old and new words) and chronyd say when they have set the clock
or begin to."""


def boot_end(reader: Reader, span: BootSpan) -> BootEnd:
    """Return how a boot ended, as far as systemd, the kernel and what sets the clock say."""
    entries = BootEntries(reader, span.boot_id)
    return BootEnd(
        ending=_ending(entries),
        synchronised=_synchronised(entries),
        slept=entries.any(*KERNEL, SUSPENDED, *HIBERNATED),
    )


def _ending(entries: BootEntries) -> Ending | None:
    """A shutdown target that was reached is among the last things that reach a journal."""
    units = (f"UNIT={name.decode()}" for name in _ENDINGS)
    ending = None
    for _ in entries.texts(MANAGER, "JOB_RESULT=done", *units):
        ending = _ENDINGS.get(field(entries.reader, "UNIT"), ending)
    return ending


def _synchronised(entries: BootEntries) -> bool:
    units = (f"_SYSTEMD_UNIT={unit}" for unit in _CLOCK_UNITS)
    return any(_SYNCHRONISED.match(text) for text in entries.texts(*units))
