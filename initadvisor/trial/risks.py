"""What a trial may cost: when a person is needed, and what keeps that from happening."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


_WATCHDOG_S = 600
"""Long enough for somebody to type a passphrase, since some watchdogs run before systemd does."""

_NO_HARDWARE = ("Software Watchdog",)
"""What the kernel's own timer calls itself (drivers/watchdog/softdog.c): it hangs with the rest."""


def watchdog_s(host: Host) -> int | None:
    """Return after how long the machine's watchdog is to restart it, None where it has none."""
    for path in sorted(host.path("/sys/class/watchdog").glob("watchdog*/identity")):
        try:
            identity = path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if identity and identity not in _NO_HARDWARE:
            return _WATCHDOG_S
    return None


def risks(host: Host) -> tuple[str, ...]:
    """Return what may happen in a trial's boot, in sentences, the harmless first."""
    by_itself = (
        "A trial whose kernel panics restarts by itself after 30 s. The boot after a trial that "
        "fails, however it does, is the default entry's again."
    )
    limit_s = watchdog_s(host)
    if limit_s is None:
        person = (
            "This machine has no hardware watchdog: a trial that hangs without a word waits for "
            "somebody to reset the machine or switch it off. It then boots as always."
        )
    else:
        person = (
            f"The hardware's watchdog restarts the machine {limit_s // 60} min after a trial "
            "hangs, but only once systemd runs: before that, somebody has to reset the machine or "
            "switch it off. It then boots as always."
        )
    return by_itself, person
