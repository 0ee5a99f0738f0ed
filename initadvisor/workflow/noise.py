"""What disturbs measurements on this machine: other programs, battery, a clock that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host

_WATCH_S = 0.5
_BUSY_PERCENT = 10.0
_STEAL_PERCENT = 2.0
_SCALING = {"powersave", "ondemand", "conservative", "schedutil"}
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def disturbances(host: Host) -> tuple[str, ...]:
    """Watch the machine for half a second and return what would disturb a measurement."""
    import psutil

    times = psutil.cpu_times_percent(interval=_WATCH_S)
    busy = 100.0 - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "steal", 0.0)
    found = []
    if busy > _BUSY_PERCENT:
        found.append(f"other programs use {busy:.0f} % of the processors")
    if (steal := getattr(times, "steal", 0.0)) > _STEAL_PERCENT:
        found.append(f"the hypervisor gives {steal:.0f} % of the processors to others")
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is not None and battery.power_plugged is False:
        found.append("the machine runs on battery")
    governor = (host.read_text(_GOVERNOR) or "").strip()
    if governor in _SCALING:
        found.append(f"the processors' frequency changes (governor {governor})")
    return tuple(found)
