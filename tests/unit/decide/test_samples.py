"""Samples of several runs become one figure that is as wide as the runs differ."""

from __future__ import annotations

import random
from math import exp, log
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.decide.repeats import BETWEEN_RUNS_LOG_SD, pooled

Z95 = 1.96
TIMES = st.floats(min_value=0.1, max_value=1e6)
RUNS = st.lists(st.lists(TIMES, min_size=1, max_size=6), min_size=1, max_size=4)


def test_equal_samples_are_as_uncertain_as_runs_ever_are() -> None:
    figure = pooled({"a": [[100.0] * 5, [100.0] * 5]}, source="a test")["a"]
    assert figure.median == pytest.approx(100)
    assert figure.log_sd == pytest.approx(BETWEEN_RUNS_LOG_SD * 1.5**0.5, rel=0.05)
    assert figure.source == "a test"


def test_runs_that_differ_widen_every_figure() -> None:
    alike = {"a": [[100.0, 101, 99]], "b": [[200.0, 202, 198]]}
    differ = {"a": [[100.0, 101, 99], [130.0, 131, 129]], "b": [[200.0, 202, 198]]}
    before, after = pooled(alike, source=""), pooled(differ, source="")
    for name in alike:
        assert after[name].log_sd > 3 * before[name].log_sd
    assert 100 < after["a"].median < 130


def test_one_disturbed_boot_changes_little() -> None:
    quiet = pooled({"a": [[100.0, 101, 99, 100, 100]]}, source="")["a"]
    disturbed = pooled({"a": [[100.0, 101, 99, 100, 1600]]}, source="")["a"]
    assert disturbed.median == pytest.approx(quiet.median, rel=0.02)


def test_a_single_sample_is_not_taken_for_certain() -> None:
    assert pooled({"a": [[100.0]]}, source="")["a"].log_sd > 0.1


def test_more_boots_of_one_run_make_its_median_surer_but_not_the_next_one_s() -> None:
    scatter = [95.0, 105.0, 98.0, 102.0, 100.0]
    few = pooled({"a": [scatter]}, source="")["a"].log_sd
    many = pooled({"a": [scatter * 20]}, source="")["a"].log_sd
    assert BETWEEN_RUNS_LOG_SD <= many < few


def test_images_without_samples_are_left_out() -> None:
    assert pooled({"a": [], "b": [[1.0]]}, source="").keys() == {"b"}
    assert pooled({}, source="") == {}


@pytest.mark.parametrize(("runs", "drift_sd"), [(1, 0.02), (2, 0.04), (4, 0.04)])
def test_the_interval_holds_the_median_of_another_run(runs: int, drift_sd: float) -> None:
    dice = random.Random(7)

    def another_run(true_ms: float) -> list[float]:
        drift = exp(dice.gauss(0, drift_sd))
        return [true_ms * drift * exp(dice.gauss(0, 0.02)) for _ in range(5)]

    held = []
    for _ in range(300):
        subjects = {str(ms): [another_run(ms) for _ in range(runs)] for ms in (100.0, 300.0, 900.0)}
        for name, figure in pooled(subjects, source="").items():
            next_one = median(another_run(float(name)))
            held.append(abs(log(next_one / figure.median)) < Z95 * figure.log_sd)
    assert 0.9 < sum(held) / len(held) < 1


@given(subjects=st.dictionaries(st.text(max_size=2), RUNS, max_size=4))
def test_a_figure_lies_within_its_samples_and_is_never_certain(
    subjects: dict[str, list[list[float]]],
) -> None:
    figures = pooled(subjects, source="")
    assert figures.keys() == subjects.keys()
    for name, figure in figures.items():
        samples = [sample for run in subjects[name] for sample in run]
        assert min(samples) * 0.999 <= figure.median <= max(samples) * 1.001
        assert figure.log_sd >= BETWEEN_RUNS_LOG_SD


@given(runs=RUNS, factor=st.floats(min_value=0.01, max_value=100))
def test_the_unit_does_not_matter(runs: list[list[float]], factor: float) -> None:
    one = pooled({"a": runs}, source="")["a"]
    other = pooled({"a": [[sample * factor for sample in run] for run in runs]}, source="")["a"]
    assert other.median == pytest.approx(one.median * factor, rel=1e-6)
    assert other.log_sd == pytest.approx(one.log_sd, rel=1e-3, abs=1e-6)
