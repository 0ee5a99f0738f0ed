"""Boots recorded before an answer that rests on them: for a few seconds, and never in its way."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.generators.running import elsewhere
from initadvisor.host.cached import keep, read_cached
from initadvisor.store.opening import FILE_NAME
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.measure.measure import MeasureObserver


BUDGET_S = 5.0
_MARK = "caught-up.json"
_SUDO = "past boots are not used: sudo initadvisor recommend uses them, too"


@dataclass(frozen=True, slots=True, kw_only=True)
class _CaughtUp:
    """In this boot all that the journal had was recorded."""

    boot_id: str | None


def catch_up(host: Host, *, observer: MeasureObserver, budget_s: float = BUDGET_S) -> str | None:
    """Record the running boot, and for ``budget_s`` those the journal has, the newest first.

    What is left, the next call records; once nothing is, calls do nothing until the next boot. In
    containers, chroots and live systems nothing is recorded. Returns what the user should know in
    one line, such as why nothing was recorded, None for nothing; raises nothing.
    """
    try:
        if _is_caught_up(host) or _is_elsewhere(host):
            return None
        if not _may_keep(host):
            return None if _knows_boots(host) else _SUDO
        return _catch_up(host, observer, budget_s)
    except NeedsRootError:
        return _SUDO
    except InitadvisorError as err:
        return f"past boots are not all used: {err.message}"
    except OSError as err:  # which libsystemd raises for damaged journals
        return f"past boots are not all used: cannot read the journal: {err}"


def _catch_up(host: Host, observer: MeasureObserver, budget_s: float) -> str | None:
    from initadvisor.measure.measure import measure  # which most calls have no need of

    observer.doing("recording this machine's boots")
    measured = measure(host, observer=observer, backfill=True, budget_s=budget_s)
    if measured.left:
        return f"{measured.left} boots of the journal are left for the next run to read"
    mark = _CaughtUp(boot_id=_boot_id(host))
    keep(host.state_dir() / _MARK, mark, what="that all boots are recorded")
    first, *others = measured.warnings or (None,)
    return f"{first} (and {len(others)} more)" if others else first


def _is_caught_up(host: Host) -> bool:
    mark = read_cached(host.state_dir() / _MARK, _CaughtUp)
    return mark is not None and mark.boot_id == _boot_id(host) and _knows_boots(host)


def _boot_id(host: Host) -> str | None:
    return host.read_text("/proc/sys/kernel/random/boot_id")


def _may_keep(host: Host) -> bool:
    """Tell whether this run has a store to write to which later runs read, too.

    An ordinary user has none unless one was made: a store made now would hide what root records.
    """
    return host.is_root or (host.state_dir() / FILE_NAME).exists()


def _knows_boots(host: Host) -> bool:
    with open_store(host, readonly=True) as store:
        return bool(store.boot_figures(limit=1))


def _is_elsewhere(host: Host) -> bool:
    with contextlib.suppress(NeedsRootError):
        return elsewhere(host) is not None
    return False
