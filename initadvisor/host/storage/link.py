"""What the link between a disk and the machine carries, as the kernel says in /sys.

Of NVMe the lanes and their rate (PCI Express base specification: 8b/10b up to 5 GT/s, 128b/130b
above), of SATA the speed that was negotiated (8b/10b: a tenth of it in bytes).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


_LAST_OF_8B10B = 5.0
_ATA_PORT = re.compile(r"/ata(\d+)/")


def link_mb_s(host: Host, disk: str) -> float | None:
    """Return what the link of a disk (its name below /sys/block) carries, None where not known."""
    pci = f"/sys/block/{disk}/device/device"
    rate = _number(host.read_text(f"{pci}/current_link_speed"), "GT/s")
    lanes = _number(host.read_text(f"{pci}/current_link_width"), "")
    if rate and lanes:
        coded = 8 / 10 if rate <= _LAST_OF_8B10B else 128 / 130
        return rate * 1000 * lanes * coded / 8
    port = _ATA_PORT.search(str(host.path(f"/sys/block/{disk}").resolve()))
    if port is None:
        return None
    speed = host.read_text(f"/sys/class/ata_link/link{port[1]}/sata_spd")
    gigabits = _number(speed, "Gbps")
    return gigabits * 100 if gigabits else None


def _number(text: str | None, unit: str) -> float | None:
    """Return the number before a unit; None for "Unknown" and what is none."""
    found = re.match(rf"([0-9]+(?:\.[0-9]+)?)\s*{unit}", (text or "").strip())
    return float(found[1]) if found else None
