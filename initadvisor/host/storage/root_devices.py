"""By which names the disks of the root file system, their buses and keyboards ask for modules.

As ``dep_add_modules`` in initramfs-tools' hook-functions (0.148) goes through /sys for MODULES=dep.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from initadvisor.host.storage.mounts import mounts_of_host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.host.storage.mounts import Mount


_CLASSES = ("extcon", "gpio", "phy", "pwm", "regulator", "rtc")
_BUSES = {
    "scsi": ("sd_mod",),
    "mmc": ("mmc_block",),
    "virtio": ("virtio_pci", "virtio_mmio"),
}
_KEYBOARD = re.compile(r"^KEY=.*fffffff[ef]$", re.MULTILINE)
_MOST_DEVICES = 1000


def names_for_root(host: Host) -> set[str]:
    """Return names of modules, kinds of devices (modalias) and file systems; fewer on no disk."""
    mounts = {mount.mount_point: mount for mount in mounts_of_host(host)}
    on_root = [mounts[place] for place in ("/", "/usr") if place in mounts]
    names = {mount.fs_type for mount in on_root}
    sys = host.path("/sys")
    walk = _Walk(sys)
    for mount in on_root:
        walk.block(_device(host, mount))
    for name in _CLASSES:
        for device in sys.glob(f"class/{name}/*"):
            walk.up(device)
    for device in sys.glob("class/input/input*"):
        if _KEYBOARD.search(_text(device / "uevent")):
            walk.up(device)
    for bus, modules in _BUSES.items():
        if (sys / "bus" / bus).is_dir():
            names.update(modules)
    return names | walk.names


class _Walk:
    """Goes from devices to those that they are on, each once."""

    def __init__(self, sys: Path) -> None:
        self._sys = os.path.realpath(sys)
        self._seen: set[str] = set()
        self.names: set[str] = set()

    def block(self, device: Path) -> None:
        """Go from a block device, and from what it is made of."""
        disk = device
        if "DEVTYPE=partition" in _text(device / "uevent").split("\n"):
            disk = device.resolve().parent
        for part in disk.glob("slaves/*"):
            if len(self._seen) < _MOST_DEVICES:
                self.block(part)
        self.up(device)

    def up(self, device: Path) -> None:
        """Go up from a device, and from what supplies each."""
        path = device.resolve()
        while path.is_relative_to(self._sys) and str(path) != self._sys:
            if str(path) in self._seen or len(self._seen) >= _MOST_DEVICES:
                return
            self._seen.add(str(path))
            self.names |= set(_names(path))
            for link in path.glob("supplier:*"):
                self.up(link / "supplier")
            path = path.parent


def _names(path: Path) -> Iterator[str]:
    if modalias := _text(path / "modalias").strip():
        yield modalias
    module = path / "driver/module"
    if module.exists():
        yield module.resolve().name


def _device(host: Host, mount: Mount) -> Path:
    number = f"{mount.major}:{mount.minor}"
    if not mount.major and mount.source.startswith("/dev/"):  # btrfs has numbers of its own
        try:
            node = host.path(mount.source).stat().st_rdev
            number = f"{os.major(node)}:{os.minor(node)}"
        except OSError:
            pass
    return host.path(f"/sys/dev/block/{number}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
