"""The processor and the memory of the machine, as far as measurements depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


def cpu_model(host: Host) -> str:
    """Return the name of the processor as the kernel gives it, or its architecture."""
    return host.read_fields("/proc/cpuinfo").get("model name", host.machine())


_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All of the machine's memory, and what of it could be had now without swapping."""

    total_bytes: int
    available_bytes: int


def memory(host: Host) -> Memory | None:
    """Return what ``/proc/meminfo`` says, None where it does not (proc_meminfo(5))."""
    values = {}
    for name, value in host.read_fields("/proc/meminfo").items():
        number, _, unit = value.partition(" ")
        if unit == "kB" and number.isdecimal():
            values[name] = int(number) * _KIB
    total = values.get("MemTotal", 0)
    if not total:
        return None
    return Memory(total_bytes=total, available_bytes=values.get("MemAvailable", total))
