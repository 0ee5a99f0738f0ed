"""Power cuts during a campaign of trials: what is left is looked at, and booted.

The campaign is recorded once, boot by boot (``campaigning``). A cut at one of its moments leaves
the firmware's variables as they were then, and of the disk all that was flushed and a random part
of what was written since, as a disk with a write cache may. So no machine has to be killed.
"""

from __future__ import annotations

import dataclasses
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.campaign_moments import Stage, chosen
from tests.vm.campaign_recovery import recovered
from tests.vm.campaign_standing import (
    armed_is_whole,
    default_is_as_before,
    only_a_trial_is_added,
    standing,
)
from tests.vm.recording import kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.campaign_recovery import Recovery
    from tests.vm.campaign_standing import Standing
    from tests.vm.campaigning import Campaign, Leg
    from tests.vm.timeline import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A power cut and what came of it.

    ``boot``: in which of the recorded boots. ``writes``: how many the disk had been given in it,
    ``lost`` how many of them it forgot. ``armed``: a trial was selected. ``recovery``: what the
    next boot was and made of it, None where it was not tried. ``trouble`` is what was not as it has
    to be, in words.
    """

    stage: Stage
    boot: int
    writes: int
    lost: int
    armed: bool
    recovery: Recovery | None
    trouble: tuple[str, ...]


def cuts(campaign: Campaign, count: int, *, seed: int, every: int, scratch: Path) -> Iterator[Cut]:
    """Cut the power so often, and boot what is left of one in ``every`` so many of each stage."""
    rng = random.Random(seed)
    stages = list(Stage)
    for stage, turn, leg, moment in chosen(campaign, count, rng):
        boots = (turn - stages.index(stage)) % every == 0
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            yield _cut(campaign, stage, leg, moment, rng, Path(directory), boots=boots)


def _cut(
    campaign: Campaign,
    stage: Stage,
    leg: Leg,
    moment: Moment,
    rng: random.Random,
    directory: Path,
    *,
    boots: bool,
) -> Cut:
    writes = leg.writes[: moment.writes]
    remembered = tuple(kept(writes, rng))
    guest = dataclasses.replace(leg.guest, directory=directory)
    leg.timeline.recording.disk(remembered, guest.disk.path)
    guest.variables.write_bytes(moment.variables)
    found = standing(guest)
    trouble = tuple(against(found, campaign))
    recovery = recovered(guest, campaign, found) if boots else None
    return Cut(
        stage=stage,
        boot=campaign.legs.index(leg),
        writes=len(writes),
        lost=len(writes) - len(remembered),
        armed=found.one_shot is not None,
        recovery=recovery,
        trouble=(*trouble, *(recovery.trouble if recovery else ())),
    )


def against(found: Standing, campaign: Campaign) -> Iterator[str]:
    """Say what of that which a power cut has left is not as it has to be."""
    yield from default_is_as_before(found, campaign.before)
    yield from only_a_trial_is_added(found, campaign.before)
    yield from armed_is_whole(found, campaign.verified)
