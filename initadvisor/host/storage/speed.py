"""What a few cold reads tell of the next one, and when they are not to be believed."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Estimate
from initadvisor.records.storage import DeviceKind, ReadWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_SHORT_BYTES = 1 << 20
_RESIDENT_LIMIT = 0.02
_FIRST_FACTOR = 1.5
_T_95 = (math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t, 97.5 % quantile, by degrees of freedom; beyond the table the normal one's 1.96."""

_SINGLE_FACTOR = 2.0
"""How far, either way, a next read may be from a single one."""


def next_read(samples: Sequence[float], source: str) -> Estimate:
    """Return the mean and the interval in which the next cold read lies with 95 % probability.

    Speeds are positive and scatter in proportion, so the interval is made of their logarithms.
    """
    if _first_was_cold(samples):
        first = samples[0]
        return Estimate(
            mean=first,
            low=first / _SINGLE_FACTOR,
            high=max(samples),
            source=f"the first of {source}",
        )
    mean = statistics.fmean(samples)
    if len(samples) == 1:
        factor = _SINGLE_FACTOR
    else:
        freedom = len(samples) - 1
        quantile = _T_95[freedom] if freedom < len(_T_95) else 1.96
        spread = statistics.stdev(math.log(sample) for sample in samples)
        factor = math.exp(quantile * spread * math.sqrt(1 + 1 / len(samples)))
    return Estimate(mean=mean, low=mean / factor, high=mean * factor, source=source)


def _first_was_cold(samples: Sequence[float]) -> bool:
    """Tell whether what lies below the kernel seems to have answered all but the first read."""
    return len(samples) > 1 and samples[0] * _FIRST_FACTOR < min(samples[1:])


def doubts(
    samples: Sequence[float], kind: DeviceKind, *, size_bytes: int, resident: float
) -> Iterator[ReadWarning]:
    """Yield why the speed may not be that of the device.

    ``resident``: which part of the file was in memory when a read began.
    """
    if resident > _RESIDENT_LIMIT:
        yield ReadWarning.CACHED
    bound = kind.plausible_mb_s
    if bound is not None and max(samples) > bound:
        yield ReadWarning.IMPLAUSIBLE
    if _first_was_cold(samples):
        yield ReadWarning.FIRST_SLOWER
    if kind is DeviceKind.VIRTIO:
        yield ReadWarning.VIRTUAL
    if kind is DeviceKind.NONE:
        yield ReadWarning.NO_DEVICE
    if size_bytes < _SHORT_BYTES:
        yield ReadWarning.SHORT
