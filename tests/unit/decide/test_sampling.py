"""Blocks come from all over the content, and sizes follow the controls."""

from __future__ import annotations

from itertools import pairwise
from math import exp, hypot, inf, isclose, log, nextafter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.decide.sampling import (
    BLOCK_BYTES,
    Error,
    Growth,
    Rung,
    SampleBlock,
    blocks,
    growth,
    related,
    thinned,
    whole_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZES = st.one_of(
    st.integers(0, 4 * BLOCK_BYTES), st.integers(0, 600 * BLOCK_BYTES), st.integers(0, 1 << 36)
)
ERROR = Error(bias=0.01, log_sd=0.02)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[int, int, tuple[SampleBlock, ...]]:
    """Return the length of a whole, how much of it is wanted, and the blocks."""
    whole = draw(SIZES)
    sample = draw(st.integers(1, max(1, min(2 * whole, 3000 * BLOCK_BYTES))))
    phase = draw(st.floats(0, 1, exclude_max=True))
    return whole, sample, blocks(whole, sample, phase=phase)


@given(drawn())
def test_blocks_lie_within_the_whole_in_order_and_never_overlap(
    case: tuple[int, int, tuple[SampleBlock, ...]],
) -> None:
    whole, _, found = case
    assert all(stretch.offset >= 0 and stretch.size_bytes > 0 for stretch in found)
    assert all(
        before.offset + before.size_bytes <= after.offset for before, after in pairwise(found)
    )
    assert all(stretch.offset + stretch.size_bytes <= whole for stretch in found)


@given(drawn())
def test_blocks_make_up_what_was_asked_for(case: tuple[int, int, tuple[SampleBlock, ...]]) -> None:
    whole, sample, found = case
    taken = sum(stretch.size_bytes for stretch in found)
    if len(found) == 1 and taken == whole:
        return  # everything
    # The last block of the whole may be a short one.
    assert sample - BLOCK_BYTES < taken < sample + BLOCK_BYTES
    assert 2 * taken <= whole + 2 * BLOCK_BYTES


@given(drawn())
def test_blocks_stand_at_equal_distances_and_leave_out_neither_end(
    case: tuple[int, int, tuple[SampleBlock, ...]],
) -> None:
    whole, _, found = case
    if len(found) < 2:
        return
    share = whole / len(found)
    distances = [after.offset - before.offset for before, after in pairwise(found)]
    assert all(abs(distance - share) <= 2 * BLOCK_BYTES for distance in distances)
    assert found[0].offset <= share
    assert whole - found[-1].offset <= share + 2 * BLOCK_BYTES


@given(whole=SIZES, phase=st.floats(0, 1, exclude_max=True))
def test_of_a_short_content_all_is_taken_as_one(whole: int, phase: float) -> None:
    everything = (SampleBlock(offset=0, size_bytes=whole),) if whole else ()
    assert blocks(whole, whole, phase=phase) == everything
    assert blocks(whole, 2 * whole + 1, phase=phase) == everything


def test_the_middle_of_each_share_is_taken() -> None:
    found = blocks(100 * BLOCK_BYTES, 10 * BLOCK_BYTES, phase=0.5)
    assert [stretch.offset // BLOCK_BYTES for stretch in found] == list(range(5, 100, 10))


@given(count=st.integers(1, 400), wanted=st.integers(1, 500))
def test_a_thinned_sample_is_a_part_of_the_large_one_from_all_over_it(
    count: int, wanted: int
) -> None:
    large = [SampleBlock(offset=7 * n * BLOCK_BYTES, size_bytes=BLOCK_BYTES) for n in range(count)]
    small = thinned(large, wanted * BLOCK_BYTES)
    assert len(small) == min(count, wanted)
    places = [large.index(stretch) for stretch in small]
    assert places == sorted(set(places))
    share = count / len(small)
    assert all(abs(after - before - share) < 1 + 1e-9 for before, after in pairwise(places))
    assert abs(places[0] + 0.5 - share / 2) <= 1
    assert abs(count - (places[-1] + 0.5) - share / 2) <= 1


def test_the_last_possible_phase_is_still_within_the_whole() -> None:
    found = blocks(20 * BLOCK_BYTES, 10 * BLOCK_BYTES, phase=nextafter(1, 0))
    assert len(set(found)) == 10
    assert all(stretch.offset + stretch.size_bytes <= 20 * BLOCK_BYTES for stretch in found)
    assert all(stretch.size_bytes == BLOCK_BYTES for stretch in found)


@pytest.mark.parametrize("size_bytes", [0, 1, BLOCK_BYTES])
def test_of_nothing_nothing_is_taken(size_bytes: int) -> None:
    assert blocks(0, size_bytes, phase=0.5) == ()
    assert thinned((), size_bytes) == ()


BYTES = st.integers(1, 1 << 36)
RUNGS = st.lists(
    st.builds(
        Rung, window_log=st.integers(0, 31).map(float), whole_bytes=BYTES, sample_bytes=BYTES
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda rung: rung.window_log,
)


def grown(ladder: Iterable[Rung], window_log: float) -> float:
    return growth(ladder, window_log, in_bytes=0.0).log


@given(RUNGS)
def test_at_a_control_its_growth_is_the_control_s(ladder: list[Rung]) -> None:
    for rung in ladder:
        assert isclose(grown(ladder, rung.window_log), rung.growth, abs_tol=1e-9)


@given(ladder=RUNGS, first=st.floats(-5, 40), second=st.floats(-5, 40))
def test_between_two_controls_growth_runs_straight_from_one_to_the_other(
    ladder: list[Rung], first: float, second: float
) -> None:
    rungs = sorted(ladder, key=lambda rung: rung.window_log)
    for below, above in pairwise(rungs):
        inside = sorted(
            min(max(place, below.window_log), above.window_log) for place in (first, second)
        )
        values = [below.growth, *(grown(ladder, place) for place in inside), above.growth]
        steps = [after - before for before, after in pairwise(values)]
        rising = above.growth >= below.growth
        assert all(step >= -1e-9 if rising else step <= 1e-9 for step in steps)


@given(ladder=RUNGS, beyond=st.floats(0, 50))
def test_beyond_the_controls_growth_is_that_of_the_nearest(
    ladder: list[Rung], beyond: float
) -> None:
    rungs = sorted(ladder, key=lambda rung: rung.window_log)
    assert grown(ladder, rungs[0].window_log - beyond) == rungs[0].growth
    assert grown(ladder, rungs[-1].window_log + beyond) == rungs[-1].growth
    assert grown(reversed(ladder), 20.0) == grown(ladder, 20.0)


def test_a_control_that_made_nothing_breaks_nothing() -> None:
    assert Rung(window_log=16, whole_bytes=0, sample_bytes=0).growth == 0


def test_the_odder_the_content_the_larger_the_doubt() -> None:
    """More of the same grows as its bytes do; what repeats from afar does not."""
    doubts = []
    for whole_bytes in (10_000, 9_000, 5_000, 1_000):
        rungs = [
            Rung(window_log=18, whole_bytes=10_000, sample_bytes=1_000),
            Rung(window_log=23, whole_bytes=whole_bytes, sample_bytes=1_000),
        ]
        doubts.append(growth(rungs, 20.0, in_bytes=log(10)).doubt)
    assert doubts[0] == pytest.approx(0, abs=1e-12)
    assert doubts == sorted(doubts)
    assert doubts[1] < 0.005
    assert doubts[-1] > 0.5


@given(
    sample=BYTES,
    error=st.builds(Error, bias=st.floats(-1, 1), log_sd=st.floats(0, 1)),
    doubt=st.floats(0, 5),
)
def test_what_was_sampled_completely_is_exact(sample: int, error: Error, doubt: float) -> None:
    grows = Growth(log=0.0, doubt=doubt)
    found = whole_size(sample, grows, error, sampled_part=1.0, most_bytes=0.0, source="all of it")
    assert (found.median, found.log_sd, found.source) == (sample, 0, "all of it")


@given(
    sample=st.integers(1, 1 << 30),
    grows=st.floats(-2, 6),
    doubt=st.floats(0, 2),
    parts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_the_more_was_sampled_the_surer_the_size(
    sample: int, grows: float, doubt: float, parts: tuple[float, float]
) -> None:
    less, more = (
        whole_size(
            sample,
            Growth(log=grows, doubt=doubt),
            ERROR,
            sampled_part=part,
            most_bytes=inf,
            source="",
        )
        for part in sorted(parts)
    )
    assert hypot(ERROR.log_sd, doubt) >= less.log_sd >= more.log_sd >= 0
    for found in (less, more):
        assert abs(log(found.median / sample) - grows) <= abs(ERROR.bias) + 1e-9


def test_estimates_that_were_too_large_are_made_smaller() -> None:
    grows = Growth(log=log(10), doubt=0.0)
    found = whole_size(1000, grows, ERROR, sampled_part=0.0, most_bytes=inf, source="")
    assert found.median == pytest.approx(10_000 * exp(-0.01))
    assert found.log_sd == ERROR.log_sd


def test_no_estimate_is_larger_than_what_any_compressor_makes() -> None:
    grows = Growth(log=log(10), doubt=0.0)
    found = whole_size(1000, grows, ERROR, sampled_part=0.1, most_bytes=5_000, source="")
    assert found.median == 5_000


@given(st.floats(-5, 10), st.floats(-5, 30), st.floats(-5, 30))
def test_a_slow_setting_shares_the_bad_luck_of_its_relative(
    slow: float, small: float, large: float
) -> None:
    own = Growth(log=slow, doubt=0.01)
    same = related(own, small, small)
    assert same.log == pytest.approx(slow, abs=1e-9)
    assert same.doubt == pytest.approx(own.doubt)
    # Where the small sample has the relative too large, it has the slow setting too large as well.
    other = related(own, small, large)
    assert other.log - slow == pytest.approx(large - small, abs=1e-9)
    assert other.doubt >= own.doubt
