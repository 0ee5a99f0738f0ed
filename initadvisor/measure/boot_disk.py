"""The disk that a file is on, in words that stay the same from boot to boot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

_SECTOR_BYTES = 512
"""The unit of sizes below /sys, whatever the disk's own sectors are."""


def boot_disk(host: Host, file: Path) -> str | None:
    """Return model and size of the disk, None where it has no such description below /sys.

    That is so for device mapper, arrays, and file systems with device numbers of their own
    (btrfs). Names like sda are no help: they change.
    """
    try:
        device = file.stat().st_dev
        node = host.path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    except OSError:
        return None
    disk = node.parent if (node / "partition").exists() else node
    model, sectors = (_line(disk / name) for name in ("device/model", "size"))
    if model is None or sectors is None or not sectors.isdecimal():
        return None
    return f"{model}, {int(sectors) * _SECTOR_BYTES / 1e9:.1f} GB"


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
