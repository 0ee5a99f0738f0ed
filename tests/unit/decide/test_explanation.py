"""What decides between two candidates is found where it is known by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.decision import Thresholds, compare_candidates, contrast, strongest_rival
from initadvisor.decide.explanation import Pair, images_share, weights
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from tests.fixtures.known_machines import candidate, machine

if TYPE_CHECKING:
    from initadvisor.decide.cost import CandidateFacts, Machine
    from initadvisor.decide.explanation import Weight

ZSTD = candidate("zstd", 40, 120)
LZ4 = candidate("lz4", 52, 40)
EXACT = Thresholds(tolerance_ms=5, tolerance_fraction=0.0)


class Explained:
    """What is made of candidates, the first of which is today's."""

    def __init__(
        self, machine: Machine, *candidates: CandidateFacts, pair: tuple[int, int] = (0, 1)
    ) -> None:
        given = sample_posterior_costs(machine, candidates, [], seed=1)
        found = compare_candidates(given.draws, candidates, baseline=0, thresholds=EXACT)
        columns = Pair(advised=pair[0], rival=pair[1])
        parts = given.posterior.parameters
        self.weights = weights(parts, candidates, found, given.summary, columns, baseline=0)
        self.images_share = images_share(parts, found, columns)

    def of(self, what: Parameter) -> Weight:
        return next(weight for weight in self.weights if weight.what is what)


def settings(weight: Weight) -> list[str]:
    return [str(stretch.setting) for stretch in weight.ranges]


def test_where_nothing_is_in_doubt_nothing_decides() -> None:
    explained = Explained(machine(), ZSTD, LZ4)
    assert explained.weights == ()
    assert explained.images_share == 0


def test_the_only_doubt_is_all_of_it_and_the_crossing_is_where_it_was_put() -> None:
    """80 ms less to unpack, 12 MB more to read, and 5 ms do not matter: at 12 / 75 s per GB."""
    explained = Explained(machine(read_log_sd=1.2), ZSTD, LZ4)
    [loader] = explained.weights
    assert loader.what is Parameter.LOADER
    assert loader.share > 0.95
    assert explained.images_share == 0
    assert settings(loader) == ["zstd", "lz4"]
    low, high = loader.ranges
    assert low.high == high.low == pytest.approx(160, rel=0.02)
    assert low.low == pytest.approx(100 / 10.5, rel=0.05)
    assert high.high == pytest.approx(100 * 10.5, rel=0.05)
    # Of the normal distribution, 0.39 standard deviations above the median.
    assert loader.turns == pytest.approx(0.348 - 0.025, abs=0.01)


def test_shares_are_parts_of_the_variance() -> None:
    """Standard deviations: 6 ms of reading, 4 ms of decompression, 2.5 ms of one image's own."""
    own = candidate("lz4", 52 + 108, 40, log_sd=0.0625)
    explained = Explained(machine(read_log_sd=0.05, cpu_log_sd=0.05), ZSTD, own)
    assert [weight.what for weight in explained.weights] == [Parameter.LOADER, Parameter.CPU]
    variance = 60**2 + 4**2 + 2.5**2
    assert explained.of(Parameter.LOADER).share == pytest.approx(60**2 / variance, abs=0.02)
    small = Explained(
        machine(read_log_sd=0.05, cpu_log_sd=0.05), ZSTD, candidate("lz4", 52, 40, log_sd=0.0625)
    )
    variance = 6**2 + 4**2 + 2.5**2
    assert small.of(Parameter.LOADER).share == pytest.approx(6**2 / variance, abs=0.03)
    assert small.of(Parameter.CPU).share == pytest.approx(4**2 / variance, abs=0.03)
    assert small.images_share == pytest.approx(2.5**2 / variance, abs=0.03)


def test_a_fact_on_which_the_difference_does_not_depend_has_no_share() -> None:
    same_size = candidate("lz4", 40, 40)
    explained = Explained(machine(read_log_sd=1.0, cpu_log_sd=0.2), ZSTD, same_size)
    assert explained.of(Parameter.LOADER).share < 0.005
    assert explained.of(Parameter.CPU).share > 0.95
    assert [weight.what for weight in explained.weights] == [Parameter.CPU, Parameter.LOADER]


