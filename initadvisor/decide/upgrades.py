"""How many boots a build of the image serves: those between two kernel upgrades, as counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


ASSUMED_BOOTS = 14
"""One boot a day and an upgrade every two weeks: about what desktops of rolling and of regularly
patched distributions do. It counts only where neither the user nor the recorded boots say more.
"""


class PaceSource(StrEnum):
    """Where the number comes from."""

    CONFIGURED = "configured"
    COUNTED = "counted"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePace:
    """How many boots there are between two kernel upgrades.

    ``recorded_boots`` and ``upgrades``: how many boots it was counted from and how many of them
    were the first one of a new kernel, where it was counted. Where there was no upgrade among
    them, ``boots`` is the least it can be.
    """

    boots: float
    source: PaceSource
    recorded_boots: int = 0
    upgrades: int = 0

    @property
    def words(self) -> str:
        """The number with where it comes from."""
        number = f"{self.boots:.3g} boot{'' if self.boots == 1 else 's'} per kernel upgrade"
        match self.source:
            case PaceSource.CONFIGURED:
                return f"{number}, as configured"
            case PaceSource.ASSUMED:
                return f"{number}, assumed"
            case PaceSource.COUNTED if self.upgrades == 0:
                return f"at least {number}, counted from as many recorded boots without an upgrade"
            case PaceSource.COUNTED:
                return f"{number}, counted from {self.recorded_boots} recorded boots"


def upgrade_pace(configured: int | None, counted: UpgradePace | None) -> UpgradePace:
    """Return what the user says, else what was counted, else what is assumed."""
    if configured is not None:
        return UpgradePace(boots=configured, source=PaceSource.CONFIGURED)
    return counted or UpgradePace(boots=ASSUMED_BOOTS, source=PaceSource.ASSUMED)


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
