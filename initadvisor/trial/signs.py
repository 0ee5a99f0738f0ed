"""How a boot ended that has left nothing in the journal: panics, the watchdog, the menu."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from initadvisor.records.rejection import RejectionReason
from initadvisor.records.trial_outcome import BootEndSigns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord


_PSTORE = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
"""Where the kernel shows what it saved when it died, and where systemd-pstore.service moves it."""

_PANIC = re.compile(r"Kernel panic - not syncing: ([^\r\n]{1,200})")
_LARGEST_BYTES = 1 << 20
_WATCHDOG_RESET = 0x20
"""WDIOF_CARDRESET of linux/watchdog.h: the card has reset the processor before this boot."""

_PANIC_WAIT_US = 30_000_000
"""A trial that panics waits so long before it restarts (``extra_cmdline``)."""

_EARLIEST_S = 1_577_836_800
"""The beginning of 2020: no boot was armed before that, only by a clock that nobody had set."""


def signs_since(
    host: Host, since_s: float, record: BootRecord | None, *, known: Collection[str] = ()
) -> BootEndSigns:
    """Return what there is to see since ``since_s`` (seconds since 1970).

    ``record``: what was measured of the running boot, None where it was not. ``known``: the panics
    that were there before (``known_panics``), whatever a clock says. Where the clock of ``since_s``
    was not set, no panic is a sign: it may be of any time.
    """
    panics = _panics(host, since_s) if since_s >= _EARLIEST_S else iter(())
    return BootEndSigns(
        panic=next((words for digest, words in panics if digest not in known), ""),
        watchdog=any(_watchdogs(host)),
        menu=_was_chosen(record),
    )


def known_panics(host: Host) -> tuple[str, ...]:
    """Return the digests of what is there of panics."""
    return tuple(digest for digest, _ in _panics(host, 0))


def _panics(host: Host, since_s: float) -> Iterator[tuple[str, str]]:
    for place in _PSTORE:
        for path in sorted(host.path(place).rglob("dmesg*")):
            if (data := _content(path, since_s)) is None:
                continue
            if found := _PANIC.search(data.decode(errors="replace")):
                yield hashlib.sha256(data).hexdigest()[:32], found[1].strip()


def _content(path: Path, since_s: float) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_mtime < since_s:
            return None
        with path.open("rb") as file:
            return file.read(_LARGEST_BYTES)
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
    if record is None or RejectionReason.MENU not in record.rejections:
        return False
    gap_us = record.reboot_gap.duration_us
    return gap_us is not None and gap_us < _PANIC_WAIT_US
