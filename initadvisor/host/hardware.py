"""What the machine is made of, as far as measurements depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


def cpu_model(host: Host) -> str:
    """Return the name of the processor as the kernel gives it, or its architecture."""
    for line in (host.read_text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return host.machine()
