"""How many boots there are between two kernel upgrades, counted from boots that happened."""

from __future__ import annotations

from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from initadvisor.model.upgrade_pace import ASSUMED_BOOTS, PaceSource, UpgradePace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_LEAST_UPGRADES = 3
_LEAST_DAYS = 60


def counted_pace(boots: Iterable[tuple[datetime, str | None]]) -> UpgradePace | None:
    """Return the pace of the upgrades, None where too little is recorded to tell one.

    ``boots``: when each started and its kernel's release (``uname -r``), None where that is not
    known; in any order. An upgrade is the first boot of a release that did not boot before: who
    goes back to an older kernel, or uses two in turn, builds nothing by that.

    Three upgrades are enough: the median of the boots from one to the next, which neither a week of
    trying kernels nor a summer without upgrades pulls far. So are 60 days: all boots, divided by
    the upgrades among them; without any, all boots are the least it can be, which says something
    only where that is more than what would be assumed.
    """
    ordered = sorted(boots, key=itemgetter(0))
    first: dict[str, int] = {}
    for number, (_, release) in enumerate(ordered):
        if release is not None:
            first.setdefault(release, number)
    _, *upgrades = first.values() or [0]
    if len(upgrades) >= _LEAST_UPGRADES:
        between = median(later - earlier for earlier, later in pairwise(upgrades))
    elif not ordered or (ordered[-1][0] - ordered[0][0]).days < _LEAST_DAYS:
        return None
    else:
        between = len(ordered) / max(len(upgrades), 1)
        if not upgrades and between <= ASSUMED_BOOTS:
            return None
    return UpgradePace(
        boots=between,
        source=PaceSource.COUNTED,
        recorded_boots=len(ordered),
        upgrades=len(upgrades),
    )
