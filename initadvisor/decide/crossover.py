"""Which candidate is the best along a fact about the machine, and where exactly that changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import BestRange
from initadvisor.decide.decision import gains

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from initadvisor.decide.cost import CandidateFacts
    from initadvisor.decide.decision import CandidateComparison

    Floats = NDArray[np.float64]

    Rows = Sequence[NDArray[np.int64]]


_BINS = 20
_MIDDLE = (0.025, 0.975)
_HALVINGS = 30


def ranges_of(values: Floats) -> Rows:
    """Return the rows of 20 ranges of a fact that are equally likely, the smallest values first."""
    return np.array_split(np.argsort(values), _BINS)


def stretches_along(
    found: CandidateComparison,
    candidates: Sequence[CandidateFacts],
    what: Parameter,
    values: Floats,
    *,
    baseline: int,
) -> tuple[BestRange, ...]:
    """Return which setting is the best from where to where, over the middle 95 % of a fact.

    Stretches follow each other without a gap, from low to high.
    """
    return tuple(
        BestRange(low=low, high=high, setting=candidates[best].setting)
        for low, high, best in _Along(found, what, values, baseline).ranges()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bin:
    """A range of a fact: its bounds and middle, what each candidate gains there, and the best."""

    low: float
    middle: float
    high: float
    gain_ms: Floats
    best: int


class _Along:
    """Which candidate is the best along a fact: the one with the largest gain (``gains``)."""

    def __init__(
        self, found: CandidateComparison, what: Parameter, values: Floats, baseline: int
    ) -> None:
        self._found, self._what, self._values = found, what, values
        self._gain = gain = gains(found, baseline)
        low, high = np.quantile(values, _MIDDLE)
        inside = np.flatnonzero((low <= values) & (values <= high))
        ranges = [inside[rows] for rows in ranges_of(values[inside])]
        self._bins = [
            _Bin(
                low=float(values[rows[0]]),
                middle=float(np.median(values[rows])),
                high=float(values[rows[-1]]),
                gain_ms=gain[rows].mean(axis=0),
                best=best,
            )
            for rows, best in zip(ranges, _best_in(gain, ranges, baseline), strict=True)
        ]

    def ranges(self) -> Iterator[tuple[float, float, int]]:
        """Yield from where to where which candidate is the best."""
        begins = self._begins()
        ends = [*(low for low, _ in begins[1:]), self._bins[-1].high]
        for (low, best), high in zip(begins, ends, strict=True):
            yield low, high, best

    def _begins(self) -> list[tuple[float, int]]:
        """Return from where on which candidate is the best.

        Crossings are found for two candidates at a time. One that would only begin to be the best
        where the next does already is the best nowhere.
        """
        lowest, highest = self._bins[0].low, self._bins[-1].high
        begins: list[tuple[float, int]] = []
        for number, one in enumerate(self._bins):
            low = lowest
            while begins and begins[-1][1] != one.best:
                low = self._crossing(begins[-1][1], number)
                if low > begins[-1][0]:
                    break
                begins.pop()
                low = lowest
            if low < highest and (not begins or begins[-1][1] != one.best):
                begins.append((low, one.best))
        return begins

    def _crossing(self, former: int, number: int) -> float:
        """Return where the best of a range begins to gain more than one that was before it.

        That may be some ranges off, where the difference is not clear. Between the middles of two
        ranges it is taken to be straight, of the loader in time per byte, in which it is.
        """
        bins = self._bins
        best = bins[number].best
        ahead = [float(one.gain_ms[best] - one.gain_ms[former]) for one in bins]
        after = number
        if ahead[number] > 0:
            while after > 0 and ahead[after - 1] > 0:
                after -= 1
        else:
            while after < len(bins) and ahead[after] <= 0:
                after += 1
        if not 0 < after < len(bins):
            return bins[number].low
        low, high = bins[after - 1].middle, bins[after].middle
        if self._what is Parameter.SHADOW:
            return self._where_hidden(former, best)
        part = ahead[after - 1] / (ahead[after - 1] - ahead[after])
        if self._what is Parameter.LOADER:
            return 1 / (1 / low + part * (1 / high - 1 / low))
        return low + part * (high - low)

    def _where_hidden(self, former: int, best: int) -> float:
        """Return the shadow with which two candidates gain the same.

        The difference bends where the shadow begins to hide what one of them takes, and of shadows
        there may be none for a long way. So what both wait is computed; what else they differ by
        does not depend on the shadow.
        """
        unpack_ms = self._found.unpack_ms[:, [former, best]]
        gains = self._gain[:, best] - self._gain[:, former]

        def waited(shadow_ms: float | Floats) -> float:
            each = np.maximum(shadow_ms, unpack_ms).mean(axis=0)
            return float(each[0] - each[1])

        enough = waited(self._values[:, None]) - float(gains.mean())
        low, high = self._bins[0].low, self._bins[-1].high
        more = waited(high) > enough
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if (waited(middle) > enough) is more:
                high = middle
            else:
                low = middle
        return high


def _best_in(gain: Floats, ranges: Rows, baseline: int) -> Sequence[int]:
    """Return what gains most on average in each range.

    The best of the range before stays so unless the difference is clear. There is none before the
    first one, so that of the last one is where all begins again, from the other end.
    """
    best = baseline
    for rows in ranges:
        best = _best_of(gain[rows], best)
    result = []
    for rows in reversed(ranges):
        best = _best_of(gain[rows], best)
        result.append(best)
    return result[::-1]


def _best_of(gain: Floats, previous: int) -> int:
    """Return what gains most on average.

    ``previous`` is, unless the difference is larger than two standard errors: what comes of few
    draws is not to look like a fact.
    """
    best = int(gain.mean(axis=0).argmax())
    difference = gain[:, best] - gain[:, previous]
    error = difference.std() / np.sqrt(len(difference))
    return best if difference.mean() > 2 * error else previous