def test_a_shadow_hides_what_ends_in_it() -> None:
    """80 ms to create the files: zstd takes 200 ms, lz4 120, and 5 ms do not matter."""
    shadow = Explained(machine(shadow_ms=None), ZSTD, candidate("lz4", 40, 40)).of(Parameter.SHADOW)
    assert settings(shadow) == ["lz4", "zstd"]
    assert shadow.ranges[0].high == pytest.approx(195, rel=0.01)


def test_three_settings_have_their_own_stretches() -> None:
    cat = candidate("cat", 100, 0)
    loader = Explained(machine(read_log_sd=1.8), ZSTD, LZ4, cat).of(Parameter.LOADER)
    assert settings(loader) == ["zstd", "lz4", "cat"]
    assert loader.ranges[0].high == pytest.approx(160, rel=0.05)
    assert loader.ranges[1].high == pytest.approx(1200, rel=0.05)


def test_what_may_not_be_chosen_is_never_the_best() -> None:
    refused = candidate("cat", 100, 0, eligible=False)
    loader = Explained(machine(read_log_sd=1.8), ZSTD, LZ4, refused).of(Parameter.LOADER)
    assert settings(loader) == ["zstd", "lz4"]


def test_of_equals_no_stretch_is_made_of_chance() -> None:
    twins = [candidate(f"zstd -{level}", 40, 90, log_sd=0.05) for level in (1, 2, 3, 4)]
    loader = Explained(machine(read_log_sd=1.2), ZSTD, *twins).of(Parameter.LOADER)
    assert len(set(settings(loader))) == 1
    assert settings(loader) != ["zstd"]


def test_the_lab_s_doubt_counts_only_where_the_lab_measured() -> None:
    lab = machine(lab_log_sd=0.1, cpu_log_sd=0.1)
    measured = [candidate("zstd", 40, 0, unpack_ms=200), candidate("lz4", 40, 0, unpack_ms=120)]
    explained = Explained(lab, *measured)
    assert explained.of(Parameter.LAB).share > 0.95
    assert explained.of(Parameter.CPU).share < 0.005
    assert Parameter.LAB not in {weight.what for weight in Explained(lab, ZSTD, LZ4).weights}


def test_the_strongest_rival_is_the_likeliest_to_be_better() -> None:
    candidates = [ZSTD, LZ4, candidate("gzip", 45, 500), candidate("cat", 100, 0)]
    given = sample_posterior_costs(machine(read_log_sd=1.2), candidates, [], seed=1)
    found = compare_candidates(given.draws, candidates, baseline=0, thresholds=EXACT)
    for chosen, rival, expected in ((0, 1, 0.348), (1, 0, 0.59)):
        column, probability = strongest_rival(found, chosen) or (None, 0)
        assert column == rival
        assert probability == pytest.approx(expected, abs=0.02)


def test_of_hopeless_rivals_the_least_costly_is_the_strongest() -> None:
    candidates = [candidate("zstd", 40, 10), candidate("xz", 39, 900), candidate("gzip", 45, 300)]
    given = sample_posterior_costs(machine(), candidates, [], seed=1)
    found = compare_candidates(given.draws, candidates, baseline=0, thresholds=EXACT)
    assert strongest_rival(found, 0) == (2, 0.0)


def test_where_nothing_else_may_be_chosen_there_is_no_rival() -> None:
    candidates = [ZSTD, candidate("lz4", 52, 40, eligible=False)]
    given = sample_posterior_costs(machine(), candidates, [], seed=1)
    found = compare_candidates(given.draws, candidates, baseline=0, thresholds=EXACT)
    assert strongest_rival(found, 0) is None


def test_a_contrast_adds_up() -> None:
    candidates = [ZSTD, LZ4]
    given = sample_posterior_costs(machine(mb_s=100, shadow_ms=150), candidates, [], seed=1)
    found = contrast(given.draws, candidates, 0, 1, source="a test")
    assert (str(found.one), str(found.other)) == ("zstd", "lz4")
    assert found.read_ms.mean == pytest.approx(-120)
    # 200 ms against 120, of which 150 are hidden.
    assert found.waited_ms.mean == pytest.approx(50)
    assert found.all_ms.mean == pytest.approx(-70)
    assert found.all_ms.source == "a test"
