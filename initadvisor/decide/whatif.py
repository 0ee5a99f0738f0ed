"""Costs under given conditions, and where exactly one setting takes over from another.

T = 1000 * size / speed + max(B1, scale * U) + scale * extra, and + off on the machine itself

Along each of its factors T is made of straight pieces: in 1/speed it is one, in the scale and in B1
it bends once, where B1 = scale * U. So the values at which another setting becomes the best are
computed, not searched for on a grid. All choices are shown side by side: at some places, along a
range of one condition, over ranges of two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, hypot, inf, log
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Estimate
from initadvisor.decide.cost import BestRange, Factor
from initadvisor.decide.whatif_values import (
    Column,
    Conditions,
    MapRow,
    ReadMedium,
    SettingRank,
    Span,
    WhatIfLine,
    WinnersMap,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.decide.whatif_values import Rule, SettingFigures


_MS_PER_S = 1000.0
_NEGLIGIBLE = 1e-9
"""A stretch that is this much shorter than its values are large is an error of rounding."""


@dataclass(frozen=True, slots=True)
class _Straight:
    """A score that is ``start + slope * x``."""

    start: float
    slope: float

    def at(self, x: float) -> float:
        return self.start + self.slope * x


@dataclass(frozen=True, slots=True)
class _Bent:
    """A score along a factor: one straight piece up to ``bend``, another one from there."""

    bend: float
    before: _Straight
    after: _Straight


@dataclass(frozen=True, slots=True)
class _Segment:
    """A range in which every score is straight and one of them is the smallest throughout.

    ``bare``: the scores without the share of a build.
    """

    low: float
    high: float
    scores: tuple[_Straight, ...]
    bare: tuple[_Straight, ...]
    best: int


def cost_ms(choice: SettingFigures, conditions: Conditions) -> float:
    """Return what a choice costs each boot, in ms: reading, waiting, and its share of the build.

    What is the same for every choice (L, B2) is not in it.
    """
    read_ms = _MS_PER_S * choice.size_mb.mean / conditions.read_mb_s
    waited_ms = max(conditions.shadow_ms, conditions.cpu_scale * choice.unpack_ms.mean)
    return (
        read_ms + waited_ms + conditions.cpu_scale * choice.extra_ms + _off_ms(choice, conditions)
    )


def _off_ms(choice: SettingFigures, conditions: Conditions) -> float:
    return choice.off_ms if conditions.own else 0.0


def cost_estimate(choice: SettingFigures, conditions: Conditions, place: ReadMedium) -> Estimate:
    """Return the same with the interval that follows from those of size, speed and unpacking.

    The parts err independently of each other; the interval is that of this choice alone,
    differences between choices may be known better.
    """
    size, unpack, speed = choice.size_mb, choice.unpack_ms, place.read_mb_s
    mean = cost_ms(choice, conditions)

    def read_ms(size_mb: float, mb_s: float) -> float:
        return _MS_PER_S * size_mb / mb_s

    def waited_ms(unpack_ms: float) -> float:
        return max(conditions.shadow_ms, conditions.cpu_scale * unpack_ms)

    read, waited = read_ms(size.mean, speed.mean), waited_ms(unpack.mean)
    less = hypot(
        read - read_ms(size.low, speed.mean),
        read - read_ms(size.mean, speed.high),
        waited - waited_ms(unpack.low),
    )
    more = hypot(
        read_ms(size.high, speed.mean) - read,
        read_ms(size.mean, speed.low) - read,
        waited_ms(unpack.high) - waited,
    )
    return Estimate(mean=mean, low=mean - less, high=mean + more, source=unpack.source)


def rank_settings(
    choices: Sequence[SettingFigures], conditions: Conditions, place: ReadMedium, rule: Rule
) -> tuple[SettingRank, ...]:
    """Return what every choice costs, which is the best and which are as good; in their order."""
    scores = [_score(choice, conditions, rule) for choice in choices]
    best = scores.index(min(scores))
    limit = _as_good_up_to(choices, scores, conditions, rule)
    return tuple(
        SettingRank(
            setting=choice.setting,
            cost_ms=cost_estimate(choice, conditions, place),
            best=number == best,
            as_good=scores[number] <= limit,
        )
        for number, choice in enumerate(choices)
    )


def best_settings(
    choices: Sequence[SettingFigures], conditions: Conditions, rule: Rule
) -> tuple[Setting, ...]:
    """Return the best of the choices and those that are as good, the best first."""
    scores = [_score(choice, conditions, rule) for choice in choices]
    limit = _as_good_up_to(choices, scores, conditions, rule)
    ranked = sorted(zip(scores, choices, strict=True), key=lambda one: one[0])
    return tuple(choice.setting for score, choice in ranked if score <= limit)


def _as_good_up_to(
    choices: Sequence[SettingFigures],
    scores: Sequence[float],
    conditions: Conditions,
    rule: Rule,
) -> float:
    best = scores.index(min(scores))
    counts = choices[_counting(choices, best, rule)]
    return _limit(scores[best], _score(replace(counts, extra_ms=0.0), conditions, rule), rule)


def best_along(
    choices: Sequence[SettingFigures],
    conditions: Conditions,
    factor: Factor,
    span: Span,
    rule: Rule,
) -> tuple[BestRange, ...]:
    """Return which setting is the best, from where to where, as the factor goes through ``span``.

    The other conditions are held. Stretches follow each other without a gap, from low to high;
    between two of them both settings cost the same.
    """
    ranges: list[BestRange] = []
    for segment in _segments(choices, conditions, factor, span, rule):
        setting = choices[segment.best].setting
        if _is_negligible(segment):
            continue
        if ranges and ranges[-1].setting == setting:
            low = ranges.pop().low
        else:
            low = ranges[-1].high if ranges else _inner(factor, span).low
        ranges.append(BestRange(low=low, high=segment.high, setting=setting))
    return _outer(factor, span, ranges)


def suitable_along(
    choices: Sequence[SettingFigures],
    conditions: Conditions,
    factor: Factor,
    span: Span,
    rule: Rule,
) -> Mapping[Setting, tuple[Span, ...]]:
    """Return where each setting is as good as the best; nowhere is an empty tuple."""
    found: dict[Setting, list[Span]] = {choice.setting: [] for choice in choices}
    for segment in _segments(choices, conditions, factor, span, rule):
        counts = segment.bare[_counting(choices, segment.best, rule)]
        for choice, score in zip(choices, segment.scores, strict=True):
            for part in _as_good(segment, score, counts, rule):
                _append(found[choice.setting], part)
    return {
        setting: tuple(
            Span(low=one.low, high=one.high)
            for one in _outer(
                factor,
                span,
                [
                    BestRange(low=part.low, high=part.high, setting=setting)
                    for part in parts
                    if not _is_negligible(part)
                ],
            )
        )
        for setting, parts in found.items()
    }


def _is_negligible(part: _Segment | Span) -> bool:
    return part.high - part.low <= _NEGLIGIBLE * part.high


def _score(choice: SettingFigures, conditions: Conditions, rule: Rule) -> float:
    return choice.size_mb.mean if rule.by_size else cost_ms(choice, conditions)


def _counting(choices: Sequence[SettingFigures], best: int, rule: Rule) -> int:
    """Return the choice that the tolerance is a fraction of."""
    settings = [choice.setting for choice in choices]
    return settings.index(rule.today) if rule.today in settings and not rule.by_size else best


def _limit(best: float, counts: float, rule: Rule) -> float:
    relative = best + rule.tolerance_fraction * counts
    return relative if rule.by_size else max(best + rule.tolerance_ms, relative)


def _inner(factor: Factor, span: Span) -> Span:
    """Return the span in what scores are straight in: seconds per MB instead of MB/s."""
    if factor is Factor.LOADER:
        return Span(low=1 / span.high, high=1 / span.low)
    return span


def _outer(factor: Factor, span: Span, ranges: Sequence[BestRange]) -> tuple[BestRange, ...]:
    """Return stretches in the factor's own unit, the ends of the span as they were given."""
    if factor is not Factor.LOADER:
        return tuple(ranges)
    inner = _inner(factor, span)
    exact = {inner.low: span.high, inner.high: span.low}

    def speed(x: float) -> float:
        return exact.get(x, 1 / x)

    return tuple(
        BestRange(low=speed(one.high), high=speed(one.low), setting=one.setting)
        for one in reversed(ranges)
    )


