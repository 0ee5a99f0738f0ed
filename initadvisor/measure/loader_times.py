"""All that firmware, loader and systemd tell of the times of this boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.measure.efi import efi_times
from initadvisor.measure.fpdt import fpdt_times
from initadvisor.measure.startup import manager_times
from initadvisor.model.loader import LoaderTimes

if TYPE_CHECKING:
    from initadvisor.host import Host


def loader_times(host: Host) -> LoaderTimes:
    """Read every source of the running system, each for itself.

    To be read soon after the boot and once per boot: see ``measure/continuity.py`` for what may
    change the readings later.
    """
    efi, efi_wrong = efi_times(host)
    fpdt, fpdt_wrong = fpdt_times(host)
    return LoaderTimes(
        efi=efi, fpdt=fpdt, manager=manager_times(host), unreadable=(*efi_wrong, *fpdt_wrong)
    )
