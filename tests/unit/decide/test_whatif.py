"""Crossing points, held against what every choice costs at many values."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.estimates import Estimate
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Factor
from initadvisor.decide.whatif import (
    best_along,
    best_settings,
    cost_ms,
    rank_settings,
    suitable_along,
)
from initadvisor.decide.whatif_values import Conditions, ReadMedium, Rule, SettingFigures, Span

RULE = Rule(tolerance_ms=5.0, tolerance_fraction=0.02)
EXACT = Rule(tolerance_ms=0.0, tolerance_fraction=0.0)
NAMES = [f"zstd -{level}" for level in range(1, 20)]


def exact(value: float) -> Estimate:
    """Return a figure without doubt."""
    return Estimate(mean=value, low=value, high=value, source="a test")


def choice(name: str, size_mb: float, unpack_ms: float, extra_ms: float = 0.0) -> SettingFigures:
    """Return a choice whose figures are certain."""
    return SettingFigures(
        setting=Setting.parse(name),
        size_mb=exact(size_mb),
        unpack_ms=exact(unpack_ms),
        extra_ms=extra_ms,
    )


def at(held: Conditions, factor: Factor, value: float) -> Conditions:
    """Return the conditions with one of them changed."""
    return Conditions(
        read_mb_s=value if factor is Factor.LOADER else held.read_mb_s,
        cpu_scale=value if factor is Factor.CPU else held.cpu_scale,
        shadow_ms=value if factor is Factor.SHADOW else held.shadow_ms,
    )


def spaced(span: Span, count: int = 60) -> list[float]:
    """Return values from end to end of a range, evenly where it starts at 0, else by factors."""
    parts = [number / (count - 1) for number in range(count)]
    if span.low == 0:
        return [span.high * part for part in parts]
    inner = [span.low * exp(log(span.high / span.low) * part) for part in parts[1:-1]]
    return [span.low, *inner, span.high]


sizes = st.floats(1, 500)
times = st.floats(1, 5000)
choices = st.lists(
    st.tuples(sizes, times, st.sampled_from([0.0, 0.0, 20.0, 300.0])), min_size=1, max_size=12
).map(lambda rows: [choice(name, *row) for name, row in zip(NAMES, rows, strict=False)])
conditions = st.builds(
    Conditions,
    read_mb_s=st.floats(1, 5000),
    cpu_scale=st.floats(0.1, 10),
    shadow_ms=st.one_of(st.just(0.0), st.floats(0, 3000)),
)
RANGES = {
    Factor.LOADER: st.tuples(st.floats(1, 100), st.floats(1.1, 1000)),
    Factor.CPU: st.tuples(st.floats(0.05, 2), st.floats(1.1, 100)),
    Factor.SHADOW: st.tuples(st.floats(1, 500), st.floats(1.1, 50)),
}


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Factor, Span]:
    """Return a factor and a range of it; a shadow may start at 0."""
    factor = draw(st.sampled_from(list(RANGES)))
    low, times_longer = draw(RANGES[factor])
    start = 0.0 if factor is Factor.SHADOW and draw(st.booleans()) else low
    return factor, Span(low=start, high=low * times_longer)


@given(choices, conditions, ranges())
def test_at_every_value_the_stated_setting_is_the_cheapest(
    field: list[SettingFigures], held: Conditions, way: tuple[Factor, Span]
) -> None:
    factor, span = way
    stretches = best_along(field, held, factor, span, RULE)
    of = {one.setting: one for one in field}
    for value in spaced(span):
        here = at(held, factor, value)
        best = min(cost_ms(one, here) for one in field)
        stated = [s.setting for s in stretches if s.low <= value <= s.high]
        assert stated
        assert all(cost_ms(of[setting], here) <= best * (1 + 1e-6) for setting in stated)


@given(choices, conditions, ranges())
def test_stretches_cover_the_range_and_change_hands_where_costs_are_equal(
    field: list[SettingFigures], held: Conditions, way: tuple[Factor, Span]
) -> None:
    factor, span = way
    stretches = best_along(field, held, factor, span, RULE)
    of = {one.setting: one for one in field}
    assert [stretches[0].low, stretches[-1].high] == pytest.approx([span.low, span.high])
    for before, after in pairwise(stretches):
        assert before.high == after.low
        assert before.setting != after.setting
        here = at(held, factor, before.high)
        costs = [cost_ms(of[one.setting], here) for one in (before, after)]
        assert costs[0] == pytest.approx(costs[1], rel=1e-6)


@given(choices, conditions, ranges())
def test_a_setting_is_suitable_where_it_is_within_the_tolerance(
    field: list[SettingFigures], held: Conditions, way: tuple[Factor, Span]
) -> None:
    factor, span = way
    rule = replace(RULE, today=field[0].setting)
    suitable = suitable_along(field, held, factor, span, rule)
    for value in spaced(span):
        here = at(held, factor, value)
        best = min(cost_ms(one, here) for one in field)
        todays_ms = cost_ms(replace(field[0], extra_ms=0.0), here)
        limit = best + max(rule.tolerance_ms, rule.tolerance_fraction * todays_ms)
        for one in field:
            off = cost_ms(one, here) - limit
            if abs(off) > 1e-6 * limit:  # neither exactly at a border
                inside = any(part.low <= value <= part.high for part in suitable[one.setting])
                assert inside == (off < 0)


@given(choices, conditions)
def test_standings_agree_with_the_best_setting(
    field: list[SettingFigures], held: Conditions
) -> None:
    place = ReadMedium(name="", read_mb_s=exact(held.read_mb_s))
    found = rank_settings(field, held, place, RULE)
    (best,) = [one for one in found if one.best]
    assert best.setting == best_settings(field, held, RULE)[0]
    assert best.as_good
    assert best.cost_ms.mean == min(one.cost_ms.mean for one in found)
    assert [one.setting for one in found] == [one.setting for one in field]


def test_the_crossing_of_two_settings_is_where_reading_less_pays_for_unpacking_longer() -> None:
    field = [choice("lz4", 50, 100), choice("zstd", 30, 300)]
    held = Conditions(read_mb_s=100, cpu_scale=1, shadow_ms=0)
    slow, fast = best_along(field, held, Factor.LOADER, Span(low=20, high=2000), EXACT)
    # 20 MB less take 200 ms at 100 MB/s, which is what unpacking takes longer.
    assert (slow.low, fast.high) == (20, 2000)
    assert (str(slow.setting), str(fast.setting)) == ("zstd", "lz4")
    assert slow.high == fast.low == pytest.approx(100)


def test_what_building_adds_and_what_is_off_on_the_machine_itself_move_the_crossing() -> None:
    dear = choice("zstd", 30, 300, extra_ms=100)
    held = Conditions(read_mb_s=100, cpu_scale=1, shadow_ms=0)
    for own, off_ms, speed in ((False, 100, 20_000 / 300), (True, 100, 50), (True, -50, 80)):
        field = [choice("lz4", 50, 100), replace(dear, off_ms=off_ms)]
        slow, fast = best_along(
            field, replace(held, own=own), Factor.LOADER, Span(low=20, high=2000), EXACT
        )
        assert (str(slow.setting), str(fast.setting)) == ("zstd", "lz4")
        assert slow.high == fast.low == pytest.approx(speed)


def test_a_shadow_hides_what_a_smaller_image_takes_longer() -> None:
    field = [choice("lz4", 50, 100), choice("zstd", 30, 300)]
    held = Conditions(read_mb_s=200, cpu_scale=1, shadow_ms=0)
    short, long = best_along(field, held, Factor.SHADOW, Span(low=0, high=1000), EXACT)
    # Reading lz4's takes 100 ms longer; waiting for it, 200 ms less, of which 100 remain.
    assert (str(short.setting), str(long.setting)) == ("lz4", "zstd")
    assert long.low == pytest.approx(200)


def test_twice_the_scale_is_as_good_as_half_the_speed() -> None:
    field = [choice("lz4", 50, 100), choice("zstd", 30, 300)]
    held = Conditions(read_mb_s=100, cpu_scale=2, shadow_ms=0)
    slow, _ = best_along(field, held, Factor.LOADER, Span(low=1, high=1000), EXACT)
    assert slow.high == pytest.approx(50)


def test_by_size_the_smallest_is_the_best_everywhere() -> None:
    field = [choice("lz4", 50, 100), choice("zstd", 30, 300), choice("xz", 29.7, 3000)]
    held = Conditions(read_mb_s=1e6, cpu_scale=1, shadow_ms=0)
    rule = Rule(tolerance_ms=5, tolerance_fraction=0.02, by_size=True)
    (only,) = best_along(field, held, Factor.LOADER, Span(low=1, high=1000), rule)
    assert str(only.setting) == "xz"
    assert {
        str(setting): len(parts)
        for setting, parts in suitable_along(
            field, held, Factor.LOADER, Span(low=1, high=1000), rule
        ).items()
    } == {"lz4": 0, "zstd": 1, "xz": 1}


def test_as_good_is_by_what_today_s_image_takes_without_its_build() -> None:
    """The best takes 300 ms, today's 1000: 20 ms do not matter, where it is not known 6 ms."""
    field = [choice("lz4", 10, 200), choice("lzop", 10, 215), choice("xz", 10, 900)]
    field[2] = replace(field[2], extra_ms=5000)
    held = Conditions(read_mb_s=100, cpu_scale=1, shadow_ms=0)
    for today, good in ((field[2].setting, True), (None, False)):
        rule = replace(RULE, today=today)
        ranks = rank_settings(field, held, ReadMedium(name="", read_mb_s=exact(100)), rule)
        assert [rank.as_good for rank in ranks] == [True, good, False]
        span = Span(low=0.5, high=1)
        along = suitable_along(field, held, Factor.CPU, span, rule)
        assert along[field[1].setting] == ((span,) if good else ())


def test_an_interval_comes_of_size_speed_and_unpacking() -> None:
    one = SettingFigures(
        setting=Setting.parse("zstd"),
        size_mb=Estimate(mean=30, low=27, high=33, source="a sample"),
        unpack_ms=Estimate(mean=300, low=260, high=340, source="predicted"),
    )
    held = Conditions(read_mb_s=100, cpu_scale=1, shadow_ms=0)
    place = ReadMedium(name="", read_mb_s=exact(100))
    cost = rank_settings([one], held, place, RULE)[0].cost_ms
    assert [cost.mean, cost.low, cost.high] == pytest.approx([600, 550, 650])
    hidden = Conditions(read_mb_s=100, cpu_scale=1, shadow_ms=400)
    cost = rank_settings([one], hidden, place, RULE)[0].cost_ms
    assert [cost.mean, cost.low, cost.high] == pytest.approx([700, 670, 730])
