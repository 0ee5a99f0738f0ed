"""All choices side by side: at some places, along a range of one condition, over ranges of two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Estimate
from initadvisor.decide.cost import Factor
from initadvisor.decide.whatif import best_along, best_setting, rank_settings, suitable_along
from initadvisor.decide.whatif_values import (
    Column,
    Conditions,
    MapRow,
    ReadMedium,
    Span,
    WhatIfLine,
    WinnersMap,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.decide.whatif_values import Rule, SettingFigures


UNITS = {Factor.LOADER: "MB/s", Factor.CPU: "x", Factor.SHADOW: "ms"}
"""What the values of each factor are in; the processor's is a multiple."""

_POINTS = 5
_ACROSS = 7
_DOWN = 6
_DIGITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared, by which rule, and under what conditions where nothing varies.

    The speed among ``held`` is that of the place, which each view is told.
    """

    choices: tuple[SettingFigures, ...]
    rule: Rule
    cpu_scale: float
    shadow_ms: float

    def column(self, place: ReadMedium) -> Column:
        """Price all choices at one place."""
        return self._column(place.name, self._held(place), place)

    def line(self, place: ReadMedium, factor: Factor, span: Span) -> WhatIfLine:
        """Follow one condition through a range; if it is the speed, the place's is not used."""
        held = self._held(place)
        return WhatIfLine(
            medium="" if factor is Factor.LOADER else place.name,
            factor=factor,
            span=span,
            ranges=best_along(self.choices, held, factor, span, self.rule),
            suitable=suitable_along(self.choices, held, factor, span, self.rule),
            columns=tuple(
                self._column(
                    f"{value:.4g} {UNITS[factor]}",
                    changed(held, factor, value),
                    at_speed(value) if factor is Factor.LOADER else place,
                )
                for value in points(span, _POINTS)
            ),
        )

    def map(self, place: ReadMedium, ranges: Mapping[Factor, Span]) -> WinnersMap:
        """Vary two conditions, the first of them across."""
        (across, span), (down, other) = ranges.items()
        values = points(span, _ACROSS)
        held = self._held(place)
        return WinnersMap(
            medium="" if Factor.LOADER in ranges else place.name,
            across=across,
            values=values,
            down=down,
            rows=tuple(
                self._row(changed(held, down, value), value, across, span, values)
                for value in points(other, _DOWN)
            ),
        )

    def _row(
        self,
        conditions: Conditions,
        value: float,
        across: Factor,
        span: Span,
        values: Sequence[float],
    ) -> MapRow:
        return MapRow(
            value=value,
            best=tuple(
                best_setting(self.choices, changed(conditions, across, one), self.rule)
                for one in values
            ),
            ranges=best_along(self.choices, conditions, across, span, self.rule),
        )

    def _column(self, title: str, conditions: Conditions, place: ReadMedium) -> Column:
        return Column(
            title=title,
            conditions=conditions,
            ranks=rank_settings(self.choices, conditions, place, self.rule),
        )

    def _held(self, place: ReadMedium) -> Conditions:
        return Conditions(
            read_mb_s=place.read_mb_s.mean, cpu_scale=self.cpu_scale, shadow_ms=self.shadow_ms
        )


def changed(conditions: Conditions, factor: Factor, value: float) -> Conditions:
    """Return the conditions with one of them changed."""
    match factor:
        case Factor.LOADER:
            return replace(conditions, read_mb_s=value)
        case Factor.CPU:
            return replace(conditions, cpu_scale=value)
        case Factor.SHADOW:
            return replace(conditions, shadow_ms=value)


def at_speed(mb_s: float, *, name: str = "", source: str = "as given") -> ReadMedium:
    """Return a place whose loader's speed is not in doubt."""
    speed = Estimate(mean=mb_s, low=mb_s, high=mb_s, source=source)
    return ReadMedium(name=name or f"{mb_s:.4g} MB/s", read_mb_s=speed)


def points(span: Span, count: int) -> tuple[float, ...]:
    """Return values from end to end of a range, round ones between the ends.

    Each is by the same factor larger than the one before; evenly spaced where the range starts at 0
    and there is no such factor.
    """
    parts = [number / (count - 1) for number in range(1, count - 1)]
    if span.low > 0:
        inner = [span.low * exp(log(span.high / span.low) * part) for part in parts]
    else:
        inner = [span.high * part for part in parts]
    rounded = (float(f"{value:.{_DIGITS}g}") for value in inner)
    between = (value for value in rounded if span.low < value < span.high)
    return tuple(dict.fromkeys((span.low, *between, span.high)))
