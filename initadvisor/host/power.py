"""Whether the machine runs on its battery; keeping it on while files are replaced."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from initadvisor.core.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host


_DIRECTORY = "/sys/class/power_supply"
"""Documentation/ABI/testing/sysfs-class-power"""


def on_battery(host: Host) -> bool | None:
    """Tell whether the machine runs on its battery, None where the kernel lists no supplies.

    It does where a battery is used up and nothing that is plugged in feeds the machine, as systemd
    decides it (src/shared/battery-util.c): an adapter that is offline may be a free USB-C port.
    """
    try:
        names = sorted(path.name for path in host.path(_DIRECTORY).iterdir())
    except OSError:
        return None
    drained = fed = False
    for name in names:
        kind, scope, status, online = (
            (host.read_text(f"{_DIRECTORY}/{name}/{attribute}") or "").strip()
            for attribute in ("type", "scope", "status", "online")
        )
        if kind == "Battery":  # the machine's, not a mouse's
            drained |= scope != "Device" and status == "Discharging"
        else:  # a mains adapter, or a USB one, that is plugged in (1 or 2)
            fed |= online not in {"", "0"}
    return drained and not fed


log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_BOOTED = "/run/systemd/system"
"""Exists where systemd is the init system (sd_booted(3))."""


@contextlib.contextmanager
def inhibited(host: Host, why: str) -> Iterator[None]:
    """Have logind refuse to shut down and to sleep as long as the context is.

    ``why`` is what users are told who try. The inhibitor goes with this process, however it ends
    (systemd-inhibit(1)). It guards against haste, not for correctness: where it cannot be had, a
    warning is logged and the block runs without.
    """
    words = ("--what=shutdown:sleep", "--mode=block", "--who=initadvisor", f"--why={why}")
    command = ("systemd-inhibit", *words, "cat")  # it starts its program once it has the lock
    with contextlib.ExitStack() as held:
        reason = _lacking(host)
        if reason is None:
            try:
                held.enter_context(
                    host.runner.hold(command, word="inhibited", timeout_s=_TIMEOUT_S)
                )
            except ProgramError as err:
                reason = err.message
        if reason is not None:
            log.warning("nothing keeps this machine from shutting down meanwhile: %s", reason)
        yield


def _lacking(host: Host) -> str | None:
    if not host.path(_BOOTED).is_dir():
        return "it was not booted with systemd"
    if host.runner.which("systemd-inhibit") is None:
        return "systemd-inhibit is not installed"
    return None
