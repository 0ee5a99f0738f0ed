"""How many boots a build of the image has to serve: until the next kernel upgrade."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
