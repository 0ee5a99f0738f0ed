"""Whether the firmware starts signed programs only (UEFI 2.10, section 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.measure.efi import firmware_value, variables_are_shown

if TYPE_CHECKING:
    from initadvisor.host import Host

_ON = b"\1"


def enforces_signatures(host: Host) -> bool:
    """Tell whether Secure Boot is on; in setup mode nothing is enforced, and on BIOS neither.

    Raises ``InitadvisorError`` where the variables are there but cannot be read.
    """
    if not variables_are_shown(host):
        return False
    return firmware_value(host, "SecureBoot") == _ON and firmware_value(host, "SetupMode") != _ON
