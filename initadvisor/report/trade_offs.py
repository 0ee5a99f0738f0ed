"""Size against time to build and against time to boot: where settings are, and which none beats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.decide.whatif_values import SettingFigures
from initadvisor.report.bars import bars, here
from initadvisor.report.figures import in_ms, in_s, interval_ms, interval_s, megabytes, megabytes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from initadvisor.advise.sweep import SweptFigures
    from initadvisor.core.settings import Setting
    from initadvisor.report.report import Model, Report


HEIGHT = 240
"""Of a panel, in pixels."""

LEFT = 18
"""In percent of the width: where the points begin, beside what the sizes are."""

_WIDTH = 78.0
_LABEL_HEIGHT, _LABEL_DY = 16.0, 4.0
_LETTER = 2.0
"""Of a label, in percent of the width."""

_TOP, _BELOW = 12.0, 36.0
"""In pixels: above the points, and below them, where it is written what the times are."""

_FASTEST_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffPoint:
    """A setting: percent of the width from the left and pixels from the top.

    ``front``: no other of the panel is as small and as fast and better in one. ``label``: what
    stands beside it, of today's and the advised setting, ``label_dy`` pixels lower; ``before``: to
    its left.
    """

    x: float
    y: float
    front: bool
    label: str
    label_dy: float = _LABEL_DY
    before: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """Points, and the pairs of neighbours on the front, to be joined by lines.

    ``sentence``: the figures of today's and the advised setting.
    """

    title: str
    sentence: str
    left: str
    right: str
    smallest: str
    largest: str
    points: tuple[TradeOffPoint, ...]

    @property
    def joined(self) -> tuple[tuple[TradeOffPoint, TradeOffPoint], ...]:
        """The front's neighbours, from left to right."""
        return tuple(pairwise(sorted((p for p in self.points if p.front), key=lambda p: p.x)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """A setting with a size and a time, in the unit that ``words`` has."""

    setting: Setting
    size_bytes: float
    time: float
    words: str


def trade_offs(report: Report) -> tuple[TradeOff, ...]:
    """Return the panels whose points differ in both, of what may be chosen and what was swept.

    A boot costs what the bars say. What is not compressed is so large that it would hide how others
    differ: it is left out unless it is today's or advised.
    """
    if report.model is None:
        return ()
    return tuple(
        _panel(report, what, timed, worded)
        for what, timed, worded in (
            ("time to build", _builds(report), in_s),
            ("what a boot costs", _boots(report, report.model), in_ms),
        )
        if len({one.time for one in timed}) > 1 < len({one.size_bytes for one in timed})
    )


def _builds(report: Report) -> Sequence[_Timed]:
    """Return what is known of builds, by the sweeps where they tell."""
    known = {
        one.setting: _Timed(
            setting=one.setting,
            size_bytes=one.size_bytes,
            time=max(one.build_s, _FASTEST_S),
            words=in_s(one.build_s),
        )
        for one in report.settings
        if one.build_s is not None and not one.unfit and _is_shown(report, one.setting)
    }
    swept = {one.setting: _swept_build(one) for one in report.swept if not one.unfit}
    return tuple({**known, **swept}.values())


def _swept_build(one: SweptFigures) -> _Timed:
    wall = one.build_wall_s
    return _Timed(
        setting=one.setting,
        size_bytes=one.size_bytes.middle,
        time=max(wall.middle, _FASTEST_S),
        words=f"{in_s(wall.middle)} ({interval_s(wall)})",
    )


def _boots(report: Report, model: Model) -> Sequence[_Timed]:
    own = {choice.setting for choice in model.choices}
    swept = tuple(
        SettingFigures(
            setting=one.setting, size_mb=megabytes_of(one.size_bytes), unpack_ms=one.unpack_ms
        )
        for one in report.swept
        if one.setting not in own and not one.unfit
    )
    sizes = {one.setting: float(one.size_bytes) for one in report.settings}
    sizes |= {one.setting: one.size_mb.mean * 1e6 for one in swept}
    return tuple(
        _Timed(
            setting=bar.setting,
            size_bytes=sizes[bar.setting],
            time=bar.cost_ms.mean,
            words=f"{in_ms(bar.cost_ms.mean)} ({interval_ms(bar.cost_ms)})",
        )
        for bar in bars(model, (*model.choices, *swept), here(model))
        if bar.setting in sizes and _is_shown(report, bar.setting)
    )


def _is_shown(report: Report, setting: Setting) -> bool:
    return setting.codec is not Codec.CAT or setting in {report.today, report.advised}


def _panel(
    report: Report, what: str, timed: Sequence[_Timed], worded: Callable[[float], str]
) -> TradeOff:
    times = [one.time for one in timed]
    sizes = [one.size_bytes for one in timed]
    points, marked = [], []
    for one in timed:
        x = LEFT + _WIDTH * _part(one.time, times)
        y = HEIGHT - _BELOW - (HEIGHT - _TOP - _BELOW) * _part(one.size_bytes, sizes)
        tags = [
            tag
            for tag, setting in (("today", report.today), ("advised", report.advised))
            if one.setting == setting
        ]
        label = f"{one.setting}, {' and '.join(tags)}" if tags else ""
        words = f"{megabytes(one.size_bytes)}, {one.words}"
        if label:
            marked.append(f"{label}: {words}")
        points.append(
            TradeOffPoint(
                x=x,
                y=y,
                front=not any(
                    (other.size_bytes, other.time) != (one.size_bytes, one.time)
                    and other.size_bytes <= one.size_bytes
                    and other.time <= one.time
                    for other in timed
                ),
                label=label,
                before=False,
                words=f"{one.setting}: {words}",
            )
        )
    return TradeOff(
        title=f"Size against {what}",
        sentence="; ".join(marked),
        left=worded(min(times)),
        right=worded(max(times)),
        smallest=megabytes(min(sizes)),
        largest=megabytes(max(sizes)),
        points=tuple(_apart(points)),
    )


def _apart(points: Sequence[TradeOffPoint]) -> Iterator[TradeOffPoint]:
    """Yield the points, whose labels, two at most, do not lie over each other.

    Each is on the side where it hides fewer points.
    """
    labelled = sorted((point for point in points if point.label), key=lambda point: point.y)
    apart = labelled[-1].y - labelled[0].y if labelled[1:] else _LABEL_HEIGHT
    more = max(_LABEL_HEIGHT - apart, 0) / 2
    for point in points:
        above = labelled and point is labelled[0]
        moved = replace(point, label_dy=_LABEL_DY + (-more if above else more))
        yield replace(moved, before=_hides(moved, points, -1) < _hides(moved, points, 1))


def _hides(point: TradeOffPoint, points: Sequence[TradeOffPoint], side: int) -> int:
    """Return how many points a label on the left (-1) or the right (1) hides, the edge as many."""
    far = point.x + side * _LETTER * len(point.label)
    if not 0 <= far <= 100:
        return len(points)
    low, high = sorted((point.x, far))
    y = point.y + point.label_dy - _LABEL_DY
    return sum(low < other.x < high and abs(other.y - y) < _LABEL_HEIGHT / 2 for other in points)


def _part(value: float, among: Sequence[float]) -> float:
    """Return where a value is from the least, 0, to the most, 1, by the factors between them."""
    least, most = min(among), max(among)
    return log(value / least) / log(most / least)
