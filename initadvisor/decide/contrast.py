"""What two candidates differ by, and which one comes closest to what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.costs import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.cost import CandidateFacts
    from initadvisor.decide.costs import Draws
    from initadvisor.decide.decision import CandidateComparison


def strongest_rival(found: CandidateComparison, chosen: int) -> tuple[int, float] | None:
    """Return which candidate is likeliest to be better than the chosen one, and how likely.

    Better by more than the tolerance, that is; of those that are equally so, it is the one that is
    expected to cost least. None where nothing else may be chosen.
    """
    others = found.eligible.copy()
    others[chosen] = False
    if not others.any():
        return None
    saving = found.cost_ms[:, [chosen]] - found.cost_ms
    better = np.where(others, (saving > found.tolerance_ms[:, None]).mean(axis=0), -np.inf)
    foremost = better == better.max()
    rival = int(np.where(foremost, saving.mean(axis=0), -np.inf).argmax())
    return rival, float(better[rival])


def contrast(
    draws: Draws, candidates: Sequence[CandidateFacts], one: int, other: int, *, source: str
) -> Contrast:
    """Return what the candidate in column ``one`` costs more than the one in ``other``."""
    read = draws.read_ms[:, one] - draws.read_ms[:, other]
    total = draws.total_ms[:, one] - draws.total_ms[:, other]
    extra = float(draws.extra_ms[one] - draws.extra_ms[other])
    return Contrast(
        one=candidates[one].setting,
        other=candidates[other].setting,
        read_ms=summary(read, source),
        # What is neither read nor the same for both is waiting for the unpacking.
        waited_ms=summary(total - read, source),
        build_ms=extra,
        all_ms=summary(total + extra, source),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What a boot of ``one`` costs more than a boot of ``other``; less where it is negative.

    ``waited_ms``: of the time to unpack what the shadow does not hide. ``build_ms``: the build's
    share of a boot, 0 where the objective does not count it.
    """

    one: Setting
    other: Setting
    read_ms: Estimate
    waited_ms: Estimate
    build_ms: float
    all_ms: Estimate
