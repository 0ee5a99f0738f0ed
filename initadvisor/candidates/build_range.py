"""What building an image took that was found, not built: of its setting only the codec is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from initadvisor.candidates.schedule import COST_S, expected_cpu_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from initadvisor.core.settings import Setting


_PAYLOAD_BYTES = 100_000_000
"""What ``COST_S`` is of; only ratios are taken, so that any would do."""

UNKNOWN_BUILD = (
    "what building today's image takes is not counted: nothing with its codec is compared, so "
    "nothing tells"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRange:
    """The processor time of the cheapest and of the dearest level of a codec, in seconds."""

    setting: Setting
    least_s: float
    most_s: float

    @property
    def middle_s(self) -> float:
        """The time as many times the least as the most is of it."""
        return sqrt(self.least_s * self.most_s)

    @property
    def words(self) -> str:
        """What is to be said of it."""
        return (
            f"what building today's image takes is not known, as its level is not: taken to be "
            f"{self.middle_s:.1f} s of processor time, {self.least_s:.1f} to {self.most_s:.1f} s "
            f"over the levels of {self.setting.codec}"
        )


def build_range(setting: Setting, known: Iterable[tuple[Setting, float]]) -> BuildRange | None:
    """Return what building some level of the codec takes, None where nothing is known of any.

    ``known``: what was built or estimated, and its processor time in seconds. How much more or less
    other levels take than those is as it was measured elsewhere, so that it does not matter which
    of the levels are known.
    """
    codec, bounds = setting.codec, []
    for other, cpu_s in known:
        if other.codec is not codec:
            continue
        level = codec.spec.level if other.level is None else other.level
        scale = cpu_s / expected_cpu_s(codec, level, _PAYLOAD_BYTES)
        bounds += [cpu_s, *(scale * cost for cost in COST_S[codec].values())]
    if not bounds:
        return None
    return BuildRange(setting=setting, least_s=min(bounds), most_s=max(bounds))
