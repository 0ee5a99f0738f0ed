"""systemd's own account of this boot: the properties of its manager."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.model.errors import ProgramError
from initadvisor.model.loader import ManagerTimes

if TYPE_CHECKING:
    from initadvisor.host import Host

_PROPERTIES = {
    "FirmwareTimestampMonotonic": "firmware_us",
    "LoaderTimestampMonotonic": "loader_us",
    "InitRDTimestampMonotonic": "initrd_us",
    "UserspaceTimestampMonotonic": "userspace_us",
    "FinishTimestampMonotonic": "finish_us",
    "SoftRebootsCount": "soft_reboots",
}
_DECIMAL = re.compile(r"[0-9]{1,18}", re.ASCII)
_TIMEOUT_S = 5


def manager_times(host: Host) -> ManagerTimes:
    """Ask systemd's manager; nothing is known where systemd does not run or does not answer.

    SoftRebootsCount exists since systemd 256. A moment that has not come yet, or that systemd does
    not know, is 0 on the bus.
    """
    if not host.path("/run/systemd/system").is_dir():  # sd_booted(3)
        return ManagerTimes()
    try:
        said = host.runner.run(
            ["systemctl", "show", f"--property={','.join(_PROPERTIES)}"], timeout_s=_TIMEOUT_S
        ).stdout.decode(errors="replace")
    except ProgramError:
        return ManagerTimes()
    values = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    found = {
        name: int(values[key])
        for key, name in _PROPERTIES.items()
        if _DECIMAL.fullmatch(values.get(key, ""))
    }
    soft_reboots = found.pop("soft_reboots", None)
    moments = {name: value for name, value in found.items() if value}
    return ManagerTimes(soft_reboots=soft_reboots, **moments)
