"""What holds on this machine now, of what jobs need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.host.package_managers import busy_package_managers
from initadvisor.measure.power import on_battery
from initadvisor.model.daemon import Needs

if TYPE_CHECKING:
    from initadvisor.host import Host

_LOOK_S = 2.0
_BUSY_PERCENT = 50.0
"""Of all processors together. Work here is idle anyway and yields to everything; but a machine that
is being used is not to be made hot, and times taken on it are worth less."""


def lacking(host: Host, needs: Needs) -> Needs:
    """Return what of ``needs`` does not hold; only that is looked at, the cheapest first.

    Where a machine does not tell what it runs on, it is no laptop.
    """
    found = Needs.NOTHING
    if Needs.POWER in needs and on_battery(host):
        found |= Needs.POWER
    if Needs.MANAGERS in needs and busy_package_managers(host):
        found |= Needs.MANAGERS
    # Looking at processors takes time; whatever needs them idle needs the others, too.
    if Needs.PROCESSORS in needs and not found and _busy():
        found |= Needs.PROCESSORS
    return found


def _busy() -> bool:
    import psutil

    return float(psutil.cpu_percent(interval=_LOOK_S)) > _BUSY_PERCENT