def _bent(choice: SettingFigures, conditions: Conditions, factor: Factor, rule: Rule) -> _Bent:
    """Return a choice's score along a factor; what does not bend has its bend at infinity."""
    size, unpack, extra = choice.size_mb.mean, choice.unpack_ms.mean, choice.extra_ms
    scale, shadow = conditions.cpu_scale, conditions.shadow_ms
    if rule.by_size:
        flat = _Straight(size, 0.0)
        return _Bent(inf, flat, flat)
    off = _off_ms(choice, conditions)
    read = _MS_PER_S * size / conditions.read_mb_s + off
    match factor:
        case Factor.LOADER:
            whole = _Straight(max(shadow, scale * unpack) + scale * extra + off, _MS_PER_S * size)
            return _Bent(inf, whole, whole)
        case Factor.CPU:
            hidden = _Straight(read + shadow, extra)
            bend = shadow / unpack if unpack else inf
            return _Bent(bend, hidden, _Straight(read, unpack + extra))
        case Factor.SHADOW:
            waited = _Straight(read + scale * (unpack + extra), 0.0)
            return _Bent(scale * unpack, waited, _Straight(read + scale * extra, 1.0))


def _segments(
    choices: Sequence[SettingFigures],
    conditions: Conditions,
    factor: Factor,
    span: Span,
    rule: Rule,
) -> Iterator[_Segment]:
    """Yield the span in segments, from low to high, in what scores are straight in."""
    inner = _inner(factor, span)
    bent = [_bent(choice, conditions, factor, rule) for choice in choices]
    bare = [_bent(replace(one, extra_ms=0.0), conditions, factor, rule) for one in choices]
    bends = {one.bend for one in bent if inner.low < one.bend < inner.high}
    for low, high in pairwise(sorted({inner.low, inner.high, *bends})):
        scores, without = (
            tuple(one.before if high <= one.bend else one.after for one in all_of_them)
            for all_of_them in (bent, bare)
        )
        yield from _lowest(low, high, scores, without)


