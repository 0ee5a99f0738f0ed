"""Whether the machine runs on its battery (Documentation/ABI/testing/sysfs-class-power)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


_DIRECTORY = "/sys/class/power_supply"


@dataclass(frozen=True, slots=True)
class _Supply:
    kind: str
    scope: str
    status: str
    online: str

    @property
    def feeds(self) -> bool:
        """Whether it is a mains adapter, or a USB one, that is plugged in (1 or 2)."""
        return self.kind != "Battery" and self.online not in {"", "0"}

    @property
    def drains(self) -> bool:
        """Whether it is the machine's battery, not a mouse's, and is being used up."""
        return self.kind == "Battery" and self.scope != "Device" and self.status == "Discharging"


def on_battery(host: Host) -> bool | None:
    """Tell whether the machine runs on its battery, None where the kernel lists no supplies.

    It does where a battery is used up and nothing that is plugged in feeds the machine, as systemd
    decides it (src/shared/battery-util.c): an adapter that is offline may be a free USB-C port.
    """
    try:
        names = sorted(path.name for path in host.path(_DIRECTORY).iterdir())
    except OSError:
        return None
    supplies = [_supply(host, name) for name in names]
    return any(each.drains for each in supplies) and not any(each.feeds for each in supplies)


def _supply(host: Host, name: str) -> _Supply:
    values = [
        (host.read_text(f"{_DIRECTORY}/{name}/{attribute}") or "").strip()
        for attribute in ("type", "scope", "status", "online")
    ]
    return _Supply(*values)
