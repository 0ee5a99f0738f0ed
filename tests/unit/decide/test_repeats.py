"""Repeated measurements: what their scatter says about medians and their order."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.decide.repeats import is_precise, is_settled, log_spread, middles

TRUE_MS = {"cat": 100.0, "lz4": 140.0, "zstd": 220.0, "gzip": 460.0, "xz": 1600.0}


def a_run(
    rng: np.random.Generator, *, rounds: int = 5, spread: float = 0.03, drift: float = 0.01
) -> dict[str, list[float]]:
    """Return a run of every setting: samples that scatter, all shifted by the run's own drift."""
    shift = rng.normal(0, drift)
    return {
        name: [float(ms * np.exp(shift + rng.normal(0, spread))) for _ in range(rounds)]
        for name, ms in TRUE_MS.items()
    }


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.08])
def test_the_interval_holds_the_median_of_another_run(spread: float) -> None:
    rng = np.random.default_rng(1)
    held = [
        shown.low <= median(other) <= shown.high
        for _ in range(200)
        for first, second in [(a_run(rng, spread=spread), a_run(rng, spread=spread))]
        for name, shown in middles(first).items()
        for other in [second[name]]
    ]
    assert sum(held) / len(held) >= 0.92


def test_the_spread_is_that_of_the_samples_whatever_their_medians() -> None:
    rng = np.random.default_rng(2)
    found = [log_spread(a_run(rng, spread=0.05)) for _ in range(200)]
    assert median(found) == pytest.approx(0.05, rel=0.15)


def test_one_disturbed_sample_is_reported_and_changes_little() -> None:
    run = a_run(np.random.default_rng(3))
    disturbed = {**run, "zstd": [*run["zstd"], 2000.0]}
    before, after = middles(run), middles(disturbed)
    assert after["zstd"].outliers == (2000.0,)
    assert after["zstd"].median == pytest.approx(before["zstd"].median, rel=0.05)
    assert after["gzip"].outliers == ()
    assert log_spread(disturbed) < 2 * log_spread(run)


@pytest.mark.parametrize("rounds", [5, 10, 15])
def test_the_interval_keeps_its_word_on_a_machine_that_is_often_disturbed(rounds: int) -> None:
    """A third of the samples takes up to twice as long."""
    rng = np.random.default_rng(8)

    def disturbed() -> dict[str, list[float]]:
        return {
            name: [value * (1 + rng.uniform(0, 1) * (rng.uniform() < 1 / 3)) for value in values]
            for name, values in a_run(rng, rounds=rounds).items()
        }

    held = []
    for _ in range(200):
        first, second = middles(disturbed()), disturbed()
        held += [shown.low <= median(second[name]) <= shown.high for name, shown in first.items()]
    assert sum(held) / len(held) >= 0.9


def test_clear_differences_are_settled() -> None:
    run = a_run(np.random.default_rng(4), rounds=3)
    assert is_settled(run, tolerance=5, tolerance_fraction=0.02)


def test_close_neighbours_are_not() -> None:
    rng = np.random.default_rng(5)
    run = a_run(rng, rounds=3, spread=0.1)
    run["lzop"] = [value * 1.03 for value in run["zstd"]]
    assert not is_settled(run, tolerance=0, tolerance_fraction=0.02)


def test_neighbours_whose_difference_cannot_matter_are_settled() -> None:
    run = {"a": [100.0, 100.1, 99.9, 100.0], "b": [100.0, 100.2, 99.9, 100.1]}
    assert is_settled(run, tolerance=5, tolerance_fraction=0.02)
    assert not is_settled(run, tolerance=0, tolerance_fraction=0.0001)


def test_more_rounds_make_it_precise() -> None:
    rng = np.random.default_rng(6)
    assert not is_precise(a_run(rng, rounds=3, spread=0.08), within=0.1)
    assert is_precise(a_run(rng, rounds=20, spread=0.08), within=0.1)
    assert is_precise(a_run(rng, rounds=3, spread=0.01), within=0.1)


def test_single_samples_are_taken_to_scatter() -> None:
    shown = middles({"a": [100.0], "b": [200.0], "c": []})
    assert set(shown) == {"a", "b"}
    assert shown["a"].low < 85
    assert shown["a"].high > 115
    assert all(middle.assumed for middle in shown.values())


def test_an_interval_rests_on_repeats_or_is_said_to_be_assumed() -> None:
    few = middles({"a": [100.0, 101.0], "b": [100.0, 102.0], "c": [7.0]})
    assert all(middle.assumed for middle in few.values())
    more = middles({"a": [100.0, 101.0, 99.0, 98.0], "b": [100.0, 102.0] * 3, "c": [7.0]})
    # Whether what was seen once scatters like the others nobody knows.
    assert [name for name, middle in more.items() if middle.assumed] == ["c"]


@pytest.mark.parametrize("count", [8, 9, 12])
def test_an_interval_that_is_not_assumed_holds_what_it_claims(count: int) -> None:
    rng = np.random.default_rng(count)

    def boots() -> list[float]:
        return [float(time) for time in 200 * rng.lognormal(0, 0.1, count)]

    held = 0
    for _ in range(300):
        shown = middles({"a": boots()})["a"]
        assert not shown.assumed
        held += shown.low <= median(boots()) <= shown.high
    assert held >= 275  # 0.917: three standard errors below 95 %


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.lists(st.floats(min_value=0.001, max_value=1e7), max_size=12),
        max_size=6,
    )
)
def test_any_samples_give_an_interval_around_their_median(samples: dict[str, list[float]]) -> None:
    for name, shown in middles(samples).items():
        assert 0 < shown.low <= shown.median <= shown.high
        assert shown.count == len(samples[name])
    is_settled(samples, tolerance=5, tolerance_fraction=0.02)
