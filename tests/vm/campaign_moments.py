"""The moments of a recorded campaign at which its power is cut, by what the guest is doing."""

from __future__ import annotations

import itertools
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.vm.campaign_standing import selected
from tests.vm.campaigning import Word
from tests.vm.timeline import Moment

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

    from tests.vm.campaigning import Campaign, Leg


class Stage(StrEnum):
    """What the guest does when the power goes."""

    PREPARING = "preparing"
    """It builds and verifies candidates; nothing is on the boot partition yet."""
    ARMING = "arming"
    """It clears up what was tried, copies the next image and selects its entry."""
    ARMED = "armed"
    """The next boot is a trial's."""
    BOOTING = "booting"
    """The rehearsal or a candidate boots; at first, nothing but its selection is used up."""
    JUDGING = "judging"
    """It is found out what came of that boot."""
    LEAVING = "leaving"
    """The user pauses, resumes and stops the campaign."""


def chosen(
    campaign: Campaign, count: int, rng: random.Random
) -> Iterator[tuple[Stage, int, Leg, Moment]]:
    """Choose so many moments, of all stages in turn, spread over each and random within that.

    With each comes how often it was the stage's turn before.
    """
    stages = tuple(Stage)
    moments = {stage: list(_moments(campaign, stage)) for stage in stages}
    for number in range(count):
        stage, turn = stages[number % len(stages)], number // len(stages)
        turns = len(range(number % len(stages), count, len(stages)))
        there = moments[stage]
        leg, moment = there[int((turn + rng.random()) / turns * len(there))]
        yield stage, turn, leg, moment


def _moments(campaign: Campaign, stage: Stage) -> Iterable[tuple[Leg, Moment]]:
    start, rehearsal, trial = campaign.legs
    begun = (start, Word.STARTING)
    judged = ((rehearsal, Word.JUDGING), (trial, Word.JUDGING))
    match stage:
        case Stage.PREPARING:
            return _until_arming(begun)
        case Stage.ARMING:
            return _while_arming(begun, *judged)
        case Stage.ARMED:
            return _while_armed(*judged)
        case Stage.BOOTING:
            return _by_the_clock(*judged)
        case Stage.JUDGING:
            return _until_arming(*judged)
        case Stage.LEAVING:
            return ((trial, moment) for moment in _between(trial, Word.ARMED, Word.STOPPED))


def _until_arming(*begun: tuple[Leg, Word]) -> Iterator[tuple[Leg, Moment]]:
    for leg, since in begun:
        first = _first_arming_write(leg, since)
        for moment in _between(leg, since, Word.ARMED):
            if moment.writes < first:
                yield leg, moment


def _while_arming(*begun: tuple[Leg, Word]) -> Iterator[tuple[Leg, Moment]]:
    for leg, since in begun:
        first = _first_arming_write(leg, since)
        for moment in _between(leg, since, Word.ARMED):
            if moment.writes >= first:
                yield leg, moment


def _while_armed(*begun: tuple[Leg, Word]) -> Iterator[tuple[Leg, Moment]]:
    for leg, since in begun:
        for moment in _between(leg, since, list(leg.words)[-1]):
            if selected(moment.variables):
                yield leg, moment


def _by_the_clock(*begun: tuple[Leg, Word]) -> Iterator[tuple[Leg, Moment]]:
    """Yield what was seen from power on; for most of the time nothing is written."""
    for leg, until in begun:
        for moment in leg.timeline.moments[: leg.words[until]]:
            yield leg, moment


def _first_arming_write(leg: Leg, since: Word) -> int:
    """Return how much had been written when room on the boot partition was first taken since."""
    begin = leg.timeline.moments[leg.words[since]].writes
    return next(number for number in leg.allocations if number > begin)


def _between(leg: Leg, first: Word, last: Word) -> Iterator[Moment]:
    """Yield every moment once, also those at which nobody looked.

    Where the variables have changed between two looks with writes between them, it is not known
    which was when; those are left out.
    """
    seen = leg.timeline.moments[leg.words[first] : leg.words[last] + 1]
    yield seen[0]
    for one, other in itertools.pairwise(seen):
        if one.variables == other.variables:
            for writes in range(one.writes + 1, other.writes + 1):
                yield Moment(writes=writes, variables=one.variables)
        else:
            yield other
