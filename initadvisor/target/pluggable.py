"""Which modules no boot tells to be needless: all but drivers of what is built into a machine.

What is plugged in now and then, no recorded boot may have seen. So a module is only judged by the
boots there have been where each of its aliases is for devices of a bus that is fixed, and none of
these rules keeps it; a module without aliases is judged with those that need it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


FIXED_BUSES: Final = frozenset({"acpi", "hdaudio", "of", "pci", "sdw"})
"""Beginnings of aliases (scripts/mod/file2alias.c) whose devices stay where they are. PCI does not
altogether: what it has in docks and card slots, ``_KEPT`` names."""


class Pluggable(StrEnum):
    """Why a module is kept, whatever boots say."""

    USB = "USB and disks"
    KEYBOARD = "keyboards"
    DOCK = "docks and Thunderbolt"
    CARD = "card readers"
    VOLUME = "volumes and crypto"
    FILE_SYSTEM = "file systems"
    OTHER = "on no fixed bus"
    NEEDED = "needed by those"


_KEPT: Final = {
    Pluggable.USB: (
        "drivers/cdrom drivers/net/usb drivers/scsi/scsi_mod drivers/scsi/sd_mod drivers/scsi/sg "
        "drivers/scsi/sr_mod drivers/usb"
    ),
    Pluggable.KEYBOARD: "drivers/bluetooth drivers/hid drivers/input net/bluetooth",
    Pluggable.DOCK: (
        "drivers/ata/ahci drivers/ata/libahci drivers/ata/libata drivers/firewire drivers/nvme "
        "drivers/pci drivers/pcmcia drivers/platform drivers/thunderbolt"
    ),
    Pluggable.CARD: (
        "drivers/memstick drivers/misc/cardreader drivers/misc/tifm_7xx1 drivers/misc/tifm_core "
        "drivers/mmc"
    ),
    Pluggable.VOLUME: (
        "arch/*/crypto block crypto drivers/block drivers/char/tpm drivers/crypto drivers/dax "
        "drivers/md drivers/nvdimm lib/crypto security/keys"
    ),
    Pluggable.FILE_SYSTEM: "fs",
}
"""Directories of the kernel's source, and single modules in such."""

_BEHIND_THUNDERBOLT: Final = "drivers/ata drivers/message drivers/net/ethernet drivers/scsi"
"""What is kept beside those where the machine has Thunderbolt or USB4: all that a root may be on.
Not graphics: the screen that the firmware has set up shows a prompt without its driver."""

_ARCHITECTURE = re.compile(r"^arch/[^/]+")


def _by_place(kept: dict[Pluggable, str]) -> dict[str, Pluggable]:
    return {place: why for why, places in kept.items() for place in places.split()}


_BY_PLACE: Final = _by_place(_KEPT)
_BY_PLACE_WITH_THUNDERBOLT: Final = _by_place({Pluggable.DOCK: _BEHIND_THUNDERBOLT}) | _BY_PLACE


def why_kept(
    name: str, directory: str | None, buses: AbstractSet[str], *, thunderbolt: bool
) -> Pluggable | None:
    """Return why a module is kept, None where it is fit to be judged by boots.

    ``directory``: in the kernel's source, None for a module that is not installed. ``buses``: what
    its aliases begin with, "" for an alias that is of no device.
    """
    if directory is None:
        return Pluggable.OTHER
    places = _BY_PLACE_WITH_THUNDERBOLT if thunderbolt else _BY_PLACE
    place = f"{_ARCHITECTURE.sub('arch/*', directory)}/{name}"
    while place:
        if why := places.get(place):
            return why
        place = place.rpartition("/")[0]
    return None if buses <= FIXED_BUSES else Pluggable.OTHER
