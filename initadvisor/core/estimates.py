"""Figures with their interval and source, and how certain a conclusion about one boot is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Evidence(StrEnum):
    """Where a figure about unpacking comes from, weakest first."""

    BENCH = "predicted"
    LAB = "lab"
    BOOTS = "boots"

    @classmethod
    def weakest(cls, evidence: Iterable[Evidence]) -> Evidence:
        """Return what a figure rests on that rests on all of these."""
        return min(evidence, key=list(cls).index)


class SizeSource(StrEnum):
    """Whether a size is that of a built file, or estimated from a sample of the content."""

    SAMPLED = "sampled"
    BUILT = "built"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean, the bounds of its 95 % interval, and in words where it comes from.

    The unit stands in the name of the field that holds it. ``median``: None where the mean is as
    good. Of what is known up to a factor it is what is shown: the mean of a speed and the mean of
    the time that it takes would both be too high.
    """

    mean: float
    low: float
    high: float
    source: str
    median: float | None = None

    @property
    def middle(self) -> float:
        """What is shown: the median, where it is known."""
        return self.mean if self.median is None else self.median


def three_digits(value: float) -> str:
    """Return three significant digits, in full: some are factors near 1, some hundreds."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


class Certainty(StrEnum):
    """What may be built on a conclusion; only what is certain becomes a sample."""

    CERTAIN = "certain"
    LIKELY = "likely"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"

    @property
    def description(self) -> str:
        """What it means, in words."""
        match self:
            case Certainty.CERTAIN:
                return "nothing else fits what was seen"
            case Certainty.LIKELY:
                return "what was seen fits, but does not prove it"
            case Certainty.AMBIGUOUS:
                return "what was seen fits more than one"
            case Certainty.UNKNOWN:
                return "what was seen fits nothing that is known, or nothing was seen"
