"""What the boots of each setting came to, where they can be compared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from initadvisor.decide.repeats import middles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from initadvisor.decide.repeats import Middle
    from initadvisor.records.figures import BootGroup


_MOST_POINTS = 101
"""More values tell nothing more of a median that would show beside what two runs differ by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSummary:
    """The boots of one setting; ``unpack_ms`` and ``read_ms`` are None without samples.

    ``samples`` and ``reads``: how many boots these rest on.
    """

    group: BootGroup
    unpack_ms: Middle | None
    read_ms: Middle | None
    samples: int
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSummary:
    """The boots of one machine (None: this one) and class, which can be compared."""

    machine: str | None
    kernel: str | None
    class_key: str
    settings: tuple[SettingSummary, ...]


def summaries(groups: Iterable[BootGroup], *, limit: int | None = None) -> tuple[ClassSummary, ...]:
    """Return the classes in the order in which they come first, at most ``limit``."""
    classes: defaultdict[tuple[str | None, str], list[BootGroup]] = defaultdict(list)
    for group in groups:
        classes[group.machine, group.class_key].append(group)
    return tuple(_of_class(same) for same in islice(classes.values(), limit))


def _of_class(groups: Sequence[BootGroup]) -> ClassSummary:
    unpack = _middles({str(n): group.unpack_us for n, group in enumerate(groups)})
    read = _middles({str(n): group.read_us for n, group in enumerate(groups)})
    first = groups[0]
    return ClassSummary(
        machine=first.machine,
        kernel=first.kernel,
        class_key=first.class_key,
        settings=tuple(
            SettingSummary(
                group=group,
                unpack_ms=unpack.get(str(n)),
                read_ms=read.get(str(n)),
                samples=len(group.unpack_us),
                reads=len(group.read_us),
            )
            for n, group in enumerate(groups)
        ),
    )


def _middles(times_us: dict[str, tuple[int, ...]]) -> dict[str, Middle]:
    return middles({key: [us / 1000 for us in _thinned(us)] for key, us in times_us.items()})


def _thinned(times_us: tuple[int, ...]) -> Sequence[int]:
    """Return evenly spaced ones of many values, which come by their size."""
    if len(times_us) <= _MOST_POINTS:
        return times_us
    step = (len(times_us) - 1) / (_MOST_POINTS - 1)
    return [times_us[round(place * step)] for place in range(_MOST_POINTS)]
