"""Which boots would settle a decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Purpose(StrEnum):
    """Why a candidate is to be booted next.

    ``today``: nothing is known of this machine before today's image booted. ``learn``: this boot
    narrows most what the decision depends on. ``prove``: all is decided, but what is to be used
    booted never.
    """

    TODAY = "today"
    LEARN = "learn"
    PROVE = "prove"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootPlan:
    """Boots of candidates, each by its column.

    ``first``: the next one. ``boots``: all of them, how many of which, in the order in which each
    comes up first. ``chance``: with which probability the decision is settled after them; 1 where
    only a proof is missing. ``leader`` and ``rival``: the two whose difference is in question.
    """

    first: int
    purpose: Purpose
    boots: tuple[tuple[int, int], ...]
    chance: float
    leader: int
    rival: int

    @classmethod
    def of_one(cls, column: int, purpose: Purpose) -> Self:
        """Plan a single boot that has to be, whatever it teaches."""
        chance = 1.0 if purpose is Purpose.PROVE else 0.0
        return cls(
            first=column,
            purpose=purpose,
            boots=((column, 1),),
            chance=chance,
            leader=column,
            rival=column,
        )

    @property
    def count(self) -> int:
        """How many boots these are."""
        return sum(count for _, count in self.boots)
