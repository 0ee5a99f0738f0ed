"""Signs of how a boot ended that left nothing in the journal: panics, the watchdog, the menu."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.model.fate import Signs
from initadvisor.model.rejection import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.boot_record import BootRecord

_PSTORE = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
"""Where the kernel shows what it saved when it died, and where systemd-pstore.service moves it."""

_PANIC = re.compile(r"Kernel panic - not syncing: ([^\r\n]{1,200})")
_LARGEST_BYTES = 1 << 20
_WATCHDOG_RESET = 0x20
"""WDIOF_CARDRESET of linux/watchdog.h: the card has reset the processor before this boot."""

_PANIC_WAIT_US = 30_000_000
"""A trial that panics waits so long before it restarts (``trial_words``)."""


def signs_since(host: Host, since_s: float, record: BootRecord | None) -> Signs:
    """Return what there is to see since ``since_s`` (seconds since 1970).

    ``record``: what was measured of the running boot, None where it was not.
    """
    return Signs(
        panic=next(_panics(host, since_s), ""),
        watchdog=any(_watchdogs(host)),
        menu=_was_chosen(record),
    )


def _panics(host: Host, since_s: float) -> Iterator[str]:
    for place in _PSTORE:
        for path in sorted(host.path(place).rglob("dmesg*")):
            if (text := _text(path, since_s)) and (found := _PANIC.search(text)):
                yield found[1].strip()


def _text(path: Path, since_s: float) -> str | None:
    try:
        if not path.is_file() or path.stat().st_mtime < since_s:
            return None
        with path.open("rb") as file:
            return file.read(_LARGEST_BYTES).decode(errors="replace")
    except OSError:
        return None


def _watchdogs(host: Host) -> Iterator[bool]:
    for path in sorted(host.path("/sys/class/watchdog").glob("watchdog*/bootstatus")):
        try:
            yield bool(int(path.read_text(encoding="ascii").strip(), 0) & _WATCHDOG_RESET)
        except (OSError, ValueError):
            continue


def _was_chosen(record: BootRecord | None) -> bool:
    """Tell whether the menu was used and no boot that waits after a panic fits before this one."""
    if record is None or Reason.MENU not in record.rejections:
        return False
    gap_us = record.reboot_gap.duration_us
    return gap_us is not None and gap_us < _PANIC_WAIT_US
