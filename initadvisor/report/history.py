"""All shown boots as pictures: what each spent, and where setting or kernel changed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from initadvisor.report.figures import between_ms, in_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.report.report import ReportedBoot

HEIGHT = 120
_TOP, _BOTTOM = 22, 8
_ABOVE = 1.1
_MOST_OF_COUNTED = 1.5
"""A boot that does not count is shown at the edge where it took longer than this times the rest."""

_LABEL, _LETTER = 1.5, 2.0
"""In percent of the width of a narrow screen: what a label takes, beside each of its letters."""


_MOST_SETTINGS = 4
"""Of so many it is said what they took: those that most boots were of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootPoint:
    """One boot; ``x`` in percent of the width, ``y`` in pixels from the top."""

    x: float
    y: float
    counts: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeMark:
    """Where another setting or kernel begins; ``label`` is empty where there is no room for it."""

    x: float
    label: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture; ``most_ms`` is at its top. ``sentence``: what the boots that count took."""

    title: str
    sentence: str
    most_ms: float
    points: tuple[BootPoint, ...]
    changes: tuple[ChangeMark, ...]


_PANELS = (
    ("unpacking", "unpack_ms"),
    ("firmware or loader, with the reading", "read_ms"),
    ("the whole boot", "whole_ms"),
)


def panels(boots: Sequence[ReportedBoot]) -> tuple[Panel, ...]:
    """Return a picture for each figure that at least two boots that count have."""
    in_order = boots[::-1]
    return tuple(
        panel for title, name in _PANELS if (panel := _panel(title, name, in_order)) is not None
    )


def _panel(title: str, name: str, boots: Sequence[ReportedBoot]) -> Panel | None:
    counted = [getattr(boot, name) for boot in boots if not boot.reasons]
    known = [value for value in counted if value is not None]
    if len(known) < 2:
        return None
    every = [value for boot in boots if (value := getattr(boot, name)) is not None]
    most = _ABOVE * min(max(every), _MOST_OF_COUNTED * max(known))
    points = []
    for number, boot in enumerate(boots):
        value = getattr(boot, name)
        if value is not None:
            part = min(value / most, 1.0)
            points.append(
                BootPoint(
                    x=_x(number, len(boots)),
                    y=HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM),
                    counts=not boot.reasons,
                    words=f"{in_ms(value)}: {_words(boot)}",
                )
            )
    return Panel(
        title=title,
        sentence=_sentence(name, boots),
        most_ms=most,
        points=tuple(points),
        changes=tuple(_changes(boots, len(boots))),
    )


def _sentence(name: str, boots: Sequence[ReportedBoot]) -> str:
    """Say what boots that count took with each setting: the median, the least and the most."""
    by_setting = defaultdict(list)
    for boot in boots:
        value = getattr(boot, name)
        if value is not None and not boot.reasons:
            by_setting[str(boot.setting or "?")].append(value)
    most_booted = sorted(by_setting.items(), key=lambda item: -len(item[1]))[:_MOST_SETTINGS]
    return "; ".join(
        f"{setting} {in_ms(median(values))}"
        + (f" ({len(values)} boots, {between_ms(min(values), max(values))})" if values[1:] else "")
        for setting, values in most_booted
    )


def _changes(boots: Sequence[ReportedBoot], count: int) -> Iterator[ChangeMark]:
    """Yield where setting or kernel changes; longer stretches of a setting are labelled first."""
    starts = [
        (number, boot)
        for number, boot in enumerate(boots)
        if not number
        or (boot.setting, boot.kernel) != (boots[number - 1].setting, boots[number - 1].kernel)
    ]
    places = {number: _x(number - 0.5, count) if number else 0.0 for number, _ in starts}
    settings = [
        number for number, boot in starts if not number or boot.setting != boots[number - 1].setting
    ]
    ends = dict(zip(settings, (*settings[1:], count), strict=True))
    labels: dict[int, str] = {}
    taken: list[tuple[float, float]] = []
    for number in sorted(settings, key=lambda start: start - ends[start]):
        label = str(boots[number].setting or "?")
        low, high = places[number], places[number] + _LABEL + _LETTER * len(label)
        if high <= 100 and all(high <= left or right <= low for left, right in taken):
            labels[number] = label
            taken.append((low, high))
    for number, boot in starts:
        if number or number in labels:
            yield ChangeMark(
                x=places[number],
                label=labels.get(number, ""),
                words=f"from {boot.day}: {_words(boot)}",
            )


def _words(boot: ReportedBoot) -> str:
    reasons = f"; does not count: {'; '.join(boot.reasons)}" if boot.reasons else ""
    return f"{boot.day}, {boot.setting or 'unknown setting'}, Linux {boot.kernel or '?'}{reasons}"


def _x(number: float, count: int) -> float:
    """Return a place in percent, with room for a mark at both ends."""
    return 1.5 + 97.0 * (number / (count - 1) if count > 1 else 0.5)
