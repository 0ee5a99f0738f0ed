"""What arrays of figures hold, as types, and their quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def quantiles(values: Floats, parts: Sequence[float]) -> list[Floats]:
    """Return along the first axis, as ``numpy.quantile`` does, which imports much in doing so."""
    last = len(values) - 1
    places = [(int(part * last), part * last % 1.0) for part in parts]
    ordered = np.partition(values, sorted({min(p + n, last) for p, _ in places for n in (0, 1)}), 0)
    return [
        ordered[place] + (ordered[min(place + 1, last)] - ordered[place]) * beyond
        for place, beyond in places
    ]


def columns(of_each: Sequence[Floats]) -> Floats:
    """Return arrays as the columns of one, in which each stays in one piece: half the time."""
    return np.array(of_each).T
