"""Size against time to build and against time to boot: where settings are, and which none beats."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.report.bars import bars, here
from initadvisor.report.figures import in_ms, in_s, megabytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.report.report import Report, ReportedSetting


HEIGHT = 240
"""Of a panel, in pixels."""

_LEFT, _WIDTH = 14.0, 82.0
"""In percent of the width: where the points are, beside what the sizes are."""

_TOP, _BELOW = 12.0, 36.0
"""In pixels: above the points, and below them, where it is written what the times are."""

_FASTEST_S = 0.01
_TO_THE_LEFT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffPoint:
    """A setting: percent of the width from the left and pixels from the top.

    ``front``: no other of the panel is as small and as fast and better in one. ``label``: what
    stands beside it, of today's and the advised setting; ``before``: to its left.
    """

    x: float
    y: float
    front: bool
    label: str
    before: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """Points, and the pairs of neighbours on the front, to be joined by lines."""

    title: str
    left: str
    right: str
    smallest: str
    largest: str
    points: tuple[TradeOffPoint, ...]

    @property
    def joined(self) -> tuple[tuple[TradeOffPoint, TradeOffPoint], ...]:
        """The front's neighbours, from left to right."""
        return tuple(pairwise(sorted((p for p in self.points if p.front), key=lambda p: p.x)))


def trade_offs(report: Report) -> tuple[TradeOff, ...]:
    """Return the panels whose points differ in both, of what may be chosen.

    A boot costs what the bars say. What is not compressed is so large that it would hide how others
    differ: it is left out unless it is today's or advised.
    """
    if report.model is None:
        return ()
    costs = {
        bar.setting: bar.cost_ms.mean
        for bar in bars(report.model, report.model.choices, here(report.model))
    }
    marked = (report.today, report.advised)
    fit = [
        one
        for one in report.settings
        if one.setting in costs and (one.setting in marked or one.setting.codec is not Codec.CAT)
    ]
    built = [(one, max(one.build_s, _FASTEST_S)) for one in fit if one.build_s is not None]
    booted = [(one, costs[one.setting]) for one in fit]
    return tuple(
        _panel(report, what, timed, worded)
        for what, timed, worded in (
            ("time to build", built, in_s),
            ("what a boot costs", booted, in_ms),
        )
        if len({time for _, time in timed}) > 1 < len({one.size_bytes for one, _ in timed})
    )


def _panel(
    report: Report,
    what: str,
    timed: Sequence[tuple[ReportedSetting, float]],
    worded: Callable[[float], str],
) -> TradeOff:
    times = [time for _, time in timed]
    sizes = [one.size_bytes for one, _ in timed]
    points = []
    for one, time in timed:
        x = _LEFT + _WIDTH * _part(time, times)
        y = HEIGHT - _BELOW - (HEIGHT - _TOP - _BELOW) * _part(one.size_bytes, sizes)
        tags = [
            tag
            for tag, setting in (("today", report.today), ("advised", report.advised))
            if one.setting == setting
        ]
        points.append(
            TradeOffPoint(
                x=x,
                y=y,
                front=not any(
                    (other.size_bytes, its) != (one.size_bytes, time)
                    and other.size_bytes <= one.size_bytes
                    and its <= time
                    for other, its in timed
                ),
                label=f"{one.setting}, {' and '.join(tags)}" if tags else "",
                before=x > _TO_THE_LEFT,
                words=f"{one.setting}: {megabytes(one.size_bytes)}, {worded(time)}",
            )
        )
    return TradeOff(
        title=f"Size against {what}",
        left=worded(min(times)),
        right=worded(max(times)),
        smallest=megabytes(min(sizes)),
        largest=megabytes(max(sizes)),
        points=tuple(points),
    )


def _part(value: float, among: Sequence[float]) -> float:
    """Return where a value is from the least, 0, to the most, 1, by the factors between them."""
    least, most = min(among), max(among)
    return log(value / least) / log(most / least)