def _lowest(
    low: float, high: float, scores: tuple[_Straight, ...], bare: tuple[_Straight, ...]
) -> Iterator[_Segment]:
    """Yield which of straight scores is the smallest, from ``low`` to ``high``.

    What overtakes the smallest rises less, so each step has a smaller slope and there is an end.
    """
    numbers = range(len(scores))
    best = min(numbers, key=lambda i: (scores[i].at(low), scores[i].slope))
    while True:
        now = scores[best]
        overtakes = [
            ((other.start - now.start) / (now.slope - other.slope), other.slope, number)
            for number, other in enumerate(scores)
            if other.slope < now.slope
        ]
        at, _, following = min(overtakes, default=(inf, 0.0, best))
        at = max(at, low)
        if at >= high:
            yield _Segment(low, high, scores, bare, best)
            return
        if at > low:
            yield _Segment(low, at, scores, bare, best)
        low, best = at, following


def _as_good(segment: _Segment, score: _Straight, counts: _Straight, rule: Rule) -> Iterator[Span]:
    """Yield where a score is within the tolerance of the best: by the fraction, by the time."""
    best, more = segment.scores[segment.best], rule.tolerance_fraction
    allowed = [_Straight(best.start + more * counts.start, best.slope + more * counts.slope)]
    if not rule.by_size:
        allowed.append(_Straight(best.start + rule.tolerance_ms, best.slope))
    parts = []
    for limit in allowed:
        over, slope = score.start - limit.start, score.slope - limit.slope
        low, high = segment.low, segment.high
        if slope > 0:
            high = min(high, -over / slope)
        elif slope < 0:
            low = max(low, -over / slope)
        elif over > 0:
            continue
        if low <= high:
            parts.append(Span(low=low, high=high))
    yield from sorted(parts, key=lambda part: part.low)


def _append(spans: list[Span], part: Span) -> None:
    """Add a part behind the others, or to the last of them where they touch."""
    if spans and part.low <= spans[-1].high * (1 + _NEGLIGIBLE):
        last = spans.pop()
        part = Span(low=last.low, high=max(last.high, part.high))
    spans.append(part)


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
        found = [
            best_settings(self.choices, changed(conditions, across, one), self.rule)
            for one in values
        ]
        return MapRow(
            value=value,
            best=tuple(best for best, *_ in found),
            as_good=tuple(
                tuple(sorted(settings, key=lambda one: one != self.rule.today))
                for settings in found
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
            read_mb_s=place.read_mb_s.mean,
            cpu_scale=self.cpu_scale,
            shadow_ms=self.shadow_ms,
            own=place.own,
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
