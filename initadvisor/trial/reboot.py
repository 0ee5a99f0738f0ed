"""Rebooting for a campaign: through firmware and boot loader, or the selection would be in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


_TIMEOUT_S = 60.0
_THROUGH_FIRMWARE = {"SYSTEMCTL_SKIP_AUTO_KEXEC": "1", "SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT": "1"}
"""systemctl(1) takes a reboot for a kexec or a soft reboot where one of these is prepared."""

COUNTDOWN_MINUTES = 1
_SCHEDULED = "/run/systemd/shutdown/scheduled"
_WHAT = "initadvisor boots a trial"


def reboot_now(host: Host) -> None:
    """Reboot; raises ``ProgramError`` where that is refused."""
    host.runner.run(["systemctl", "reboot"], timeout_s=_TIMEOUT_S, env=_THROUGH_FIRMWARE)


def reboot_soon(host: Host) -> str:
    """Reboot after a countdown that everybody is told of; return that in words.

    Raises ``ProgramError`` where that is refused.
    """
    words = f"{_WHAT} in {COUNTDOWN_MINUTES} min; shutdown -c cancels it"
    argv = ["shutdown", "-r", f"+{COUNTDOWN_MINUTES}", words]
    host.runner.run(argv, timeout_s=_TIMEOUT_S, env=_THROUGH_FIRMWARE)
    return words


def cancel_reboot(host: Host) -> bool:
    """Call an announced reboot off and return True; leave anybody else's alone, return False.

    Raises ``ProgramError`` where that is refused.
    """
    if f"WALL_MESSAGE={_WHAT}" not in (host.read_text(_SCHEDULED) or ""):
        return False
    host.runner.run(["shutdown", "-c"], timeout_s=_TIMEOUT_S)
    return True
