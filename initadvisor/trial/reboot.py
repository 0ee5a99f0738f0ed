"""Rebooting for a campaign: through firmware and boot loader, or the selection would be in vain.

Nobody's work is cut off for it. What is against a reboot is looked at when the reboot happens, with
other runs and package managers kept out: nothing is left between that look and the reboot but
systemctl itself, which asks for inhibitors once more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import detect
from initadvisor.bootloaders.entry import OneShotState
from initadvisor.bootloaders.passphrases import passphrase_prompt
from initadvisor.campaign.campaign import CampaignState
from initadvisor.campaign.record import read_campaign
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.firmware.efi_variables import firmware_value, loader_text
from initadvisor.host.logind import logged_in_users, shutdown_inhibitors
from initadvisor.host.package_managers import busy_package_managers, package_managers_held
from initadvisor.transaction.transactions import transactions
from initadvisor.trial.binding import binding_fault
from initadvisor.trial.one_boot import is_of_this_boot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import ArmedBoot


_log = logging.getLogger(__name__)

_TIMEOUT_S = 60.0
_THROUGH_FIRMWARE = {"SYSTEMCTL_SKIP_AUTO_KEXEC": "1", "SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT": "1"}
"""systemctl(1) takes a reboot for a kexec or a soft reboot where one of these is prepared."""

UNIT: Final = "initadvisor-reboot.service"
_CALL_OFF: Final = f"systemctl stop {UNIT}"
_NOTICE_S = 60

_SCHEDULED = "/run/systemd/shutdown/scheduled"
_OFFLINE_UPDATES = ("/system-update", "/etc/system-update")
"""Whichever is there has the next boot update the system (systemd.offline-updates(7))."""

_FIRMWARE_REQUESTS: Final = (
    (0x01, "its setup is to be shown"),
    (0x04, "its own update is to be installed"),
    (0x20, "the system is to be recovered"),
    (0x40, "the platform is to be recovered"),
)
"""Bits of OsIndications that change what the next boot is (UEFI 2.10, section 8.5.4)."""

_NOBODY: Final = 0xFFFFFFFF
"""What the kernel says of a process that began with no login."""


def arrange_reboot(host: Host) -> str:
    """Have ``UNIT`` reboot the machine once nothing is against it; return that in words.

    Raises ``ProgramError`` where that cannot be had.
    """
    host.runner.run(["systemctl", "restart", "--no-block", UNIT], timeout_s=_TIMEOUT_S)
    return f"the machine reboots by itself once nothing is against it; {_CALL_OFF} calls that off"


def call_off_reboot(host: Host) -> None:
    """Have ``UNIT`` end; where it cannot be, it finds no campaign that it may reboot for."""
    try:
        host.runner.run(["systemctl", "stop", UNIT], timeout_s=_TIMEOUT_S)
    except ProgramError as err:
        _log.info("the reboot was not called off: %s", err.message)


def reboot_unattended(host: Host) -> tuple[str, ...]:
    """Reboot for the boot that a campaign has armed, a minute after everybody was told.

    Returns what was done, in lines. Raises like ``reboot``; where something is against it at once,
    nobody is told.
    """
    armed = _armed_boot(host)
    if armed is None:
        return ()
    _require_nothing_against(host, armed, attended=False)
    words = f"initadvisor reboots this machine for a trial in {_NOTICE_S // 60} min"
    try:
        host.runner.run(["wall", f"{words}; {_CALL_OFF} calls it off"], timeout_s=_TIMEOUT_S)
    except ProgramError as err:  # nobody is logged in, or it would not have come so far
        _log.info("nobody was told of the reboot: %s", err.message)
    time.sleep(_NOTICE_S)
    return ("the machine reboots for a trial",) if reboot(host, attended=False) else ()


def reboot(host: Host, *, attended: bool) -> bool:
    """Reboot for the boot that a campaign has armed, unless something is against it now.

    ``attended``: whoever has asked for it looks on. Returns False where no campaign that reboots by
    itself has a boot armed. Raises ``UnsafeError`` with all that is against it, and
    ``InitadvisorError`` where it fails or another run is at work.
    """
    with contextlib.ExitStack() as held:
        held.enter_context(transactions(host))
        armed = _armed_boot(host)
        if armed is None:
            return False
        try:
            held.enter_context(package_managers_held(host, wait_s=0))
        except UnsafeError as err:
            raise _refused([err.message]) from err
        _require_nothing_against(host, armed, attended=attended)
        # systemctl's own look refuses root because of whoever has called sudo.
        look = () if attended else ("--check-inhibitors=yes",)
        host.runner.run(["systemctl", "reboot", *look], timeout_s=_TIMEOUT_S, env=_THROUGH_FIRMWARE)
    return True


def require_unattended_boot(host: Host) -> None:
    """Raise ``UnsafeError`` where the machine would wait for a passphrase when it boots."""
    if prompt := passphrase_prompt(host, detect.detect_boot_loader(host)):
        msg = f"the machine does not reboot by itself: {prompt}"
        raise UnsafeError(
            msg,
            hint="leave --reboot out and reboot the machine yourself, or have a TPM or a key file "
            "unlock the disk",
        )


def against_reboot(host: Host, armed: ArmedBoot, *, attended: bool) -> tuple[str, ...]:
    """Return all that is against a reboot for an armed boot now, in words; empty: nothing is.

    What cannot be told is against it, too. What takes longest is looked at first, and last of all
    what may change at any moment.
    """
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _passphrase(host, armed),
        lambda: _wrong_with(host, armed),
        lambda: _selected_by_others(host, armed.loader),
        lambda: _asked_of_next_boot(host),
        lambda: map(str, busy_package_managers(host)),
        lambda: _users(host, but=_who_asked(host) if attended else None),
        lambda: _inhibitors(host),
    )
    found: list[str] = []
    for check in checks:
        try:
            found += check()
        except InitadvisorError as err:
            found.append(err.message)
    return tuple(dict.fromkeys(found))


def _require_nothing_against(host: Host, armed: ArmedBoot, *, attended: bool) -> None:
    if reasons := against_reboot(host, armed, attended=attended):
        raise _refused(reasons)


def _refused(reasons: Iterable[str]) -> UnsafeError:
    msg = f"the machine is not rebooted for a trial: {'; '.join(reasons)}"
    return UnsafeError(msg, hint="the boot stays armed, for whenever it is rebooted")


def _armed_boot(host: Host) -> ArmedBoot | None:
    """Return what is armed by a campaign that the machine is to be rebooted for."""
    campaign = read_campaign(host)
    if campaign.state is not CampaignState.ARMED or not campaign.reboots:
        return None
    return campaign.current.armed_boot if campaign.current else None


def _passphrase(host: Host, armed: ArmedBoot) -> Iterator[str]:
    if prompt := passphrase_prompt(host, detect.loader_named(armed.loader)):
        yield prompt


def _wrong_with(host: Host, armed: ArmedBoot) -> Iterator[str]:
    if armed.taken_back or not is_of_this_boot(host, armed):
        yield "no boot is armed for the time being"
    elif fault := binding_fault(host, armed):
        yield f"{fault} since the boot was armed"


def _selected_by_others(host: Host, ours: str) -> Iterator[str]:
    """Look at every loader: more than one may have its say in the next boot."""
    for loader in detect.BOOT_LOADERS:
        found = loader.armed(host)
        match found.state:
            case OneShotState.OTHERS:
                yield f"the next boot is of {found.identifier}, which somebody else has selected"
            case OneShotState.UNREADABLE if ours == loader.NAME:
                yield f"it cannot be told what the next boot is of: {found.reason}"
            case OneShotState.NONE if ours == loader.NAME:
                yield "the trial is not selected for the next boot any more"
            case OneShotState.OURS if ours != loader.NAME:
                yield f"{loader.NAME} has a trial selected that this campaign has not armed"
            case _:
                pass


def _asked_of_next_boot(host: Host) -> Iterator[str]:
    value = int.from_bytes((firmware_value(host, "OsIndications") or b"")[:8], "little")
    for bit, what in _FIRMWARE_REQUESTS:
        if value & bit:
            yield f"the firmware was asked for something at the next boot: {what}"
    if loader_text(host, "LoaderConfigTimeoutOneShot") is not None:
        yield "the boot loader was asked to show its menu at the next boot"
    for path in _OFFLINE_UPDATES:
        if os.path.lexists(host.path(path)):
            yield f"the next boot is to update the system ({path})"
    if host.read_text(_SCHEDULED) is not None:
        yield "somebody else has scheduled a shutdown or a reboot"


def _users(host: Host, *, but: int | None) -> Iterator[str]:
    for number, name in logged_in_users(host).items():
        if number != but:
            yield f"{name} is logged in"


def _inhibitors(host: Host) -> Iterator[str]:
    for found in shutdown_inhibitors(host):
        yield f"{found.who} keeps the machine from shutting down: {found.why}"


def _who_asked(host: Host) -> int:
    """Return the user who has called this command, be it with sudo(8); see credentials(7)."""
    login = (host.read_text("/proc/self/loginuid") or "").strip()
    for number in (login, os.environ.get("SUDO_UID", "")):
        if number.isdecimal() and int(number) < _NOBODY:
            return int(number)
    return os.getuid()
