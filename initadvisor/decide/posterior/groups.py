"""Many values in groups: the middle of each group, and how far values scatter within all of them.

A boot that was disturbed (a disk that woke up, a file system check) says nothing of the others, so
middles are medians first, and then means in which what is far from the median counts for no more
than what is nearer. All functions give the same to the last bit whatever the order of the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.arrays import quantiles

if TYPE_CHECKING:
    from initadvisor.decide.arrays import Floats, Integers


_MAD_TO_SD = 1.4826
_MAD_WORTH = 0.37
"""What a median distance tells of a spread, as a part of what a standard deviation would."""

_PRIOR_FREEDOM = 4.0
"""A stated spread counts as much as if it had been seen in so many repeats."""

_MOST_FREEDOM = 30.0

_REACH = 1.345
_EFFICIENCY = 0.95
"""A mean that counts nothing beyond so many standard deviations (Huber, 1964) is worth so much of
what a mean would be if nothing were ever disturbed; a median is worth 0.64 of it.
"""

_TOWARDS_THE_MEAN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups by their key, sorted: how many values each has, and their median.

    ``values``: all of them, those of one group together. ``distances``: of the values from their
    group's median, corrected for their number. ``repeats``: by how many values there are more than
    groups.
    """

    keys: Integers
    count: Integers
    median: Floats
    values: Floats
    distances: Floats
    repeats: int

    def middle(self, sd: float) -> Floats:
        """Return the robust mean of each group of values that scatter by ``sd``."""
        found = self.median
        if not self.repeats:
            return found
        first = np.cumsum(self.count) - self.count
        for _ in range(_TOWARDS_THE_MEAN):
            off = self.values - np.repeat(found, self.count)
            found = found + np.add.reduceat(off.clip(-_REACH * sd, _REACH * sd), first) / self.count
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where the middle of values is: Student's t of ``freedom`` around ``middle``."""

    middle: float
    sd: float
    freedom: float
    count: int


def grouped(values: Floats, keys: Integers) -> Groups:
    """Group values by their key; there may be none."""
    order = np.lexsort((values, keys))
    values, keys = values[order], keys[order]
    unique, first, count = np.unique(keys, return_index=True, return_counts=True)
    low, high = first + (count - 1) // 2, first + count // 2
    median = (values[low] + values[high]) / 2
    # Of an odd number one is the median itself, which tells nothing. Of an even number the median
    # is between two, and nearer to them than the true one is (found by simulation).
    correction = np.where(count % 2 == 0, 1 + 1.5 / np.maximum(count, 1), 1.0)
    distances = np.abs(values - np.repeat(median, count)) * np.repeat(correction, count)
    distances = np.delete(distances, low[count % 2 == 1])
    return Groups(
        keys=unique,
        count=count,
        median=median,
        values=values,
        distances=distances,
        repeats=len(values) - len(unique),
    )


def scatter(groups: Groups, prior_sd: float) -> float:
    """Return the standard deviation of one value: that of the bulk, and of the prior for few."""
    if not groups.repeats:
        return prior_sd
    seen = _MAD_TO_SD * float(quantiles(groups.distances, (0.5,))[0])
    worth = _MAD_WORTH * groups.repeats
    squares = _PRIOR_FREEDOM * prior_sd**2 + worth * seen**2
    return sqrt(squares / (_PRIOR_FREEDOM + worth))


def location(middle: float, count: int, *, sd: float, floor: float) -> Location:
    """Return where the truth is of which ``count`` values, each with ``sd``, have this middle.

    However many there are, it is not known better than to ``floor``. The fewer, the likelier that
    their middle is that of disturbed boots.
    """
    error = sd / sqrt(1 + _EFFICIENCY * (count - 1))
    return Location(
        middle=middle,
        sd=hypot(error, floor),
        freedom=min(_PRIOR_FREEDOM - 1 + count, _MOST_FREEDOM),
        count=count,
    )


def combined(locations: list[Location]) -> Location:
    """Return what several accounts of the same thing say together, wider where they disagree."""
    if len(locations) == 1:
        return locations[0]
    weight = np.array([1 / known.sd**2 for known in locations])
    middles = np.array([known.middle for known in locations])
    middle = float(weight @ middles / weight.sum())
    disagreement = float(weight @ (middles - middle) ** 2) / (len(locations) - 1)
    return Location(
        middle=middle,
        sd=sqrt(max(1.0, disagreement) / float(weight.sum())),
        freedom=max(known.freedom for known in locations),
        count=sum(known.count for known in locations),
    )
