"""Why ``recommend`` answers as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.model.boot_evidence import Learnt, Shared
    from initadvisor.model.cost import Outcome, Stretch
    from initadvisor.model.estimate import Estimate, Evidence
    from initadvisor.model.recommendation import Contrast
    from initadvisor.model.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What one fact about the machine means for the decision.

    ``now``: what is known of it, in the unit of ``Shared``. ``share``: the part of the doubt about
    the contrast that would go if the fact were known, from 0 to 1. ``stretches``: which setting
    would then be the best, over the middle 95 % of what the fact may be. ``turns``: how probable it
    is that this is another one than what is advised.
    """

    what: Shared
    now: Estimate
    share: float
    stretches: tuple[Stretch, ...]
    turns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The answer with the evidence up to ``evidence`` and nothing stronger.

    ``used``: how much of that evidence there is: images whose time to unpack it is (bench, lab), or
    boots. The other fields are as in ``Decision``: those of its setting for a switch, those of its
    leader otherwise.
    """

    evidence: Evidence
    used: int
    outcome: Outcome
    leader: Setting
    saving_ms: Estimate
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the answer is what it is.

    ``contrast``: of what is advised and what comes closest to it (what is smallest beside it where
    sizes decide), None where there is nothing else to choose. ``weights``: the facts that decide
    between the two, the weightiest first; none where sizes decide. ``images_share``: the part of
    the doubt that is about single images (their sizes, how long each takes to decompress).
    ``steps``: from the weakest evidence to all of it. ``learnt``: what all images share, as it is
    known without this machine's boots, and with them.
    """

    contrast: Contrast | None
    weights: tuple[Weight, ...]
    images_share: float
    steps: tuple[Step, ...]
    learnt: tuple[Learnt, ...]
