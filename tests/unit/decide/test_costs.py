"""The cost model gives what its formula says, and keeps what candidates share in common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from initadvisor.decide.costs import draw_parts, summary
from tests.fixtures.known_machines import BOOTS, candidate, draw_costs, machine


def test_a_machine_known_for_certain_costs_what_the_formula_says() -> None:
    draws = draw_costs(machine(mb_s=100, shadow_ms=0), [candidate("zstd", 40, 120)], seed=1)
    assert draws.read_ms[0, 0] == pytest.approx(400)
    assert draws.unpack_ms[0, 0] == pytest.approx(200)
    fixed_and_kernel = 100 + 10 * 10
    without_rest = fixed_and_kernel + 400 + 200
    rest = draws.total_ms[:, 0] - without_rest
    assert rest.min() >= 0


def test_an_unpack_that_ends_within_the_shadow_costs_nothing() -> None:
    candidates = [candidate("lz4", 40, 10), candidate("zstd", 40, 500), candidate("xz", 40, 1000)]
    total = draw_costs(machine(shadow_ms=600), candidates, seed=1).total_ms
    assert np.allclose(total[:, 0], total[:, 1])
    assert np.allclose(total[:, 2] - total[:, 0], 1080 - 600)


def test_what_candidates_share_cancels_in_their_difference() -> None:
    candidates = [candidate("zstd", 40, 100), candidate("lz4", 40, 50)]
    total = draw_costs(machine(read_log_sd=1.2, shadow_ms=0), candidates, seed=1).total_ms
    assert np.allclose(total[:, 0] - total[:, 1], 50)
    assert total[:, 0].std() > 100


def test_draws_are_the_same_for_the_same_seed_and_differ_for_another() -> None:
    def total(seed: int) -> float:
        uncertain = machine(shadow_ms=None, read_log_sd=1)
        return float(draw_costs(uncertain, [candidate("zstd", 40, 100)], seed=seed).total_ms.sum())

    assert total(1) == total(1) != total(2)


def test_an_unseen_shadow_lies_between_the_unpack_and_init() -> None:
    uncertain = machine(shadow_ms=None)
    parts = draw_parts(uncertain, [candidate("zstd", 40, 100)], seed=1, count=20_000)
    shadow = parts.shadow_ms
    hidden = shadow[shadow > 200]
    assert 300 <= hidden.min() < hidden.max() <= 1000
    assert hidden.size / shadow.size == pytest.approx(1 / len(BOOTS), abs=0.02)


def test_every_draw_is_finite_and_positive() -> None:
    draws = draw_costs(machine(shadow_ms=None, read_log_sd=1), [candidate("xz", 1, 1)], seed=3)
    for values in (draws.read_ms, draws.unpack_ms, draws.total_ms):
        assert np.isfinite(values).all()
        assert (values > 0).all()


def test_a_summary_holds_the_middle_95_percent() -> None:
    figure = summary(np.arange(1001.0), "a test")
    assert (figure.low, figure.mean, figure.high) == pytest.approx((25, 500, 975))


def test_a_summary_tells_mean_and_median_apart() -> None:
    figure = summary(np.array([1.0, 2.0, 30.0]), "a test")
    assert (figure.median, figure.middle, figure.mean) == (2.0, 2.0, 11.0)


def test_the_error_of_a_codec_is_the_same_for_all_its_settings() -> None:
    certain = [candidate("zstd", 40, 120), candidate("zstd -19", 30, 240), candidate("lz4", 50, 60)]
    doubted = [replace(one, codec_log_sd=0.2) for one in certain]
    codec = draw_parts(machine(), doubted, seed=1, count=5000).codec
    assert np.allclose(codec[:, 0], codec[:, 1])
    assert np.log(codec[:, 0]).std() == pytest.approx(0.2, rel=0.1)
    assert abs(np.corrcoef(codec[:, 0], codec[:, 2])[0, 1]) < 0.1


def test_a_time_the_lab_measured_is_taken_as_a_whole() -> None:
    field = [candidate("zstd", 40, 999, unpack_ms=150), candidate("lz4", 40, 60)]
    draws = draw_costs(machine(cpu_log_sd=0.3), field, seed=1)
    assert np.allclose(draws.unpack_ms[:, 0], 150)
    assert draws.unpack_ms[:, 1].std() > 10


def test_what_the_lab_differs_by_is_the_same_for_all_it_measured() -> None:
    field = [candidate("zstd", 40, 0, unpack_ms=200), candidate("lz4", 40, 0, unpack_ms=100)]
    unpack = draw_costs(machine(lab_log_sd=0.1), field, seed=1).unpack_ms
    assert np.allclose(unpack[:, 0] / unpack[:, 1], 2)
    assert np.log(unpack[:, 0]).std() == pytest.approx(0.1, rel=0.05)


def test_without_the_lab_its_doubt_is_nobody_s() -> None:
    field = [candidate("zstd", 40, 120), candidate("lz4", 40, 60)]
    certain = draw_costs(machine(), field, seed=1)
    doubted = draw_costs(machine(lab_log_sd=1.0), field, seed=1)
    assert np.allclose(certain.unpack_ms, doubted.unpack_ms)


def test_the_lab_s_time_for_no_compression_is_the_others_populate() -> None:
    field = [
        candidate("zstd", 40, 120),
        candidate("cat", 100, 0, unpack_ms=50),
        candidate("lz4", 40, 0, unpack_ms=75),
    ]
    unpack = draw_costs(machine(lab_log_sd=0.1), field, seed=1).unpack_ms
    assert np.allclose(unpack[:, 0] - unpack[:, 1], 120)
    assert np.allclose(unpack[:, 2] / unpack[:, 1], 1.5)


def test_an_uncompressed_image_that_was_not_measured_says_nothing_of_populate() -> None:
    field = [candidate("zstd", 40, 120), candidate("cat", 100, 0)]
    unpack = draw_costs(machine(), field, seed=1).unpack_ms
    assert np.allclose(unpack[:, 1], 80)
