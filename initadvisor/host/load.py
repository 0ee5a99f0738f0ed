"""How much of the processors others use, while this process times something."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.host import Host


BUSY_PART = 0.15
"""What others may use of all processors before what was timed beside them is doubted."""

_COUNTERS = "/proc/stat"
_LEAST_S = 0.2
"""The kernel counts in hundredths of a second: of less nothing can be told."""

_IDLE, _IOWAIT, _STEAL = 3, 4, 7
_QUIET_LOAD = 0.5
_WATCHED_S, _QUIET_PART = 0.25, 0.05


class OthersLoad:
    """Watches from the moment it is made."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._before = self._used()

    @property
    def is_told(self) -> bool:
        """Whether the kernel's counters can be read."""
        return self._before is not None

    def part(self) -> float:
        """Return which part of all processors' time others have had since, 0 to 1.

        That is other programs and, where this is a virtual machine, other machines; 0 where it
        cannot be told.
        """
        if self._before is None or (now := self._used()) is None:
            return 0.0
        whole_s, others_s = now[0] - self._before[0], now[1] - self._before[1]
        if whole_s < _LEAST_S * self._host.cores:
            return 0.0
        return min(max(others_s / whole_s, 0.0), 1.0)

    def _used(self) -> tuple[float, float] | None:
        """Return the time of all processors since the boot, and that of others, in s (proc(5))."""
        head, *words = (self._host.read_text(_COUNTERS) or "").partition("\n")[0].split() or [""]
        ticks = [int(word) for word in words[: _STEAL + 1] if word.isdecimal()]
        if head != "cpu" or len(ticks) <= _STEAL:
            return None
        own = os.times()
        per_s = os.sysconf("SC_CLK_TCK")
        whole_s = sum(ticks) / per_s
        idle_s = (ticks[_IDLE] + ticks[_IOWAIT]) / per_s
        own_s = own.user + own.system + own.children_user + own.children_system
        return whole_s, whole_s - idle_s - own_s


def others_wait(host: Host) -> bool:
    """Tell whether, now, others want as many processors as there are, or wait for a disk."""
    lines = (host.read_text(_COUNTERS) or "").splitlines()
    counts = dict(line.split(None, 1) for line in lines if line.startswith("procs_"))
    try:
        running, blocked = int(counts["procs_running"]) - 1, int(counts["procs_blocked"])
    except (KeyError, ValueError):
        return False
    return running >= host.cores or blocked > 0


def is_quiet(host: Host) -> bool:
    """Tell whether the machine has next to nothing to do: for a minute, or else for a moment now.

    The load average takes minutes to forget what is over, an answer of this program included.
    """
    load, *_ = (host.read_text("/proc/loadavg") or "").split() or [""]
    try:
        if float(load) < _QUIET_LOAD:
            return True
    except ValueError:
        return False
    others = OthersLoad(host)
    if not others.is_told:
        return False
    time.sleep(_WATCHED_S)
    return others.part() <= _QUIET_PART
